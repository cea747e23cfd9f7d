#include <tenon/ir/ops.h>
#include <tenon/schedule/stage_primitives.h>

#include <algorithm>

#include "schedule/dependence.h"
#include "schedule/place.h"

namespace tenon {
namespace {

/// What is known about the consumer's axes from one input that is produced at the loop.
struct Placement {
  std::vector<std::optional<BoxDim>> dims;  // per axis of the consumer
  std::vector<Expr> conditions;
};

/// The consumer at one loop of a producer.
class Mover {
 public:
  Mover(const Program& program, const StagePath& consumer, const StagePath& at_path, size_t at)
      : program_(program), consumer_(consumer), path_(at_path), at_(at), place_(at_path.loops[at]) {
    placement_.dims.resize(consumer.stage->axes.size());
    sources_.resize(consumer.stage->axes.size());
  }

  void check_inputs() {
    const size_t here = top_nest(program_, path_.stage->name);
    bool joined = false;
    for (const Buffer& b : consumer_.stage->outputs)
      if (!exists_at(program_, place_->var, b))
        refuse(Rule::reverse_output_missing,
               fmt::format("stage \"{}\" writes {}, which does not exist at loop \"{}\"", name(),
                           b->name, place_->var.name()),
               {}, mark());
    for (const Buffer& b : inputs_of(*consumer_.stage)) {
      std::vector<StagePath> inside;
      for (StagePath& w : writers_of(program_, b)) {
        if (w.stage->name == consumer_.stage->name) continue;
        const size_t nest = top_nest(program_, w.stage->name);
        if (nest > here)
          refuse(Rule::reverse_input_beside,
                 fmt::format("stage \"{}\" also reads {}, which stage \"{}\" writes after the loop",
                             name(), b->name, w.stage->name),
                 {}, mark());
        if (nest < here) continue;
        if (!is_under(w, place_)) {
          refuse(Rule::reverse_input_beside,
                 fmt::format("stage \"{}\" also reads {}, which stage \"{}\" writes outside loop "
                             "\"{}\" of the same nest",
                             name(), b->name, w.stage->name, place_->var.name()),
                 "choose a loop that is round both", mark());
          continue;
        }
        inside.push_back(std::move(w));
      }
      if (inside.empty() && !exists_at(program_, place_->var, b))
        refuse(Rule::reverse_input_missing,
               fmt::format("stage \"{}\" reads {}, which does not exist at loop \"{}\"", name(),
                           b->name, place_->var.name()),
               {}, mark());
      if (inside.empty()) continue;
      join(inside.back(), b);
      joined = true;
    }
    if (!joined)
      refuse(Rule::reverse_unrelated,
             fmt::format("stage \"{}\" reads nothing that is written inside loop \"{}\"", name(),
                         place_->var.name()),
             "name a loop of a stage whose output it reads", mark());
    check_independent();
  }

  Stmt nest(const std::vector<size_t>& order) {
    Stage stage = *consumer_.stage;
    LoopBox box;
    box.conditions = placement_.conditions;
    const size_t rank = stage.indices.size();
    for (size_t n = 0; n < stage.axes.size(); ++n) {
      const Expr& extent = stage.axes[n].axis.extent;
      const BoxDim whole{Affine::of(0), extent, true};
      const BoxDim dim = placement_.dims[n].value_or(whole);
      if (n < rank) {
        box.dims.push_back(dim);
      } else if (!covers(dim, extent)) {
        refuse(Rule::reverse_reduction_part,
               fmt::format("the reduction of \"{}\" over \"{}\" needs all of it, and one iteration "
                           "of loop \"{}\" "
                           "writes a part",
                           name(), stage.axes[n].axis.var.name(), place_->var.name()),
               "choose a loop outside", mark());
      }
    }
    Simplifier math = math_for(path_);
    return nest_over_box(std::move(stage), box, math, order);
  }

 private:
  const std::string& name() const { return consumer_.stage->name; }
  std::string mark() const { return full_name(path_, at_); }

  static bool covers(const BoxDim& dim, const Expr& extent) {
    const auto have = as_int(dim.extent), need = as_int(extent);
    return dim.whole ||
           (dim.min.is_constant() && dim.min.constant == 0 && have && need && *have >= *need);
  }

  /// The loops round the writer, each iteration of which writes other elements; in the others only
  /// the last one counts.
  void check_writer(const StagePath& writer, const Buffer& buffer) {
    for (size_t n = 0; n <= at_; ++n) {
      const For& loop = *writer.loops[n];
      const bool combines = writer.stage->combiner && binds_reduce(*writer.stage, loop.var);
      const bool spatial = binds(*writer.stage, loop.var) && !combines;
      // A map has as many points along the dimension as the writer: none.
      if (may_be_empty(loop) && (!spatial || consumer_.stage->combiner))
        refuse(Rule::reverse_empty,
               fmt::format("loop \"{}\" outside may be empty, and then \"{}\" would not run",
                           loop.var.name(), name()),
               "choose a loop outside it", mark());
      if (spatial) {
        if (auto why = conflict_on_buffer(writer, n, buffer))
          refuse(Rule::reverse_meet, *why, "choose another loop", mark());
        continue;
      }
      if (loop.kind == AxisKind::spatial && !is_const(loop.extent, 1))
        refuse(Rule::reverse_anew,
               fmt::format("stage \"{}\" is computed anew in each iteration of \"{}\"",
                           writer.stage->name, loop.var.name()),
               "choose a loop outside it", mark());
      last_.emplace(loop.var, loop.extent - int_imm(1));
      add_condition(Expr(loop.var) == loop.extent - int_imm(1));
    }
  }

  void add_condition(const Expr& condition) {
    for (const Expr& e : placement_.conditions)
      if (structural_equal(e, condition)) return;
    placement_.conditions.push_back(condition);
  }

  /// The consumer runs where the writer ran. Of the loops of which only the last iteration counts,
  /// the writer must have run in that one.
  void add_writer_conditions(const StagePath& writer, const LoopBox& box) {
    Simplifier math = math_for(writer);
    for (const Expr& c : box.conditions) {
      const Expr at_end = math.simplify(substitute(c, last_));
      if (is_true(at_end)) continue;
      if (std::any_of(last_.begin(), last_.end(),
                      [&](const auto& l) { return uses_var(c, l.first); }))
        refuse(Rule::reverse_last,
               fmt::format("stage \"{}\" runs only where {}, which the last iterations of the "
                           "loops outside may not be",
                           writer.stage->name, print(c)),
               "choose a loop outside them, or split without a rest", mark());
      add_condition(c);
    }
  }

  /// Ties the consumer's axes to the box of `buffer` that the writer makes in one iteration.
  void join(const StagePath& writer, const Buffer& buffer) {
    check_writer(writer, buffer);
    const LoopBox box = exact_box(writer, at_ + 1);
    add_writer_conditions(writer, box);
    auto look = [&](const Expr& e) {
      const Load* l = e.as<Load>();
      if (l && l->buffer == buffer) tie(*l, box);
      return true;
    };
    for (const Expr& e : consumer_.stage->values) walk(e, look);
    for (const Expr& e : consumer_.stage->init) walk(e, look);
  }

  void tie(const Load& l, const LoopBox& box) {
    std::vector<size_t> used;
    for (size_t d = 0; d < l.indices.size(); ++d) {
      if (is_const(l.indices[d], 0) && is_const(l.buffer->shape[d], 1)) continue;
      const size_t n = axis_of(l.indices[d]);
      if (n == consumer_.stage->axes.size() || std::count(used.begin(), used.end(), n)) {
        refuse(
            Rule::reverse_index,
            fmt::format("stage \"{}\" reads {} at [{}]: dimension {} is not one of its axes alone",
                        name(), l.buffer->name, print(l.indices[d]), d),
            "compute its producer at a loop of it instead", mark());
        continue;
      }
      used.push_back(n);
      if (!structural_equal(consumer_.stage->axes[n].axis.extent, l.buffer->shape[d]))
        refuse(Rule::reverse_cover,
               fmt::format(
                   "axis \"{}\" of \"{}\" covers {} of the {} elements of {} along dimension {}",
                   consumer_.stage->axes[n].axis.var.name(), name(),
                   print(consumer_.stage->axes[n].axis.extent), print(l.buffer->shape[d]),
                   l.buffer->name, d),
               {}, mark());
      sources_[n].emplace_back(l.buffer, d);
      std::optional<BoxDim>& dim = placement_.dims[n];
      if (!dim) {
        dim = box.dims[d];
        continue;
      }
      const Affine apart = dim->min - box.dims[d].min;
      if (!apart.is_constant() || apart.constant != 0 ||
          !structural_equal(dim->extent, box.dims[d].extent))
        refuse(
            Rule::reverse_parts,
            fmt::format(
                "stage \"{}\" reads parts of its inputs that are written in different iterations",
                name()),
            {}, mark());
    }
  }

  /// Two axes that go with one loop would meet on a diagonal only: B(i) and B(j) are not all there
  /// when the loop makes one element of B. Dimensions of one box go their own ways.
  void check_independent() {
    for (size_t n = 0; n < sources_.size(); ++n)
      for (size_t m = 0; m < n; ++m) {
        if (!share_loop(n, m) || in_one_box(sources_[n], sources_[m])) continue;
        refuse(Rule::reverse_parts,
               fmt::format("stage \"{}\" reads along \"{}\" and \"{}\" what different iterations "
                           "of one loop write",
                           name(), consumer_.stage->axes[m].axis.var.name(),
                           consumer_.stage->axes[n].axis.var.name()),
               "choose a loop outside", mark());
      }
  }

  bool share_loop(size_t n, size_t m) const {
    const auto &a = placement_.dims[n], &b = placement_.dims[m];
    if (!a || !b) return false;
    const Expr other = to_expr(b->min);
    const std::vector<Var> vars = free_vars(to_expr(a->min));
    return std::any_of(vars.begin(), vars.end(),
                       [&](const Var& v) { return !v.is_symbol() && uses_var(other, v); });
  }

  using Source = std::pair<Buffer, size_t>;  // a dimension of a buffer
  static bool in_one_box(const std::vector<Source>& a, const std::vector<Source>& b) {
    return std::any_of(a.begin(), a.end(), [&](const Source& x) {
      return std::any_of(b.begin(), b.end(), [&](const Source& y) {
        return x.first == y.first && x.second != y.second;
      });
    });
  }

  size_t axis_of(const Expr& index) const {
    const std::vector<AxisBinding>& axes = consumer_.stage->axes;
    const VarRef* ref = index.as<VarRef>();
    size_t n = 0;
    while (n < axes.size() && !(ref && ref->var.same_as(axes[n].axis.var))) ++n;
    return n;
  }

  const Program& program_;
  const StagePath& consumer_;
  const StagePath& path_;
  size_t at_;
  const For* place_;
  Placement placement_;
  std::vector<std::vector<Source>> sources_;  // per axis: what ties it
  VarMap last_;  // loops of which only the last iteration counts, with that iteration
};

/// Returns the axes of the consumer in the order of its loops.
std::vector<size_t> check_consumer(const Program& program, const StagePath& consumer,
                                   const StagePath& at_path) {
  const Stage& stage = *consumer.stage;
  std::vector<size_t> order = check_plain(consumer, "reverse_compute_at");
  if (!indexed_by_axes(stage)) refuse(Rule::own_indices, why_not_indexed(stage));
  const size_t here = top_nest(program, at_path.stage->name);
  for (const Buffer& b : stage.outputs) {
    if (writers_of(program, b).size() != 1)
      refuse(Rule::two_writers, fmt::format("another stage also writes {}", b->name),
             "reverse_compute_at before decompose_reduction");
    for (const StagePath& reader : readers_of(program, b))
      if (top_nest(program, reader.stage->name) <= here)
        refuse(Rule::reverse_needed_before,
               fmt::format("stage \"{}\" needs {} before that loop has ended", reader.stage->name,
                           b->name));
  }
  return order;
}

}  // namespace

/// for x.o: for x.i: C(x);  for i: D(i) reads C(i)   ->   for x.o: { for x.i: C(x); for i in box:
/// D(min + i) reads C }
Program ReverseComputeAt::apply(const Program& program, const Target&) const {
  const StagePath consumer = find_stage(program, stage), path = find_stage(program, at_stage);
  const size_t at = find_loop(path, loop);
  const For* place = path.loops[at];
  if (is_under(consumer, place))
    refuse(Rule::reverse_already,
           fmt::format("loop \"{}\" is already round stage \"{}\"", loop, stage),
           "name a loop of a stage that it reads", full_name(path, at));
  const std::vector<size_t> order = check_consumer(program, consumer, path);
  check_not_vectorized(path, at, "computing a stage");
  Mover mover(program, consumer, path, at);
  mover.check_inputs();
  const Stmt nest = mover.nest(order);

  Program out = program;
  out.body = replace_stage(program.body, stage, [](const Stage&) { return Stmt(); });
  out.body = surround_body(out.body, place->var, {}, {}, nest);
  for (const Buffer& b : inputs_of(*consumer.stage)) {
    const std::vector<Buffer> temporaries = allocated(out.body);
    if (std::find(temporaries.begin(), temporaries.end(), b) == temporaries.end()) continue;
    const StagePath now = find_stage(out, at_stage);
    out = sink_allocate(out, now, at, b);
  }
  return out;
}

}  // namespace tenon
