#pragma once
#include <tenon/schedule/step_cache.h>
#include <tenon/te/te.h>

#include <map>
#include <memory>

namespace tenon {

/// A loop that a step made, or any loop by its full name.
struct Loop {
  std::string stage, name;
  std::string full_name() const { return stage + ":" + name; }
  bool operator==(const Loop&) const = default;
};

/// How a loop is named in a call: an axis of the formula, "i.o", "C:i.o", or a handle that a step
/// returned.
struct LoopRef {
  LoopRef(const Axis& axis) : name(axis.var.name()) {}
  LoopRef(Loop loop) : stage(std::move(loop.stage)), name(std::move(loop.name)) {}
  LoopRef(std::string_view text);
  LoopRef(const std::string& text) : LoopRef(std::string_view(text)) {}
  LoopRef(const char* text) : LoopRef(std::string_view(text)) {}
  std::string stage, name;  // stage empty: the stage that the call speaks of
};

/// A stage or a buffer: its name, or the tensor of the formula.
struct StageRef {
  StageRef(const Tensor& tensor) : name(tensor.name()) {}
  StageRef(std::string name) : name(std::move(name)) {}
  StageRef(const char* name) : name(name) {}
  std::string name;
};

struct SplitOptions {
  Tail tail = Tail::guard;
};
struct VectorizeOptions {
  Tail tail = Tail::exact;
};
struct CacheReadOptions {
  Scope scope = Scope::global;
  std::vector<LayoutDim> layout = {};
};
struct PackOptions {
  PackWhen when = PackWhen::run_time;
};
struct PrefetchOptions {
  std::optional<LoopRef> over = {};
};
struct CacheWriteOptions {
  Scope scope = Scope::global;
};

struct SplitLoops {
  Loop outer, inner;
};
struct TileLoops {
  Loop outer_o, inner_o, outer_i, inner_i;
};
struct RFactorOptions {
  int64_t dim = -1;
};
/// Names of the stages that cache_write made; `load` is empty when no partial results are copied
/// in.
struct CacheWriteStages {
  std::string load, store;
};

class Schedule;

/// The steps as methods, on a schedule (which speaks of its first and only stage) or on one stage
/// of it, `s["C"]`. Each throws ScheduleError where the step is not legal; the message has the
/// shape of DESIGN section 7. A LoopRef without a stage means a loop of the stage spoken of.
template <class Self>
class ScheduleSteps {
 public:
  SplitLoops split(const LoopRef& loop, int64_t factor, const SplitOptions& options = {});
  TileLoops tile(const LoopRef& outer, const LoopRef& inner, int64_t outer_factor,
                 int64_t inner_factor);
  Loop fuse(const LoopRef& outer, const LoopRef& inner);
  Self& reorder(const std::vector<LoopRef>& loops);
  Self& parallel(const LoopRef& loop);
  Self& vectorize(const LoopRef& loop, const VectorizeOptions& options = {});
  Self& unroll(const LoopRef& loop);
  Self& partition(const LoopRef& loop);
  Self& tensorize(const LoopRef& loop, const IntrinsicRef& intrinsic);
  Self& bind(const LoopRef& loop, ThreadAxis axis);

  Self& compute_at(const LoopRef& loop);  // the LoopRef must say its stage
  Self& compute_at(const StageRef& at_stage, const std::string& loop);
  Self& reverse_compute_at(const LoopRef& loop);
  Self& reverse_compute_at(const StageRef& at_stage, const std::string& loop);
  Self& compute_inline();
  /// Returns the name of the copying stage.
  std::string cache_read(const StageRef& buffer, const LoopRef& at,
                         const CacheReadOptions& options = {});
  CacheWriteStages cache_write(const LoopRef& at, const CacheWriteOptions& options = {});
  Self& set_scope(const StageRef& buffer, Scope scope);
  Self& decompose_reduction(const LoopRef& loop);
  /// Returns the name of the stage of partial results.
  std::string rfactor(const LoopRef& loop, const RFactorOptions& options = {});
  /// Returns the name of the copying stage; empty where there is none.
  std::string pack(const StageRef& buffer, const std::vector<LayoutDim>& layout,
                   const PackOptions& options = {});
  Self& storage_align(const StageRef& buffer, int64_t dim, int64_t factor, int64_t offset);
  Self& prefetch(const StageRef& buffer, const LoopRef& loop, int64_t distance,
                 const PrefetchOptions& options = {});
  Self& double_buffer(const StageRef& buffer, const LoopRef& loop);
  Self& annotate(const LoopRef& loop, const std::string& key, int64_t value);
  Self& reverse_compute_inline();
  /// One padding per axis of the stage, spatial axes first.
  Self& pad_einsum(const std::vector<int64_t>& paddings);

  /// Names of the loops round the stage, from the outside in.
  std::vector<Loop> loops();

 private:
  Self& self() { return static_cast<Self&>(*this); }
  Loop resolve(const LoopRef& loop);
};

/// `s["C"]`: one stage of a schedule, which must outlive it.
class StageSteps : public ScheduleSteps<StageSteps> {
 public:
  StageSteps(Schedule& schedule, std::string stage)
      : schedule_(&schedule), stage_(std::move(stage)) {}
  const std::string& name() const { return stage_; }

 private:
  friend class ScheduleSteps<StageSteps>;
  Schedule& schedule() { return *schedule_; }
  std::string spoken_stage() { return stage_; }

  Schedule* schedule_;
  std::string stage_;
};

/// A program, the target it is meant for, and the steps so far. A value: copies are independent.
class Schedule : public ScheduleSteps<Schedule> {
 public:
  Schedule(Program program, Target target);
  /// Of the cache's program and target; takes from it steps that other schedules took.
  explicit Schedule(std::shared_ptr<StepCache> steps);

  const Program& program() const { return state_->program; }
  const Target& target() const { return *target_; }
  const Trace& trace() const { return trace_; }
  /// The program's text.
  std::string print() const;
  /// What one iteration of a loop reads and writes: for each buffer the box that it touches, its
  /// bytes, and the whole. Boxes are bounds: a guarded rest may touch less. ScheduleError for a
  /// loop that does not exist.
  std::string explain(const LoopRef& loop) const;
  /// How the loop tree after `to` steps differs from that after `from` steps (0: unscheduled), line
  /// by line: "+ " added, "- " removed, "  " both. ScheduleError for more steps than there are.
  std::string diff(size_t from, size_t to) const;

  /// ScheduleError with the nearest names when there is no such stage.
  StageSteps operator[](const StageRef& stage);
  std::vector<std::string> stages() const;
  bool has_stage(std::string_view name) const;

  /// Applies the step or says why not; a refused step changes nothing.
  std::optional<Refusal> try_apply(const Primitive& primitive);
  /// Applies the step or throws ScheduleError.
  void apply(const Primitive& primitive);
  /// The message that apply() would throw for this refusal of the next step.
  std::string message(const Primitive& primitive, const Refusal& refusal) const;

 private:
  template <class Self>
  friend class ScheduleSteps;
  Schedule& schedule() { return *this; }
  std::string spoken_stage();
  const std::vector<StagePath>& paths() const { return state_->paths; }
  std::map<std::string, std::string> used_up() const;

  ScheduleStateRef first_;  // before all steps
  ScheduleStateRef state_;
  std::shared_ptr<const Target> target_;
  std::shared_ptr<StepCache> steps_;  // may be nullptr
  Trace trace_;
  std::string only_stage_;  // the stage that methods of the schedule itself speak of; empty: there
                            // were several
};

/// The schedule that the trace's steps make of `program`; ScheduleError as for the steps one by
/// one.
Schedule replay(Program program, Target target, const Trace& trace);

}  // namespace tenon
