#pragma once
#include <tenon/autotvm/runner.h>
#include <tenon/autotvm/search.h>
#include <tenon/autotvm/tune.h>
#include <tenon/support/result.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tenon {

/// The templates of a task (the generic one where it has none), the sketches that fit it, and what
/// their knobs may be.
class TaskSpace {
 public:
  /// Surveys all templates. UserError as survey() throws.
  TaskSpace(const Task& task, SpaceKind kind);

  const std::vector<KnobSpace>& spaces() const { return spaces_; }
  /// The first template at its default knobs.
  SpacePoint default_point() const { return {0, spaces_.front().default_point()}; }
  const std::string& template_name(size_t index) const { return templates_[index].name; }
  /// Where a record's point lies in this space; nothing when its template or a knob is gone.
  std::optional<SpacePoint> find(const Record& record) const;

  /// Runs the template; the failure is the refusal of a step, in words. For any number of threads.
  Result<Candidate> candidate(const SpacePoint& at) const;
  /// Keeps what candidate() made of a point where the forecast is among the lowest so far: it is
  /// likely to be asked for again. For any number of threads.
  void keep(const SpacePoint& at, double forecast_us, Candidate candidate) const;

 private:
  Result<Candidate> scheduled(const SpacePoint& at, const std::shared_ptr<StepCache>& cache) const;
  /// A cache that no other thread has now.
  std::shared_ptr<StepCache> take_cache() const;

  Program program_;
  std::shared_ptr<const Target> target_;
  std::vector<NamedTemplate> templates_;
  std::vector<KnobSpace> spaces_;
  /// A cache goes back to the thread that used it last: its memory is near that thread's core.
  struct IdleCache {
    std::thread::id user{};
    std::shared_ptr<StepCache> steps{};
  };
  /// What makes candidates quicker, and changes none.
  struct Kept {
    std::mutex mutex;
    std::vector<IdleCache> idle;
    std::map<SpacePoint, Candidate> candidates;
    std::multimap<double, SpacePoint> by_forecast;  // the same points
  };
  std::unique_ptr<Kept> kept_;
};

}  // namespace tenon
