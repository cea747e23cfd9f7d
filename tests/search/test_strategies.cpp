#include <tenon/autotvm/runner.h>
#include <tenon/autotvm/search.h>
#include <tenon/support/stats.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <set>

using namespace tenon;

// A convolution (24 channels of 14x14 to 64, 3x3, one thread) of which every point was measured
// once: the whole space of its three templates, 324 points from 31 us to 3.8 ms; the default takes
// 71 us. Searches replay it with fixed seeds; nothing here depends on this machine.
namespace {

constexpr int kSeeds = 30, kBatch = 4;

std::vector<LoggedRecord> recorded() {
  return load_log(TENON_SOURCE_DIR "/tests/search/conv_24x14x14_to_64.jsonl").records;
}

/// The space as the log shows it: each knob's values in order, and just the points that were
/// measured. The default of a template is its first point in the log.
struct RecordedSpace {
  std::vector<std::string> names;
  std::vector<KnobSpace> spaces;
};

RecordedSpace space_of(const std::vector<LoggedRecord>& records) {
  RecordedSpace out;
  std::vector<std::set<Point>> points;
  for (const LoggedRecord& r : records) {
    const Point point = Point::from_json(r.record.knobs);
    auto name = std::find(out.names.begin(), out.names.end(), r.record.template_name);
    const auto t = static_cast<size_t>(std::distance(out.names.begin(), name));
    if (name == out.names.end()) {
      out.names.push_back(r.record.template_name);
      out.spaces.emplace_back();
      points.emplace_back();
      for (const auto& [knob, value] : point.values) {
        Domain domain;
        domain.name = knob;
        domain.default_value = value;
        out.spaces[t].domains.push_back(domain);
      }
    }
    points[t].insert(point);
    for (Domain& domain : out.spaces[t].domains) {
      const KnobValue& value = point.values.at(domain.name);
      if (!domain.contains(value)) domain.values.push_back(value);
      std::sort(domain.values.begin(), domain.values.end());
    }
  }
  for (size_t t = 0; t < points.size(); ++t) {
    const std::set<Point> measured = points[t];
    out.spaces[t].requirements.push_back(
        {[measured](const Point& p) { return measured.count(p) > 0; }, "not in the log"});
  }
  return out;
}

/// The best time after each trial.
std::vector<double> run(const std::string& search_name, uint64_t seed, int trials) {
  static const std::vector<LoggedRecord> records = recorded();
  static const RecordedSpace space = space_of(records);
  const std::unique_ptr<Search> search = make_search(search_name, space.spaces, seed);
  const std::unique_ptr<Runner> runner = simulated_runner(records);
  std::vector<double> best;
  while (static_cast<int>(best.size()) < trials && !search->done()) {
    std::vector<SearchOutcome> outcomes;
    for (SpacePoint& at : search->propose(kBatch)) {
      Candidate candidate;
      candidate.template_name = space.names[at.template_index];
      candidate.point = at.point;
      const Measurement m = runner->measure({candidate}).at(0);
      REQUIRE(m.status == TrialStatus::ok);
      const double us = median(m.samples_us);
      best.push_back(best.empty() ? us : std::min(best.back(), us));
      outcomes.push_back({std::move(at), us});
    }
    search->learn(outcomes);
  }
  return best;
}

double optimum() {
  double out = 1e9;
  for (const LoggedRecord& r : recorded()) out = std::min(out, median_us(r.record));
  return out;
}

/// Mean over the seeds of the best time after so many trials, as a multiple of the optimum.
double mean_best(const std::string& search, int trials) {
  double sum = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed)
    sum += run(search, seed, trials).at(static_cast<size_t>(trials) - 1);
  return sum / kSeeds / optimum();
}

/// Mean over the seeds of the trials it takes to come within `share` of the optimum.
double mean_trials_to(const std::string& search, double share) {
  const double wanted = optimum() * (1 + share);
  double sum = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::vector<double> best = run(search, seed, 1000);
    sum += static_cast<double>(
               std::count_if(best.begin(), best.end(), [&](double us) { return us > wanted; })) +
           1;
  }
  return sum / kSeeds;
}

}  // namespace

TEST_CASE("the recorded space is whole") {
  const std::vector<LoggedRecord> records = recorded();
  CHECK(records.size() == 324);
  int64_t proposed = 0;
  const std::unique_ptr<Search> grid = grid_search(space_of(records).spaces);
  while (!grid->done()) proposed += static_cast<int64_t>(grid->propose(16).size());
  CHECK(proposed == 324);
}

TEST_CASE("every search finds the optimum when it may try everything") {
  for (const char* search : {"random", "grid", "evolutionary"})
    CHECK(run(search, 1, 1000).back() == optimum());
}

TEST_CASE("evolution comes within 5% of the optimum in at most 0.6 of the trials of chance") {
  const double evolution = mean_trials_to("evolutionary", 0.05);
  const double chance = mean_trials_to("random", 0.05);
  INFO("mean trials to 5%: evolutionary " << evolution << ", random " << chance);
  CHECK(evolution <= 0.6 * chance);
}

TEST_CASE("after 64 trials evolution leaves at most 0.7 of what chance leaves to be won") {
  const double evolution = mean_best("evolutionary", 64), chance = mean_best("random", 64);
  INFO("best after 64 trials, times the optimum: evolutionary " << evolution << ", random "
                                                                << chance);
  CHECK(evolution - 1 <= 0.7 * (chance - 1));
}
