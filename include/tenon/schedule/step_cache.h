#pragma once
#include <tenon/ir/visit.h>
#include <tenon/schedule/primitive.h>

#include <memory>

namespace tenon {

/// A program after some steps, with the paths to its stages.
struct ScheduleState {
  Program program;
  std::vector<StagePath> paths;
  uint64_t steps_hash = 0;  ///< of the steps that led here
};
using ScheduleStateRef = std::shared_ptr<const ScheduleState>;

/// The state after a step. Throws Refusal as apply() does.
ScheduleState next_state(const ScheduleState& before, const Target& target, const Primitive& step);

/// What steps made of one program, so that the schedules of a search do not take the first steps
/// that they share again: a state is kept from the second time on that its steps are taken. Of
/// bounded size: what is asked for least gives way. For one thread at a time.
class StepCache {
 public:
  StepCache(Program program, std::shared_ptr<const Target> target);
  StepCache(const StepCache&) = delete;
  StepCache& operator=(const StepCache&) = delete;

  const ScheduleStateRef& first() const { return first_; }
  const std::shared_ptr<const Target>& target() const { return target_; }
  /// `next_state(*before, *target(), step)`, kept or new.
  ScheduleStateRef step(const ScheduleStateRef& before, const Primitive& step);
  int64_t found() const { return found_; }  ///< steps that were not taken again

 private:
  struct Kept {
    ScheduleStateRef before, after;
    Primitive step;
    int credit = 0;  // times that it was found, less those that another wanted its place
  };

  std::shared_ptr<const Target> target_;
  ScheduleStateRef first_;
  std::vector<Kept> kept_;      // by hash
  std::vector<uint64_t> seen_;  // hashes of steps taken
  int64_t found_ = 0;
};

}  // namespace tenon
