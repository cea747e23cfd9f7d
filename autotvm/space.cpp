#include "autotvm/space.h"

#include <tenon/autotvm/sketch.h>
#include <tenon/schedule/roles.h>

#include <algorithm>

namespace tenon {
namespace {

constexpr size_t kKept = 256;  // candidates: some 10 KB each

}  // namespace

TaskSpace::TaskSpace(const Task& task, SpaceKind kind)
    : program_(task.program),
      target_(std::make_shared<const Target>(task.target)),
      kept_(std::make_unique<Kept>()) {
  if (kind != SpaceKind::sketches) templates_ = task.templates;
  if (templates_.empty()) templates_.push_back({"generic", generic_template});
  if (kind != SpaceKind::templates)
    for (NamedTemplate& sketch : sketches_for(program_, *target_))
      templates_.push_back(std::move(sketch));
  for (const NamedTemplate& t : templates_) spaces_.push_back(survey(t.fn, program_, *target_));
}

std::optional<SpacePoint> TaskSpace::find(const Record& record) const {
  for (size_t t = 0; t < templates_.size(); ++t) {
    if (templates_[t].name != record.template_name) continue;
    try {
      SpacePoint at{t, Point::from_json(record.knobs)};
      if (!spaces_[t].why_not(at.point)) return at;
    } catch (const UserError&) {  // knobs of another version of the template
    }
  }
  return std::nullopt;
}

Result<Candidate> TaskSpace::scheduled(const SpacePoint& at,
                                       const std::shared_ptr<StepCache>& cache) const {
  try {
    Schedule schedule(cache);
    Knobs knobs(at.point);
    templates_[at.template_index].fn(schedule, knobs);
    return Candidate{templates_[at.template_index].name, at.point, schedule.trace(),
                     schedule.program()};
  } catch (const UserError& e) {
    return Failure{e.what()};
  }
}

std::shared_ptr<StepCache> TaskSpace::take_cache() const {
  const std::lock_guard<std::mutex> lock(kept_->mutex);
  std::vector<IdleCache>& idle = kept_->idle;
  if (idle.empty()) return std::make_shared<StepCache>(program_, target_);
  const auto own = std::find_if(idle.begin(), idle.end(), [](const IdleCache& c) {
    return c.user == std::this_thread::get_id();
  });
  const auto taken = own == idle.end() ? idle.begin() : own;
  std::shared_ptr<StepCache> out = std::move(taken->steps);
  idle.erase(taken);
  return out;
}

Result<Candidate> TaskSpace::candidate(const SpacePoint& at) const {
  {
    const std::lock_guard<std::mutex> lock(kept_->mutex);
    const auto kept = kept_->candidates.find(at);
    if (kept != kept_->candidates.end()) return kept->second;
  }
  const std::shared_ptr<StepCache> cache = take_cache();
  Result<Candidate> out = scheduled(at, cache);
  const std::lock_guard<std::mutex> lock(kept_->mutex);
  kept_->idle.push_back({std::this_thread::get_id(), cache});
  return out;
}

void TaskSpace::keep(const SpacePoint& at, double forecast_us, Candidate candidate) const {
  const std::lock_guard<std::mutex> lock(kept_->mutex);
  const bool full = kept_->candidates.size() == kKept;
  if (full && std::prev(kept_->by_forecast.end())->first <= forecast_us) return;
  if (!kept_->candidates.try_emplace(at, std::move(candidate)).second) return;
  kept_->by_forecast.emplace(forecast_us, at);
  if (!full) return;
  const auto last = std::prev(kept_->by_forecast.end());
  kept_->candidates.erase(last->second);
  kept_->by_forecast.erase(last);
}

}  // namespace tenon
