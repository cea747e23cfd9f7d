#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "autotvm/search/pool.h"
#include "spaces.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

const std::vector<std::string> kSearches = {"guided", "random", "grid", "evolutionary"};

std::vector<SpacePoint> all_of(Search& search, int batch) {
  std::vector<SpacePoint> out;
  while (!search.done()) {
    for (SpacePoint& at : search.propose(batch)) out.push_back(std::move(at));
    REQUIRE(out.size() < 100000);
  }
  return out;
}

/// Fastest at a = 32, b = 4, t = [2]; smooth round it.
double cost(const SpacePoint& at) {
  auto away = [](double x, double best) { return std::abs(std::log2(x / best)); };
  return 100 + 10 * away(static_cast<double>(at.point.number("a")), 32) +
         10 * away(static_cast<double>(at.point.number("b")), 4) +
         5 * away(static_cast<double>(at.point.tile("t")[0]), 2);
}

/// Knows what `a` does, and nothing of the others.
std::vector<Forecast> half_right(const std::vector<SpacePoint>& points) {
  std::vector<Forecast> out;
  for (const SpacePoint& at : points) {
    Forecast f;
    if (at.point.values.count("a"))
      f.us = 1 + std::abs(std::log2(static_cast<double>(at.point.number("a")) / 32));
    out.push_back(f);
  }
  return out;
}

std::unique_ptr<Search> named_search(const std::string& name, std::vector<KnobSpace> spaces,
                                     uint64_t seed) {
  return make_search(name, std::move(spaces), seed, half_right);
}

}  // namespace

TEST_CASE(
    "every search begins with the default, and without forecasts goes on with the suggestions") {
  for (const std::string& name : kSearches) {
    INFO(name);
    const auto search = named_search(name, {sample_space(), sample_space()}, 1);
    const std::vector<SpacePoint> first = search->propose(3);
    REQUIRE(first.size() == 3);
    CHECK(first[0] == SpacePoint{0, sample_space().default_point()});
    if (name == "guided") continue;
    Point hinted = sample_space().default_point();
    hinted.values["a"] = int64_t{16};
    CHECK(first[1] == SpacePoint{0, hinted});
    CHECK(first[2] == SpacePoint{1, hinted});
  }
}

TEST_CASE("every search proposes each allowed point once and then is done") {
  for (const std::string& name : kSearches) {
    INFO(name);
    const auto search = named_search(name, {sample_space()}, 5);
    const std::vector<SpacePoint> points = all_of(*search, 7);
    CHECK(points.size() == 8 * 8 * 4 - 4);
    CHECK(std::set<SpacePoint>(points.begin(), points.end()).size() == points.size());
    CHECK(search->propose(1).empty());
  }
}

TEST_CASE("points that a search was told of are not proposed") {
  for (const std::string& name : kSearches) {
    INFO(name);
    const auto search = named_search(name, {sample_space()}, 5);
    const SpacePoint known{0, sample_space().default_point()};
    search->learn({{known, 3.0}});
    for (const SpacePoint& at : all_of(*search, 16)) CHECK_FALSE(at == known);
  }
}

TEST_CASE("the same seed and outcomes give the same proposals") {
  for (const std::string& name : kSearches) {
    INFO(name);
    auto run = [&](uint64_t seed) {
      const auto search = named_search(name, {sample_space()}, seed);
      std::vector<SpacePoint> out;
      for (int round = 0; round < 10; ++round) {
        for (const SpacePoint& at : search->propose(4)) {
          search->learn({{at, cost(at)}});
          out.push_back(at);
        }
      }
      return out;
    };
    CHECK(run(7) == run(7));
    if (name != "grid") CHECK_FALSE(run(7) == run(8));
  }
}

TEST_CASE("an empty list of spaces, and a space without knobs") {
  for (const std::string& name : kSearches) {
    INFO(name);
    CHECK(named_search(name, {}, 0)->done());
    const auto search = named_search(name, {KnobSpace{}}, 0);
    CHECK(search->propose(5).size() == 1);
    CHECK(search->done());
  }
}

TEST_CASE("evolution finds a smooth optimum in fewer trials than chance") {
  int evolution_wins = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto trials_to_best = [&](const std::string& name) {
      const auto search = named_search(name, {sample_space()}, seed);
      for (int trial = 1;; ++trial) {
        const SpacePoint at = search->propose(1).at(0);
        if (cost(at) <= 100) return trial;
        search->learn({{at, cost(at)}});
      }
    };
    evolution_wins += trials_to_best("evolutionary") < trials_to_best("random");
  }
  CHECK(evolution_wins >= 16);
}

TEST_CASE("guided: the best forecasts come first, but those without hope never") {
  const auto forecast = [](const std::vector<SpacePoint>& points) {
    std::vector<Forecast> out = half_right(points);
    for (size_t n = 0; n < points.size(); ++n)
      if (points[n].point.number("b") == 4) out[n].hopeless = "b is 4";
    return out;
  };
  const auto search = guided_search({sample_space()}, 3, forecast);
  search->propose(1);  // the default
  int good = 0;
  for (const SpacePoint& at : search->propose(10)) good += at.point.number("a") == 32;
  CHECK(good >= 8);  // one in ten is chance
  for (const SpacePoint& at : all_of(*search, 16)) CHECK(at.point.number("b") != 4);
}

TEST_CASE("guided: points that make one program are proposed once") {
  const auto forecast = [](const std::vector<SpacePoint>& points) {
    std::vector<Forecast> out = half_right(points);
    for (size_t n = 0; n < points.size(); ++n)
      out[n].program = std::to_string(points[n].point.number("a"));
    return out;
  };
  const auto search = guided_search({sample_space()}, 3, forecast);
  const std::vector<SpacePoint> points = all_of(*search, 7);
  CHECK(points.size() == 8 + 1);  // one for each `a`, and the default, which needs no forecast
}

TEST_CASE("guided: trials set the forecasts of a template right") {
  // The first template is forecast to be ten times faster than it is.
  const auto search = guided_search({sample_space(), sample_space()}, 3, half_right);
  const auto us = [](const SpacePoint& at) { return cost(at) * (at.template_index == 0 ? 10 : 1); };
  for (int n = 0; n < 3; ++n)
    for (const SpacePoint& at : search->propose(4)) search->learn({{at, us(at)}});
  int second = 0;
  for (const SpacePoint& at : search->propose(10)) second += at.template_index == 1;
  CHECK(second >= 8);
}

TEST_CASE("guided: finds a smooth optimum in fewer trials than evolution alone") {
  int wins = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto trials_to_best = [&](const std::string& name) {
      const auto search = named_search(name, {sample_space()}, seed);
      for (int trial = 1;; ++trial) {
        const SpacePoint at = search->propose(1).at(0);
        if (cost(at) <= 100) return trial;
        search->learn({{at, cost(at)}});
      }
    };
    wins += trials_to_best("guided") < trials_to_best("evolutionary");
  }
  CHECK(wins >= 16);
}

TEST_CASE("failed points are no parents") {
  const auto search = make_search("evolutionary", {sample_space()}, 3);
  std::vector<SpacePoint> points = search->propose(20);
  for (const SpacePoint& at : points) search->learn({{at, std::nullopt}});
  CHECK(search->propose(20).size() == 20);
}

TEST_CASE("the values of a tile") {
  const std::vector<KnobValue> values = domain_values(tile_domain("t", 4, 3));
  CHECK(values.size() == 6);  // 1x1 1x2 1x4 2x1 2x2 4x1
  const Domain d = tile_domain("t", 12, 2);
  CHECK(static_cast<int64_t>(domain_values(d).size()) == d.size());
}

TEST_CASE("an unknown search names the nearest") {
  CHECK_THROWS_WITH(make_search("evolution", {}, 0), Contains("try: evolutionary"));
}
