#include "autotvm/ranked.h"

#include <fmt/format.h>
#include <tenon/support/error.h>

#include <filesystem>

#include "autotvm/on_cores.h"

namespace tenon {
namespace {

constexpr double kRefused = 20;      // a correction that puts a point last
constexpr size_t kMostTrials = 512;  // that a fit looks at, the latest ones: some 0.1 s

}  // namespace

RankerModel::RankerModel(const TaskSpace& space, const Task& task, int threads, Ranker known)
    : space_(&space),
      target_(task.target),
      sizes_(task.sample_sizes),
      threads_(threads),
      known_(std::move(known)) {}

RankerModel::Row RankerModel::row_of(const SpacePoint& at) const {
  Row out;
  const Result<Candidate> candidate = space_->candidate(at);
  out.refused = !candidate;
  if (out.refused) return out;
  try {
    out.features = ranker_features(candidate->program, target_, threads_, sizes_).values;
  } catch (const UserError&) {  // what lowering refuses is a failed trial, should it come to one
    out.refused = true;
  }
  return out;
}

void RankerModel::make_rows(const std::vector<SpacePoint>& points) {
  std::vector<SpacePoint> fresh;
  for (const SpacePoint& at : points)
    if (!rows_.count(at)) fresh.push_back(at);
  std::vector<Row> rows(fresh.size());
  on_cores(target_.cores, fresh.size(), [&](size_t n) { rows[n] = row_of(fresh[n]); });
  std::vector<const std::vector<float>*> features;
  std::vector<size_t> places;
  for (size_t n = 0; n < rows.size(); ++n) {
    if (rows[n].refused) continue;
    features.push_back(&rows[n].features);
    places.push_back(n);
  }
  const std::vector<double> known = known_.predict(features);
  for (size_t n = 0; n < places.size(); ++n) rows[places[n]].known = known[n];
  for (size_t n = 0; n < rows.size(); ++n) rows_.emplace(fresh[n], std::move(rows[n]));
}

std::vector<Correction> RankerModel::correct(const std::vector<SpacePoint>& points) {
  std::vector<Correction> out(points.size());
  if (!known_.knows() && !session_.knows()) return out;
  make_rows(points);
  std::vector<const std::vector<float>*> features;
  std::vector<size_t> places;
  for (size_t n = 0; n < points.size(); ++n) {
    const Row& row = rows_.at(points[n]);
    out[n].known = row.known;
    out[n].session = row.refused ? kRefused : 0;
    if (row.refused) continue;
    features.push_back(&row.features);
    places.push_back(n);
  }
  const std::vector<double> session = session_.predict(features);
  for (size_t n = 0; n < places.size(); ++n) out[places[n]].session = session[n];
  return out;
}

void RankerModel::fit(const std::vector<TrialRest>& trials) {
  const size_t first = trials.size() > kMostTrials ? trials.size() - kMostTrials : 0;
  std::vector<SpacePoint> points;
  for (size_t n = first; n < trials.size(); ++n) points.push_back(trials[n].at);
  make_rows(points);
  std::vector<RankerSample> samples;
  for (size_t n = first; n < trials.size(); ++n) {
    const Row& row = rows_.at(trials[n].at);
    if (!row.refused) samples.push_back({row.features, trials[n].left, trials[n].weight});
  }
  session_ = Ranker::fit_session(samples);
}

std::shared_ptr<ForecastModel> ranker_model(const TaskSpace& space, const Task& task,
                                            const TuneOptions& options, std::string& warning) {
  if (options.search != "guided") return nullptr;
  if (const auto missing = trees_missing()) {
    warning = "the draft score is used alone: " + *missing;
    return nullptr;
  }
  const bool named = !options.ranker.empty() && options.ranker != "none";
  if (named && !std::filesystem::exists(options.ranker)) {
    throw UserError(fmt::format("there is no ranker {}\n  try: tenon log train LOG.. -o {}",
                                options.ranker, options.ranker));
  }
  LoadedRanker loaded;
  if (named)
    loaded = load_ranker(options.ranker);
  else if (options.ranker != "none" && !task.target.is_gpu())  // it was learned on CPUs
    loaded = load_ranker(shipped_ranker());
  warning = loaded.warning;
  return std::make_shared<RankerModel>(space, task, options.threads, std::move(loaded.ranker));
}

}  // namespace tenon
