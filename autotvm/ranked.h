#pragma once
#include <tenon/autotvm/ranker.h>

#include <map>

#include "autotvm/space.h"

namespace tenon {

/// Corrects forecasts of a task's points by a ranker of other tasks (which may know nothing), and
/// by one of this session's trials. Points are scheduled and lowered once, on all cores that the
/// target has; those that lowering refuses come last.
class RankerModel : public ForecastModel {
 public:
  /// `space` must outlive it.
  RankerModel(const TaskSpace& space, const Task& task, int threads, Ranker known);
  std::vector<Correction> correct(const std::vector<SpacePoint>& points) override;
  void fit(const std::vector<TrialRest>& trials) override;

 private:
  struct Row {
    bool refused = false;
    std::vector<float> features;
    double known = 0;
  };
  void make_rows(const std::vector<SpacePoint>& points);
  Row row_of(const SpacePoint& at) const;

  const TaskSpace* space_;
  Target target_;
  std::map<std::string, int64_t> sizes_;
  int threads_;
  Ranker known_, session_;
  std::map<SpacePoint, Row> rows_;
};

/// What corrects the forecasts of a guided search: the ranker of options.ranker, or on a CPU the
/// shipped one. Null for another search, and, with a warning, where there are no trees. UserError
/// for a file that is not there; one that cannot be used is a warning.
std::shared_ptr<ForecastModel> ranker_model(const TaskSpace& space, const Task& task,
                                            const TuneOptions& options, std::string& warning);

}  // namespace tenon
