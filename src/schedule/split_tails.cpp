#include "schedule/split_tails.h"

#include <algorithm>
#include <optional>

#include "schedule/place.h"

namespace tenon {
namespace {

bool is_among(const std::vector<Buffer>& buffers, const Buffer& b) {
  return std::find(buffers.begin(), buffers.end(), b) != buffers.end();
}

/// Stages under the loop with all the loops round them.
std::vector<StagePath> stages_under(const Program& program, const For& loop) {
  std::vector<StagePath> out;
  for (StagePath& p : stage_paths(program.body))
    if (is_under(p, &loop)) out.push_back(std::move(p));
  return out;
}

void check_accumulation(const StagePath& p, const For& loop, const std::string& mark) {
  const Stage& stage = *p.stage;
  if (binds_reduce(stage, loop.var))
    refuse(Rule::split_shift_reduce,
           fmt::format("loop \"{}\" runs the reduction of stage \"{}\", whose terms would count "
                       "twice in a shifted tile",
                       loop.var.name(), stage.name),
           "split it with {.tail = Tail::guard}", mark);
  if (!stage.combiner) return;
  bool outside = stage.init.empty();
  for (size_t n = 0; p.loops[n] != &loop; ++n)
    outside = outside || binds_reduce(stage, p.loops[n]->var);
  if (outside)
    refuse(Rule::split_shift_twice,
           fmt::format("stage \"{}\" adds to what was there before loop \"{}\"; elements of a "
                       "shifted tile would count twice",
                       stage.name, loop.var.name()),
           "split before the init or a reduction loop goes outside, or with a guard", mark);
}

}  // namespace

void check_shift(const Program& program, const StagePath& path, size_t at, int64_t factor) {
  const For& loop = *path.loops[at];
  const std::string mark = full_name(path, at);
  if (!math_for(path).prove(loop.extent >= int_imm(factor)))
    refuse(Rule::split_shift_small,
           fmt::format("loop \"{}\" has extent {}; a tile of {} does not fit inside",
                       loop.var.name(), print(loop.extent), factor),
           "choose a smaller factor, or {.tail = Tail::guard}", mark);
  const std::vector<StagePath> stages = stages_under(program, loop);
  const std::vector<Buffer> own = allocated(loop.body);
  for (size_t n = 0; n < stages.size(); ++n) {
    check_accumulation(stages[n], loop, mark);
    for (const Buffer& b : inputs_of(*stages[n].stage))
      for (size_t later = n; later < stages.size(); ++later)
        if (!is_among(own, b) && writes(*stages[later].stage, b))
          refuse(Rule::split_shift_order,
                 fmt::format("stage \"{}\" reads {}, which stage \"{}\" writes after it; a "
                             "shifted tile would read it changed",
                             stages[n].stage->name, b->name, stages[later].stage->name),
                 "split with {.tail = Tail::guard}", mark);
  }
}

namespace {

constexpr int kMaxReads = 20000;

/// The iterations that padding adds to a loop, stage by stage.
class Padding {
 public:
  Padding(const Program& program, const StagePath& path, size_t at, int64_t extent)
      : program_(program),
        path_(path),
        loop_(*path.loops[at]),
        mark_(full_name(path, at)),
        extent_(extent),
        stages_(stages_under(program, loop_)) {}

  BufferMap buffers() {
    for (const StagePath& p : stages_) grow(p);
    for (const StagePath& p : stages_) check_reads(p);
    return grown_;
  }

 private:
  /// The dimension of the stage's outputs that the loop alone runs along, all of it.
  std::optional<size_t> dimension(const Stage& stage) const {
    std::optional<size_t> found;
    for (const AxisBinding& b : stage.axes) {
      if (!uses_var(b.value, loop_.var)) continue;
      const VarRef* ref = b.value.as<VarRef>();
      if (found || !ref || b.kind != AxisKind::spatial) return std::nullopt;
      for (size_t d = 0; d < stage.indices.size(); ++d) {
        if (!uses_var(stage.indices[d], b.axis.var)) continue;
        const VarRef* index = stage.indices[d].as<VarRef>();
        const std::optional<int64_t> size = as_int(stage.outputs[0]->shape[d]);
        if (found || !index || !size || size != as_int(loop_.extent)) return std::nullopt;
        found = d;
      }
    }
    return found;
  }

  void grow(const StagePath& p) {
    const Stage& stage = *p.stage;
    const std::optional<size_t> d = dimension(stage);
    if (!d)
      refuse(Rule::split_pad_dimension,
             fmt::format("loop \"{}\" of extent {} is not one whole dimension of what stage \"{}\" "
                         "writes",
                         loop_.var.name(), print(loop_.extent), stage.name),
             "pad the loop of an axis before it is split, or use {.tail = Tail::guard}", mark_);
    for (const Buffer& b : stage.outputs) {
      if (!is_among(allocated(program_.body), b)) {
        refuse(Rule::split_pad_output,
               fmt::format("stage \"{}\" writes {}, a parameter, which cannot be rounded up",
                           stage.name, b->name),
               "cache_write it first, or use {.tail = Tail::guard}", mark_);
        continue;
      }
      for (const StagePath& writer : writers_of(program_, b))
        if (!is_under(writer, &loop_))
          refuse(Rule::split_pad_writers,
                 fmt::format("stage \"{}\" writes {} outside loop \"{}\"", writer.stage->name,
                             b->name, loop_.var.name()),
                 "pad before decompose_reduction", mark_);
      if (!d) continue;
      BufferNode node = *b;
      node.shape[*d] = int_imm(extent_);
      grown_.emplace(b, Buffer(std::move(node)));
    }
  }

  void check_reads(const StagePath& p) {
    const Stage& stage = *p.stage;
    VarRanges ranges = loop_ranges(p.loops);
    ranges[loop_.var] = Interval::extent(extent_);
    math_ = Simplifier(std::move(ranges));
    Guards guards = affine_guards({stage.spatial_guard, stage.reduce_guard}, math_);
    int budget = kMaxReads;
    for (const Expr& e : over_loops(stage, stage.values)) look(stage, e, guards, budget);
    for (const Expr& e : over_loops(stage, stage.init)) look(stage, e, guards, budget);
  }

  /// Loads are read only where the selects round them say so.
  void look(const Stage& stage, const Expr& e, const Guards& guards, int& budget) {
    if (--budget < 0) return refuse_read(stage, "more than can be looked at");
    if (!uses_var(e, loop_.var)) return;
    if (const Select* s = e.as<Select>()) {
      Guards yes = guards;
      for (Affine& g : affine_guards({s->condition}, math_)) yes.push_back(std::move(g));
      look(stage, s->condition, guards, budget);
      look(stage, s->yes, yes, budget);
      look(stage, s->no, guards, budget);
      return;
    }
    if (const Load* l = e.as<Load>()) check_load(stage, *l, guards);
    if (const Binary* b = e.as<Binary>()) check_division(stage, *b);
    map_children(e, [&](const Expr& part) {
      look(stage, part, guards, budget);
      return part;
    });
  }

  void check_load(const Stage& stage, const Load& l, const Guards& guards) {
    for (size_t d = 0; d < l.indices.size(); ++d) {
      const std::optional<int64_t> size = as_int(l.buffer->shape[d]);
      const Interval range = bounds(math_.affine(l.indices[d]), math_, guards);
      if (uses_var(l.indices[d], loop_.var) && !(size && range.within(0, *size - 1)))
        refuse_read(stage, fmt::format("{}[{}] along dimension {}", l.buffer->name,
                                       print(l.indices[d]), d));
    }
    if (is_among(allocated(program_.body), l.buffer) && !is_written(l.buffer))
      refuse(Rule::split_pad_written,
             fmt::format("the iterations added to \"{}\" read {}, and it cannot be proved that all "
                         "of it is written before",
                         loop_.var.name(), l.buffer->name),
             "pad its producer first, or use {.tail = Tail::guard}", mark_);
  }

  void refuse_read(const Stage& stage, const std::string& what) const {
    refuse(Rule::split_pad_reads,
           fmt::format("in the iterations added to \"{}\" stage \"{}\" reads outside: {}",
                       loop_.var.name(), stage.name, what),
           "use {.tail = Tail::guard}", mark_);
  }

  void check_division(const Stage& stage, const Binary& b) const {
    const bool integers = b.op == BinaryOp::floor_div || b.op == BinaryOp::floor_mod ||
                          b.op == BinaryOp::trunc_div || b.op == BinaryOp::trunc_mod;
    if (integers && !as_int(b.b))
      refuse(Rule::split_pad_divides,
             fmt::format("in the iterations added to \"{}\" stage \"{}\" divides by {}, which may "
                         "be 0 there",
                         loop_.var.name(), stage.name, print(b.b)),
             "use {.tail = Tail::guard}", mark_);
  }

  /// All of the buffer is written by a stage before the nest of the loop.
  bool is_written(const Buffer& buffer) const {
    const size_t here = top_nest(program_, path_.stage->name);
    for (const StagePath& w : writers_of(program_, buffer)) {
      if (top_nest(program_, w.stage->name) >= here) return false;
      try {
        const LoopBox box = exact_box(w, 0);
        bool whole = box.conditions.empty();
        for (size_t d = 0; d < box.dims.size(); ++d) {
          const Affine& min = box.dims[d].min;
          whole = whole && min.is_constant() && min.constant <= 0 &&
                  min.constant + as_int(box.dims[d].extent).value_or(0) >=
                      as_int(buffer->shape[d]).value_or(INT64_MAX);
        }
        if (whole) return true;
      } catch (const Refusal&) {  // no exact box is known
      }
    }
    return false;
  }

  const Program& program_;
  const StagePath& path_;
  const For& loop_;
  std::string mark_;
  int64_t extent_;
  std::vector<StagePath> stages_;
  Simplifier math_;
  BufferMap grown_;
};

}  // namespace

BufferMap padded_buffers(const Program& program, const StagePath& path, size_t at, int64_t extent) {
  return Padding(program, path, at, extent).buffers();
}

Stmt with_padded_buffers(const Stmt& root, const BufferMap& buffers) {
  const Stmt grown = map_stages(root, [&](const Stage& stage) {
    const auto found = buffers.find(stage.outputs[0]);
    if (found == buffers.end()) return stage;
    Stage out = stage;
    for (size_t d = 0; d < stage.indices.size(); ++d)
      for (AxisBinding& b : out.axes) {
        const VarRef* ref = stage.indices[d].as<VarRef>();
        const Expr& extent = found->second->shape[d];
        if (ref && ref->var.same_as(b.axis.var) &&
            !structural_equal(found->first->shape[d], extent))
          b.axis.extent = extent;
      }
    return out;
  });
  return replace_buffers(grown, buffers);
}

}  // namespace tenon
