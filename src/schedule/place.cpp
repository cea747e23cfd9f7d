#include "schedule/place.h"

#include <tenon/support/error.h>

#include <tenon/support/error.h>

#include <algorithm>
#include <functional>
#include <set>

#include "schedule/dependence.h"

namespace tenon {

std::optional<std::vector<size_t>> plain_order(const StagePath& path) {
  const Stage& stage = *path.stage;
  if (path.loops.size() != stage.axes.size() || stage.spatial_guard.defined()) return std::nullopt;
  std::vector<size_t> order;
  for (size_t n = 0; n < path.loops.size(); ++n) {
    const For& loop = *path.loops[n];
    const auto own = std::find_if(stage.axes.begin(), stage.axes.end(), [&](const AxisBinding& b) {
      const VarRef* ref = b.value.as<VarRef>();
      return ref && ref->var.same_as(loop.var);
    });
    const bool last = n + 1 == path.loops.size();
    const bool nested =
        last ? loop.body.as<Stage>() == &stage : loop.body.as<For>() == path.loops[n + 1];
    if (own == stage.axes.end() || !nested || loop.mark != LoopMark::serial || !loop.notes.empty())
      return std::nullopt;
    order.push_back(static_cast<size_t>(own - stage.axes.begin()));
  }
  return order;
}

std::vector<size_t> check_plain(const StagePath& path, std::string_view primitive) {
  if (auto order = plain_order(path)) return *order;
  refuse(Rule::move_scheduled,
         fmt::format("stage \"{}\" has been scheduled already; {} moves a stage that is still in "
                     "its first place",
                     path.stage->name, primitive),
         fmt::format("{} first, then schedule the loops that it gets", primitive),
         path.loops.empty() ? "" : full_name(path, 0));
  return {};
}

void check_not_vectorized(const StagePath& path, size_t at, std::string_view what) {
  for (size_t n = 0; n <= at; ++n)
    if (makes_lanes(path.loops[n]->mark))
      refuse(Rule::move_into_vectorized,
             fmt::format("loop \"{}\" is vectorized; {} there would need one buffer per lane",
                         path.loops[n]->var.name(), what),
             "choose a loop outside it", full_name(path, at));
}

bool indexed_by_axes(const Stage& stage) {
  if (stage.indices.size() > stage.axes.size()) return false;
  for (size_t d = 0; d < stage.indices.size(); ++d) {
    const VarRef* ref = stage.indices[d].as<VarRef>();
    if (!ref || !ref->var.same_as(stage.axes[d].axis.var) ||
        stage.axes[d].kind != AxisKind::spatial)
      return false;
  }
  return true;
}

std::string why_not_indexed(const Stage& stage) {
  for (const AxisBinding& b : stage.axes)
    if (b.kind == AxisKind::sequential)
      return fmt::format("stage \"{}\" is a scan along \"{}\": an element needs the one before it",
                         stage.name, b.axis.var.name());
  if (is_scatter(stage))
    return fmt::format(
        "stage \"{}\" is a scatter: which elements it writes is known only when it runs",
        stage.name);
  return fmt::format("stage \"{}\" is not indexed by its own axes, one per dimension", stage.name);
}

std::vector<StagePath> readers_of(const Program& program, const Buffer& buffer) {
  std::vector<StagePath> out;
  for (StagePath& p : stage_paths(program.body))
    if (reads(*p.stage, buffer)) out.push_back(std::move(p));
  return out;
}

std::vector<StagePath> writers_of(const Program& program, const Buffer& buffer) {
  std::vector<StagePath> out;
  for (StagePath& p : stage_paths(program.body))
    if (writes(*p.stage, buffer)) out.push_back(std::move(p));
  return out;
}

bool is_under(const StagePath& path, const For* loop) {
  return std::find(path.loops.begin(), path.loops.end(), loop) != path.loops.end();
}

namespace {

/// Calls f(allocated buffer, loops round it, outermost first) for each Allocate.
void walk_allocates(const Stmt& s, std::vector<const For*>& loops,
                    const std::function<void(const Allocate&, const std::vector<const For*>&)>& f) {
  if (!s.defined()) return;
  if (const Allocate* a = s.as<Allocate>()) f(*a, loops);
  const For* loop = s.as<For>();
  if (loop) loops.push_back(loop);
  map_children(
      s,
      [&](const Stmt& child) {
        walk_allocates(child, loops, f);
        return child;
      },
      [](const Expr& e) { return e; });
  if (loop) loops.pop_back();
}

bool holds_loop(const Stmt& s, const Var& var) {
  bool found = false;
  walk(
      s,
      [&](const Stmt& part) {
        const For* loop = part.as<For>();
        found = found || (loop && loop->var.same_as(var));
        return !found;
      },
      [](const Expr&) { return false; });
  return found;
}

}  // namespace

namespace {

/// A parameter, or allocated round something that `holds` finds.
bool exists_where(const Program& program, const Buffer& buffer,
                  const std::function<bool(const Stmt&)>& holds) {
  for (const Param& p : program.params)
    if (p.buffer == buffer) return true;
  bool exists = false;
  std::vector<const For*> loops;
  walk_allocates(program.body, loops, [&](const Allocate& a, const std::vector<const For*>&) {
    exists = exists || (a.buffer == buffer && holds(a.body));
  });
  return exists;
}

}  // namespace

bool exists_at(const Program& program, const Var& loop, const Buffer& buffer) {
  return exists_where(program, buffer, [&](const Stmt& body) { return holds_loop(body, loop); });
}

bool exists_for(const Program& program, const std::string& stage, const Buffer& buffer) {
  return exists_where(program, buffer, [&](const Stmt& body) {
    const std::vector<StagePath> paths = stage_paths(body);
    return std::any_of(paths.begin(), paths.end(),
                       [&](const StagePath& p) { return p.stage->name == stage; });
  });
}

size_t top_nest(const Program& program, const std::string& stage) {
  size_t nest = 0;
  std::function<bool(const Stmt&)> seek = [&](const Stmt& s) {
    if (const Allocate* a = s.as<Allocate>()) return seek(a->body);
    if (const Seq* parts = s.as<Seq>())
      return std::any_of(parts->stmts.begin(), parts->stmts.end(), seek);
    ++nest;
    const std::vector<StagePath> inside = stage_paths(s);
    return std::any_of(inside.begin(), inside.end(),
                       [&](const StagePath& p) { return p.stage->name == stage; });
  };
  TENON_CHECK(seek(program.body), "stage {} is in no nest", stage);
  return nest;
}

std::vector<const For*> loops_round_allocate(const Program& program, const Buffer& buffer) {
  std::vector<const For*> out, loops;
  walk_allocates(program.body, loops, [&](const Allocate& a, const std::vector<const For*>& round) {
    if (a.buffer == buffer) out = round;
  });
  return out;
}

Stmt nest_over_box(Stage stage, const LoopBox& box, Simplifier& math, std::vector<size_t> order) {
  if (order.empty())
    for (size_t n = 0; n < stage.axes.size(); ++n) order.push_back(n);
  std::vector<Var> loops;
  std::set<std::string> names;
  std::vector<Expr> extents;
  const size_t rank = box.dims.size();
  TENON_CHECK(rank <= stage.axes.size(), "stage {} has too few axes for its box", stage.name);
  for (size_t n = 0; n < stage.axes.size(); ++n) {
    const std::string& name = stage.axes[n].axis.var.name();
    std::string own = name;
    for (int k = 2; !names.insert(own).second; ++k) own = fmt::format("{}{}", name, k);
    loops.emplace_back(own);
    extents.push_back(n < rank ? box.dims[n].extent : stage.axes[n].axis.extent);
  }
  const std::vector<Expr> own(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(rank));
  const BoxAccess access = access_box(box, own, stage.outputs[0]->shape, math);
  VarMap moved;  // loops that the reduce guard may speak of
  for (size_t n = 0; n < stage.axes.size(); ++n) {
    const Expr value = n < rank ? access.values[n] : Expr(loops[n]);
    if (const VarRef* ref = stage.axes[n].value.as<VarRef>()) moved.emplace(ref->var, value);
    stage.axes[n].value = value;
  }
  stage.spatial_guard = access.guard;
  if (stage.reduce_guard.defined()) stage.reduce_guard = substitute(stage.reduce_guard, moved);
  const std::vector<AxisBinding> axes = stage.axes;
  Stmt body = make_stmt(std::move(stage));
  for (size_t n = order.size(); n-- > 0;) {
    const size_t a = order[n];
    body = make_stmt(make_loop(loops[a], extents[a], axes[a].kind, body));
  }
  return body;
}

namespace {

/// before; body; after - inside the buffers that the body allocates for all of itself.
Stmt surround(const Stmt& body, const Stmt& before, const Stmt& after) {
  if (const Allocate* a = body.as<Allocate>())
    return make_stmt(Allocate{a->buffer, surround(a->body, before, after)});
  return seq({before, body, after});
}

}  // namespace

Stmt surround_body(const Stmt& root, const Var& loop, const std::vector<Buffer>& buffers,
                   const Stmt& before, const Stmt& after) {
  return replace_loop(root, loop, [&](const For& l) {
    For out = l;
    out.body = surround(l.body, before, after);
    for (const Buffer& b : buffers) out.body = make_stmt(Allocate{b, out.body});
    return make_stmt(std::move(out));
  });
}

Program sink_allocate(const Program& program, const StagePath& path, size_t last,
                      const Buffer& buffer) {
  std::vector<StagePath> users = readers_of(program, buffer);
  for (StagePath& p : writers_of(program, buffer)) users.push_back(std::move(p));
  const size_t round = loops_round_allocate(program, buffer).size();
  const For* deepest = nullptr;
  for (size_t n = round; n <= last; ++n) {
    const For* loop = path.loops[n];
    const bool inside = std::all_of(users.begin(), users.end(),
                                    [&](const StagePath& p) { return is_under(p, loop); });
    const bool reduces = std::any_of(users.begin(), users.end(), [&](const StagePath& p) {
      return binds_reduce(*p.stage, loop->var);
    });
    if (!inside || reduces || makes_lanes(loop->mark) || conflict_on_buffer(path, n, buffer)) break;
    deepest = loop;
  }
  if (!deepest) return program;
  Program out = program;
  out.body = surround_body(drop_allocate(program.body, buffer), deepest->var, {buffer}, {}, {});
  return out;
}

}  // namespace tenon
