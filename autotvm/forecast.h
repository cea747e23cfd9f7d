#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "autotvm/space.h"

namespace tenon {

/// Forecasts of a task's points by the draft score of their loop trees. Points are scheduled on all
/// cores that the target has; refused ones and those that cannot be good have no hope, and are
/// counted by their reason.
class DraftForecaster {
 public:
  /// `space` must outlive it.
  DraftForecaster(const TaskSpace& space, const Task& task, int threads);
  std::vector<Forecast> operator()(const std::vector<SpacePoint>& points);
  const std::map<std::string, int64_t>& dropped() const { return *dropped_; }

 private:
  const TaskSpace* space_;
  Target target_;
  std::map<std::string, int64_t> sizes_;
  int threads_;
  std::shared_ptr<std::map<std::string, int64_t>> dropped_;  // by all copies
};

}  // namespace tenon
