#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/te/te.h>

#include <algorithm>
#include <set>

#include "te/formula.h"
#include "te/nest.h"

namespace tenon {
namespace {

bool has_reduce(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& n) {
    found = found || n.as<Reduce>();
    return !found;
  });
  return found;
}

bool same_exprs(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t n = 0; n < a.size(); ++n)
    if (!a[n].same_as(b[n])) return false;
  return true;
}

/// Whether two Reduce nodes are elements of the same reduction.
bool same_reduction(const Reduce& a, const Reduce& b) {
  if (a.combiner != b.combiner || a.axes.size() != b.axes.size()) return false;
  for (size_t n = 0; n < a.axes.size(); ++n)
    if (!a.axes[n].var.same_as(b.axes[n].var)) return false;
  return same_exprs(a.sources, b.sources) && same_exprs(a.init, b.init) &&
         a.condition.same_as(b.condition);
}

/// The reduction whose elements the values of a formula are, or null.
const Reduce* whole_reduction(const Formula& f) {
  const Reduce* first = f.values[0].as<Reduce>();
  if (!first || first->combiner->result.size() != f.values.size()) return nullptr;
  for (size_t e = 0; e < f.values.size(); ++e) {
    const Reduce* r = f.values[e].as<Reduce>();
    if (!r || r->element != static_cast<int>(e) || !same_reduction(*first, *r)) return nullptr;
  }
  return first;
}

class ProgramBuilder {
 public:
  explicit ProgramBuilder(const std::vector<Tensor>& outputs) {
    for (const Tensor& t : outputs) outputs_.insert(t.buffer().get());
  }

  /// Adds the stages of `f` after those of everything it reads.
  void add(const std::shared_ptr<const Formula>& f) {
    if (!done_.insert(f.get()).second) return;
    for (const Buffer& b : f->previous) previous_.insert(b.get());
    if (f->scatter) {
      for (const Expr& e : f->scatter->start) add_producers(e);
      for (const Expr& e : f->scatter->indices) add_producers(e);
    }
    for (const Expr& value : f->values) add_producers(value);
    add_formula(*f);
  }

  Program finish(std::string name, const std::vector<Tensor>& outputs) {
    Program program;
    program.name = std::move(name);
    program.params = inputs_;
    for (const Tensor& t : outputs)
      program.params.push_back({buffers_.at(t.buffer()), ParamRole::output});
    program.body = seq(stages_);
    for (size_t n = temporaries_.size(); n-- > 0;)
      program.body = make_stmt(Allocate{temporaries_[n], program.body});
    add_symbols(program);
    return program;
  }

 private:
  /// Every symbol that the program speaks of, those of the parameters first; each must be the
  /// extent of a parameter.
  static void add_symbols(Program& program) {
    const auto add = [&](const Expr& e) {
      for (const Var& v : symbols_in(e)) {
        const auto known = std::find_if(program.symbols.begin(), program.symbols.end(),
                                        [&](const Var& s) { return s.name() == v.name(); });
        if (known == program.symbols.end())
          program.symbols.push_back(v);
        else if (!known->same_as(v))
          throw UserError(
              fmt::format("program \"{}\": two different symbols are called \"{}\"\n"
                          "  try: one symbol for both, or another name",
                          program.name, v.name()));
      }
      return true;
    };
    std::vector<Var> bound;
    for (const Param& p : program.params) {
      for (const Expr& extent : p.buffer->shape) {
        add(extent);
        const auto term = symbol_term(extent);
        if (!term)
          throw UserError(fmt::format(
              "program \"{}\": extent {} of \"{}\" cannot be solved for one symbol at the call; "
              "those of inputs and outputs are numbers or c + k * symbol\n  try: a symbol of its "
              "own for this extent",
              program.name, print(extent), p.buffer->name));
        if (term->symbol.defined()) bound.push_back(term->symbol);
      }
    }
    walk(
        program.body, [](const Stmt&) { return true; }, add);
    for (const Var& v : program.symbols) {
      if (std::none_of(bound.begin(), bound.end(), [&](const Var& b) { return b.same_as(v); }))
        throw UserError(fmt::format(
            "program \"{}\": symbol \"{}\" is the extent of no input or output, so that a call "
            "cannot give it a value\n  try: an input that has it as an extent",
            program.name, v.name()));
    }
  }

  struct PulledOut {
    Reduce reduce;
    Expr condition;
    std::vector<Axis> axes;
    std::vector<Buffer> outputs;
  };

  std::string unique(const std::string& name) {
    std::string result = name;
    for (int n = 2; !names_.insert(result).second; ++n) result = fmt::format("{}.{}", name, n);
    return result;
  }

  void add_producers(const Expr& value) {
    walk(value, [&](const Expr& e) {
      if (auto* l = e.as<Load>()) add_buffer(l->buffer);
      return true;
    });
  }

  void add_buffer(const Buffer& b) {
    if (buffers_.count(b) || previous_.count(b.get())) return;
    const bool outside = !b->origin || b->origin->role != ParamRole::output;
    if (!outside) return add(b->origin);
    Buffer own(unique(b->name), b->dtype, b->shape);
    inputs_.push_back({own, b->origin ? b->origin->role : ParamRole::input});
    buffers_.emplace(b, own);
  }

  void add_formula(const Formula& f) {
    const std::string name = unique(f.name);
    formula_name_ = name;
    pulled_.clear();
    next_pulled_ = 0;
    if (f.scatter) return add_scatter(f, name);
    const Reduce* whole = whole_reduction(f);
    Stage stage;
    stage.name = name;
    if (whole) {
      stage = reduction(name, *whole, f.axes, {});
    } else {
      for (const Axis& axis : f.axes) stage.axes.push_back({axis, AxisKind::spatial, {}});
      if (f.along) stage.axes[*f.along].kind = AxisKind::sequential;
      for (const Expr& value : f.values) stage.values.push_back(pull_out(value, f.axes, {}));
    }
    for (const Axis& axis : f.axes) stage.indices.push_back(axis.var);
    for (size_t n = 0; n < f.values.size(); ++n) stage.outputs.push_back(output(f, n, name));
    for (size_t n = 0; n < f.previous.size(); ++n)
      buffers_.emplace(f.previous[n], stage.outputs[n]);
    add_stage(std::move(stage));
  }

  /// Two stages: NAME.init starts all elements, NAME joins the parts.
  void add_scatter(const Formula& f, const std::string& name) {
    const bool empty = std::any_of(f.axes.begin(), f.axes.end(),
                                   [](const Axis& axis) { return is_const(axis.extent, 0); });
    Stage start;
    start.name = empty ? name : unique(name + ".init");
    for (const Axis& axis : f.axes) {
      start.axes.push_back({axis, AxisKind::spatial, {}});
      start.indices.push_back(axis.var);
    }
    for (const Expr& e : f.scatter->start) start.values.push_back(pull_out(e, f.axes, {}));
    for (size_t n = 0; n < f.values.size(); ++n) start.outputs.push_back(output(f, n, name));
    Stage parts = scatter_parts(f, name);
    parts.outputs = start.outputs;
    add_stage(std::move(start));
    if (!empty) add_stage(std::move(parts));
  }

  /// Everything of the second stage but its outputs. An index that may leave its dimension is kept
  /// inside, and its point joins the identity.
  Stage scatter_parts(const Formula& f, const std::string& name) {
    const ScatterInto& into = *f.scatter;
    Stage stage;
    stage.name = name;
    Expr inside;
    for (size_t d = 0; d < into.indices.size(); ++d) {
      const Expr index = pull_out(into.indices[d], into.sources, {});
      const Expr& extent = f.axes[d].extent;
      if (stays_inside(into.indices[d], extent, into.sources)) {
        stage.indices.push_back(index);
        continue;
      }
      inside = both(inside, index >= int_imm(0) && index < extent);
      stage.indices.push_back(max(min(index, extent - int_imm(1)), int_imm(0)));
      if (!as_int(extent)) stage.reduce_guard = both(stage.reduce_guard, extent > int_imm(0));
    }
    for (size_t n = 0; n < f.values.size(); ++n) {
      const Expr value = pull_out(f.values[n], into.sources, inside);
      stage.values.push_back(inside.defined() ? select(inside, value, into.combiner->identity[n])
                                              : value);
    }
    stage.combiner = into.combiner;
    const std::vector<Axis> own = own_dimensions(stage.indices, into.sources);
    for (const Axis& axis : own) stage.axes.push_back({axis, AxisKind::spatial, {}});
    for (const Axis& axis : into.sources)
      if (!among(own, axis)) stage.axes.push_back({axis, AxisKind::reduce, {}});
    return stage;
  }

  static bool among(const std::vector<Axis>& axes, const Axis& axis) {
    return std::any_of(axes.begin(), axes.end(),
                       [&](const Axis& a) { return a.var.same_as(axis.var); });
  }

  /// The sources that alone are one of the indices and occur in no other: each of their points has
  /// elements of its own.
  static std::vector<Axis> own_dimensions(const std::vector<Expr>& indices,
                                          const std::vector<Axis>& sources) {
    std::vector<Axis> out;
    for (const Expr& index : indices) {
      const VarRef* ref = index.as<VarRef>();
      const auto uses = [&](const Expr& e) { return uses_var(e, ref->var); };
      if (!ref || std::count_if(indices.begin(), indices.end(), uses) != 1) continue;
      for (const Axis& axis : sources)
        if (axis.var.same_as(ref->var)) out.push_back(axis);
    }
    return out;
  }

  /// The program's buffer for element n of a formula; allocated unless it is an output.
  Buffer output(const Formula& f, size_t n, const std::string& stage_name) {
    std::vector<Expr> shape;
    for (const Axis& axis : f.axes) shape.push_back(axis.extent);
    const std::string name =
        f.values.size() == 1 ? stage_name : unique(fmt::format("{}.v{}", stage_name, n));
    Buffer own(name, f.values[n].dtype(), shape);
    const Buffer original(f.outputs[n].lock());
    if (original.defined()) buffers_.emplace(original, own);
    if (!original.defined() || !outputs_.count(original.get())) temporaries_.push_back(own);
    return own;
  }

  void add_stage(Stage stage) {
    for (Expr& e : stage.values) e = replace_buffers(e, buffers_);
    for (Expr& e : stage.init) e = replace_buffers(e, buffers_);
    for (Expr& e : stage.indices) e = replace_buffers(e, buffers_);
    stages_.push_back(nest(std::move(stage)));
  }

  /// Everything of the stage but its outputs and indices. Points where `condition` fails do not
  /// count.
  Stage reduction(const std::string& name, const Reduce& r, const std::vector<Axis>& spatial,
                  const Expr& condition) {
    Stage stage;
    stage.name = name;
    std::vector<Axis> inside = spatial;
    inside.insert(inside.end(), r.axes.begin(), r.axes.end());
    Expr counts = both(condition, r.condition);
    if (counts.defined()) counts = pull_out(counts, inside, {});
    for (size_t n = 0; n < r.sources.size(); ++n) {
      Expr source = pull_out(r.sources[n], inside, counts);
      stage.values.push_back(counts.defined() ? select(counts, source, r.combiner->identity[n])
                                              : source);
    }
    const std::vector<Expr>& start = r.init.empty() ? r.combiner->identity : r.init;
    for (const Expr& e : start) stage.init.push_back(pull_out(e, spatial, condition));
    stage.combiner = r.combiner;
    for (const Axis& axis : spatial) stage.axes.push_back({axis, AxisKind::spatial, {}});
    for (const Axis& axis : r.axes) stage.axes.push_back({axis, AxisKind::reduce, {}});
    return stage;
  }

  /// `e` with each Reduce replaced by a load from a stage of its own. `axes` are those in force
  /// here, `condition` the choices of the selects around (undefined: none).
  Expr pull_out(const Expr& e, const std::vector<Axis>& axes, const Expr& condition) {
    if (!has_reduce(e)) return e;
    if (auto* r = e.as<Reduce>()) return pull_out_reduce(*r, axes, condition);
    if (auto* l = e.as<Let>()) {
      VarMap value;
      value.emplace(l->var, l->value);
      return pull_out(substitute(l->body, value), axes, condition);
    }
    if (auto* s = e.as<Select>()) {
      const Expr c = pull_out(s->condition, axes, condition);
      return select(c, pull_out(s->yes, axes, both(condition, c)),
                    pull_out(s->no, axes, both(condition, !c)));
    }
    return map_children(e, [&](const Expr& child) { return pull_out(child, axes, condition); });
  }

  Expr pull_out_reduce(const Reduce& r, const std::vector<Axis>& axes, const Expr& condition) {
    for (const PulledOut& p : pulled_)
      if (same_reduction(p.reduce, r) && p.condition.same_as(condition))
        return element(p, r.element);
    PulledOut p{r, condition, {}, {}};
    for (const Axis& axis : axes)
      if (uses(r, condition, axis.var)) p.axes.push_back(axis);
    const std::string name = unique(fmt::format("{}.r{}", formula_name_, next_pulled_));
    ++next_pulled_;
    Stage stage = reduction(name, r, p.axes, condition);
    std::vector<Expr> shape;
    for (const Axis& axis : p.axes) {
      stage.indices.push_back(axis.var);
      shape.push_back(axis.extent);
    }
    const size_t count = r.sources.size();
    for (size_t n = 0; n < count; ++n) {
      const std::string own = count == 1 ? name : unique(fmt::format("{}.v{}", name, n));
      p.outputs.emplace_back(own, r.combiner->identity[n].dtype(), shape);
      temporaries_.push_back(p.outputs.back());
    }
    stage.outputs = p.outputs;
    add_stage(std::move(stage));
    pulled_.push_back(p);
    return element(p, r.element);
  }

  static bool uses(const Reduce& r, const Expr& condition, const Var& v) {
    for (const Expr& e : r.sources)
      if (uses_var(e, v)) return true;
    for (const Expr& e : r.init)
      if (uses_var(e, v)) return true;
    return (r.condition.defined() && uses_var(r.condition, v)) ||
           (condition.defined() && uses_var(condition, v));
  }

  static Expr element(const PulledOut& p, int n) {
    std::vector<Expr> indices;
    for (const Axis& axis : p.axes) indices.push_back(axis.var);
    return load(p.outputs[n], indices);
  }

  std::set<const BufferNode*> outputs_;
  std::set<const Formula*> done_;
  std::set<const BufferNode*> previous_;  // how scans read themselves; asked for membership only
  std::set<std::string> names_;
  BufferMap buffers_;
  std::vector<Param> inputs_;
  std::vector<Buffer> temporaries_;
  std::vector<Stmt> stages_;
  std::string formula_name_;
  int next_pulled_ = 0;
  std::vector<PulledOut> pulled_;
};

}  // namespace

Program make_program(std::string name, const std::vector<Tensor>& outputs) {
  if (outputs.empty()) throw UserError(fmt::format("program \"{}\": no output is given", name));
  for (size_t n = 0; n < outputs.size(); ++n) {
    if (!outputs[n].defined())
      throw UserError(fmt::format("program \"{}\": output {} is undefined", name, n));
    if (outputs[n].role() != ParamRole::output)
      throw UserError(
          fmt::format("program \"{}\": output \"{}\" is an input\n  try: compute a copy of it",
                      name, outputs[n].name()));
    for (size_t m = 0; m < n; ++m)
      if (outputs[m].buffer().same_as(outputs[n].buffer()))
        throw UserError(
            fmt::format("program \"{}\": tensor \"{}\" is given twice, as outputs {} and {}", name,
                        outputs[n].name(), m, n));
  }
  ProgramBuilder builder(outputs);
  for (const Tensor& t : outputs) builder.add(t.buffer()->origin);
  Program program = builder.finish(std::move(name), outputs);
  verify(program, Form::LoopTree);
  return program;
}

}  // namespace tenon
