#include "schedule/tree.h"

#include <tenon/support/text.h>

#include <algorithm>

#include "arith/interval.h"

namespace tenon {

namespace {

/// A name that is not there; never switched off.
[[noreturn]] void not_found(Rule rule, std::string text, std::string hint, std::string missing) {
  throw Refusal{
      std::move(text), std::move(hint), {}, std::move(missing), std::string(info(rule).id)};
}

}  // namespace

std::string quoted_list(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& n : names) quoted.push_back("\"" + n + "\"");
  return join(quoted);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::vector<std::string> near = nearest_names(word, known);
  return near.empty() ? "" : fmt::format("did you mean {}?", quoted_list(near));
}

namespace {

/// Appends the loops round the stage to `out`, which is as it was where the stage is not in `s`.
bool find_path(const Stmt& s, const std::string& stage, StagePath& out) {
  if (!s.defined()) return false;
  if (const Stage* leaf = s.as<Stage>()) {
    if (leaf->name == stage) out.stage = leaf;
    return out.stage != nullptr;
  }
  if (const Allocate* a = s.as<Allocate>()) return find_path(a->body, stage, out);
  if (const Seq* parts = s.as<Seq>())
    return std::any_of(parts->stmts.begin(), parts->stmts.end(),
                       [&](const Stmt& part) { return find_path(part, stage, out); });
  const For* loop = s.as<For>();
  if (!loop) {
    for (const StagePath& path : stage_paths(s))
      if (path.stage->name == stage) {
        out.loops.insert(out.loops.end(), path.loops.begin(), path.loops.end());
        out.stage = path.stage;
      }
    return out.stage != nullptr;
  }
  out.loops.push_back(loop);
  if (find_path(loop->body, stage, out)) return true;
  out.loops.pop_back();
  return false;
}

}  // namespace

StagePath find_stage(const Program& program, const std::string& stage) {
  StagePath path;
  path.loops.reserve(16);
  if (find_path(program.body, stage, path)) return path;
  std::vector<std::string> known;
  for (const StagePath& other : stage_paths(program.body)) known.push_back(other.stage->name);
  not_found(Rule::no_stage,
            fmt::format("there is no stage \"{}\"; the stages are {}", stage, quoted_list(known)),
            did_you_mean(stage, known), stage);
}

namespace {

/// Position of the loop printed as "i~2": the second one called "i" from the outside.
std::optional<size_t> find_printed(const StagePath& path, const std::string& loop) {
  const size_t tilde = loop.rfind('~');
  if (tilde == std::string::npos) return std::nullopt;
  std::optional<int64_t> number = parse_int(loop.substr(tilde + 1));
  for (size_t n = 0; number && n < path.loops.size(); ++n)
    if (path.loops[n]->var.name() == loop.substr(0, tilde) && --*number == 0) return n;
  return std::nullopt;
}

}  // namespace

size_t find_loop(const StagePath& path, const std::string& loop) {
  for (size_t n = path.loops.size(); n-- > 0;)
    if (path.loops[n]->var.name() == loop) return n;
  if (const std::optional<size_t> printed = find_printed(path, loop)) return *printed;
  std::vector<std::string> known;
  for (const For* l : path.loops) known.push_back(l->var.name());
  const std::string exist =
      known.empty() ? "it is under no loop" : "its loops are " + quoted_list(known);
  not_found(Rule::no_loop,
            fmt::format("stage \"{}\" has no loop \"{}\"; {}", path.stage->name, loop, exist),
            did_you_mean(loop, known), path.stage->name + ":" + loop);
}

std::string full_name(const StagePath& path, size_t loop) {
  return path.stage->name + ":" + path.loops[loop]->var.name();
}

bool binds_reduce(const Stage& stage, const Var& loop) {
  return std::any_of(stage.axes.begin(), stage.axes.end(), [&](const AxisBinding& b) {
    return b.kind != AxisKind::spatial && uses_var(b.value, loop);
  });
}

bool binds(const Stage& stage, const Var& loop) {
  return std::any_of(stage.axes.begin(), stage.axes.end(),
                     [&](const AxisBinding& b) { return uses_var(b.value, loop); });
}

bool is_scatter(const Stage& stage) {
  return std::any_of(stage.axes.begin(), stage.axes.end(), [&](const AxisBinding& b) {
    return b.kind == AxisKind::reduce &&
           std::any_of(stage.indices.begin(), stage.indices.end(),
                       [&](const Expr& e) { return uses_var(e, b.axis.var); });
  });
}

std::vector<Buffer> inputs_of(const Stage& stage) {
  std::vector<Buffer> out;
  auto look = [&](const Expr& e) {
    const Load* l = e.as<Load>();
    if (l && std::find(out.begin(), out.end(), l->buffer) == out.end()) out.push_back(l->buffer);
    return true;
  };
  for (const Expr& e : stage.indices) walk(e, look);
  for (const Expr& e : stage.values) walk(e, look);
  for (const Expr& e : stage.init) walk(e, look);
  return out;
}

bool reads(const Stage& stage, const Buffer& buffer) {
  bool found = false;
  const auto look = [&](const Expr& e) {
    const Load* l = e.as<Load>();
    found = found || (l && l->buffer == buffer);
    return !found;
  };
  for (const auto* exprs : {&stage.indices, &stage.values, &stage.init})
    for (const Expr& e : *exprs)
      if (!found) walk(e, look);
  return found;
}

bool writes(const Stage& stage, const Buffer& buffer) {
  return std::find(stage.outputs.begin(), stage.outputs.end(), buffer) != stage.outputs.end();
}

bool is_output(const Program& program, const Buffer& buffer) {
  return std::any_of(program.params.begin(), program.params.end(), [&](const Param& p) {
    return p.buffer == buffer && p.role == ParamRole::output;
  });
}

std::optional<int64_t> extent_of(const For& loop) { return as_int(loop.extent); }

bool may_be_empty(const For& loop) { return bounds(loop.extent).min.value_or(0) < 1; }

void check_scope_size(const std::string& buffer, Scope scope, const std::vector<Expr>& sizes,
                      const std::string& loop) {
  if (scope == Scope::global) return;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (as_int(sizes[d])) continue;
    refuse(
        Rule::scope_symbolic,
        fmt::format("dimension {} of {} has the symbolic extent {}; {} memory is of constant size",
                    d, buffer, print(sizes[d]), name(scope)),
        "use Scope::global, or place it inside a split of that dimension", loop);
  }
}

namespace {

/// `s` with the loop over `var` replaced, or nothing where it is not in `s`: a variable has one
/// loop.
std::optional<Stmt> with_loop_replaced(const Stmt& s, const Var& var,
                                       const std::function<Stmt(const For&)>& f) {
  if (const For* loop = s.as<For>()) {
    if (loop->var.same_as(var)) return f(*loop);
    std::optional<Stmt> body = with_loop_replaced(loop->body, var, f);
    if (!body) return std::nullopt;
    For out = *loop;
    out.body = *std::move(body);
    return make_stmt(std::move(out));
  }
  if (const Allocate* a = s.as<Allocate>()) {
    std::optional<Stmt> body = with_loop_replaced(a->body, var, f);
    if (!body) return std::nullopt;
    return make_stmt(Allocate{a->buffer, *std::move(body)});
  }
  if (!s.defined() || s.as<Stage>()) return std::nullopt;
  bool found = false;
  const Stmt out = map_children(
      s,
      [&](const Stmt& part) {
        std::optional<Stmt> now = found ? std::nullopt : with_loop_replaced(part, var, f);
        found = found || now;
        return now.value_or(part);
      },
      nullptr);
  return found ? std::optional(out) : std::nullopt;
}

}  // namespace

Stmt replace_loop(const Stmt& root, const Var& var, const std::function<Stmt(const For&)>& f) {
  return with_loop_replaced(root, var, f).value_or(root);
}

namespace {

/// Children that became undefined leave their sequence, loop or Allocate.
Stmt without_empty(const Stmt& s) {
  if (const For* loop = s.as<For>()) return loop->body.defined() ? s : Stmt();
  if (const Allocate* a = s.as<Allocate>()) return a->body.defined() ? s : Stmt();
  const Seq* sequence = s.as<Seq>();
  const auto flat = [](const Stmt& part) { return part.defined() && !part.as<Seq>(); };
  if (!sequence || std::all_of(sequence->stmts.begin(), sequence->stmts.end(), flat)) return s;
  return seq(sequence->stmts);
}

}  // namespace

Stmt replace_stage(const Stmt& root, const std::string& name,
                   const std::function<Stmt(const Stage&)>& f) {
  const StmtFn change = [&](const Stmt& s) {
    const Stage* stage = s.as<Stage>();
    return stage && stage->name == name ? f(*stage) : without_empty(s);
  };
  return rewrite(root, change, nullptr);
}

Stmt map_stages(const Stmt& root, const std::function<Stage(const Stage&)>& f) {
  const StmtFn change = [&](const Stmt& s) {
    const Stage* stage = s.as<Stage>();
    return stage ? make_stmt(f(*stage)) : s;
  };
  return rewrite(root, change, nullptr);
}

Stmt substitute_loops(const Stmt& root, const VarMap& values) {
  const StmtFn change = [&](const Stmt& s) {
    const Stage* stage = s.as<Stage>();
    if (!stage) return s;
    std::optional<Stage> out;
    const auto put = [&](const Expr& old, const auto& place) {
      const Expr now = substitute(old, values);
      if (now.same_as(old)) return;
      if (!out) out = *stage;
      place(*out) = now;
    };
    for (size_t n = 0; n < stage->axes.size(); ++n)
      put(stage->axes[n].value, [n](Stage& changed) -> Expr& { return changed.axes[n].value; });
    put(stage->spatial_guard, [](Stage& changed) -> Expr& { return changed.spatial_guard; });
    put(stage->reduce_guard, [](Stage& changed) -> Expr& { return changed.reduce_guard; });
    return out ? make_stmt(*std::move(out)) : s;
  };
  return rewrite(root, change, nullptr);
}

Stmt drop_allocate(const Stmt& root, const Buffer& buffer) {
  const StmtFn change = [&](const Stmt& s) {
    const Allocate* a = s.as<Allocate>();
    return a && a->buffer == buffer ? a->body : s;
  };
  return rewrite(root, change, nullptr);
}

std::string fresh_name(const Program& program, const std::string& base) {
  std::vector<std::string_view> used;
  for (const Param& p : program.params) used.push_back(p.buffer->name);
  walk(
      program.body,
      [&](const Stmt& s) {
        if (const Allocate* a = s.as<Allocate>()) used.push_back(a->buffer->name);
        if (const Stage* stage = s.as<Stage>()) used.push_back(stage->name);
        return true;
      },
      nullptr);
  std::string name = base;
  for (int n = 2; std::find(used.begin(), used.end(), name) != used.end(); ++n)
    name = fmt::format("{}.{}", base, n);
  return name;
}

Buffer find_buffer(const Program& program, const std::string& name) {
  std::vector<Buffer> all = allocated(program.body);
  for (const Param& p : program.params) all.push_back(p.buffer);
  std::vector<std::string> known;
  for (const Buffer& b : all) {
    if (b->name == name) return b;
    known.push_back(b->name);
  }
  not_found(Rule::no_buffer,
            fmt::format("there is no buffer \"{}\"; the buffers are {}", name, quoted_list(known)),
            did_you_mean(name, known), {});
}

std::vector<Buffer> allocated(const Stmt& root) {
  std::vector<Buffer> out;
  walk(
      root,
      [&](const Stmt& s) {
        if (const Allocate* a = s.as<Allocate>()) out.push_back(a->buffer);
        return true;
      },
      nullptr);
  return out;
}

For make_loop(Var var, Expr extent, AxisKind kind, Stmt body) {
  For loop;
  loop.var = std::move(var);
  loop.min = int_imm(0);
  loop.extent = std::move(extent);
  loop.kind = kind;
  loop.body = std::move(body);
  return loop;
}

}  // namespace tenon
