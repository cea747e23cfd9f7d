#include <tenon/support/stats.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "autotvm/forecast.h"
#include "search/recorded_tasks.h"

using namespace tenon;

// Three tasks of which every point was measured once, one thread (record_main.cpp). Searches replay
// them with fixed seeds and forecasts for the recorded machine; nothing here depends on this one.
namespace {

constexpr int kSeeds = 12, kBatch = 4;

/// One recorded task with what a search needs.
struct Replay {
  Task task;
  TaskSpace space;
  std::vector<LoggedRecord> records;
  std::map<SpacePoint, double> us;
  double optimum = 0, standard = 0;

  Replay(const RecordedTask& recorded, std::vector<LoggedRecord> log)
      : task(recorded.task), space(task, SpaceKind::templates), records(std::move(log)) {
    for (const LoggedRecord& r : records) {
      const auto at = space.find(r.record);
      if (!at || r.record.comparison > 0) continue;
      us[*at] = median_us(r.record);
    }
    for (const auto& [at, time] : us) optimum = optimum == 0 ? time : std::min(optimum, time);
    standard = us.at(space.default_point());
  }

  /// The best time after each trial.
  std::vector<double> run(const std::string& name, uint64_t seed, size_t trials) const {
    const auto search = make_search(name, space.spaces(), seed, DraftForecaster(space, task, 1));
    const auto runner = simulated_runner(records);
    std::vector<double> best;
    while (best.size() < trials && !search->done()) {
      std::vector<SearchOutcome> outcomes;
      for (SpacePoint& at : search->propose(kBatch)) {
        Candidate candidate;
        candidate.template_name = space.template_name(at.template_index);
        candidate.point = at.point;
        const Measurement m = runner->measure({candidate}).at(0);
        const double time = m.status == TrialStatus::ok ? median(m.samples_us) : 1e9;
        best.push_back(best.empty() ? time : std::min(best.back(), time));
        outcomes.push_back({std::move(at), time < 1e9 ? std::optional(time) : std::nullopt});
      }
      search->learn(outcomes);
    }
    return best;
  }

  double mean_trials_to(const std::string& name, double share) const {
    double sum = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const std::vector<double> best = run(name, seed, us.size());
      sum += 1 + static_cast<double>(std::count_if(best.begin(), best.end(), [&](double time) {
               return time > optimum * (1 + share);
             }));
    }
    return sum / kSeeds;
  }
};

std::vector<Replay> replays() {
  // The templates of the machine that was recorded.
  Target host = Target::host();
  std::vector<Replay> out;
  const std::string any = recorded_tasks(host)[0].log;
  const Target target = load_log(any).records.at(0).record.target;
  for (const RecordedTask& recorded : recorded_tasks(target))
    out.emplace_back(recorded, load_log(recorded.log).records);
  return out;
}

}  // namespace

TEST_CASE("the recorded spaces are whole") {
  for (const Replay& replay : replays()) {
    INFO(replay.task.name);
    const auto grid = grid_search(replay.space.spaces());
    size_t points = 0;
    while (!grid->done())
      for (const SpacePoint& at : grid->propose(16)) {
        ++points;
        // Points of equal traces were measured once.
        if (!replay.us.count(at)) CHECK(replay.space.candidate(at));
      }
    CHECK(replay.us.size() >= 60);
    CHECK(points >= replay.us.size());
    CHECK(replay.standard > replay.optimum);
  }
}

TEST_CASE("guided: the draft score finds good points of each recorded task at once") {
  for (const Replay& replay : replays()) {
    std::vector<double> after;
    for (uint64_t seed = 0; seed < kSeeds; ++seed)
      after.push_back(replay.run("guided", seed, 16).back() / replay.optimum);
    INFO(replay.task.name << ": after 16 trials " << median(after) << " of the optimum's time");
    CHECK(median(after) <= 1.1);
  }
}

TEST_CASE("guided: within 5% of the optimum in at most half of the trials of evolution") {
  double guided = 0, evolution = 0;
  for (const Replay& replay : replays()) {
    const double g = replay.mean_trials_to("guided", 0.05),
                 e = replay.mean_trials_to("evolutionary", 0.05);
    UNSCOPED_INFO(replay.task.name << ": guided " << g << ", evolutionary " << e);
    guided += g / e / 3;
    evolution += 1.0 / 3;
  }
  CHECK(guided <= 0.5 * evolution);
}
