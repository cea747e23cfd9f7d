#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "autotvm/search/pool.h"
#include "spaces.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

const std::vector<std::string> kSearches = {"random", "grid", "evolutionary"};

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

}  // namespace

TEST_CASE("every search begins with the default and then the suggestions") {
  for (const std::string& name : kSearches) {
    INFO(name);
    const auto search = make_search(name, {sample_space(), sample_space()}, 1);
    const std::vector<SpacePoint> first = search->propose(3);
    REQUIRE(first.size() == 3);
    CHECK(first[0] == SpacePoint{0, sample_space().default_point()});
    Point hinted = sample_space().default_point();
    hinted.values["a"] = int64_t{16};
    CHECK(first[1] == SpacePoint{0, hinted});
    CHECK(first[2] == SpacePoint{1, hinted});
  }
}

TEST_CASE("every search proposes each allowed point once and then is done") {
  for (const std::string& name : kSearches) {
    INFO(name);
    const auto search = make_search(name, {sample_space()}, 5);
    const std::vector<SpacePoint> points = all_of(*search, 7);
    CHECK(points.size() == 8 * 8 * 4 - 4);
    CHECK(std::set<SpacePoint>(points.begin(), points.end()).size() == points.size());
    CHECK(search->propose(1).empty());
  }
}

TEST_CASE("points that a search was told of are not proposed") {
  for (const std::string& name : kSearches) {
    INFO(name);
    const auto search = make_search(name, {sample_space()}, 5);
    const SpacePoint known{0, sample_space().default_point()};
    search->learn({{known, 3.0}});
    for (const SpacePoint& at : all_of(*search, 16)) CHECK_FALSE(at == known);
  }
}

TEST_CASE("the same seed and outcomes give the same proposals") {
  for (const std::string& name : kSearches) {
    INFO(name);
    auto run = [&](uint64_t seed) {
      const auto search = make_search(name, {sample_space()}, seed);
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
    CHECK(make_search(name, {}, 0)->done());
    const auto search = make_search(name, {KnobSpace{}}, 0);
    CHECK(search->propose(5).size() == 1);
    CHECK(search->done());
  }
}

TEST_CASE("evolution finds a smooth optimum in fewer trials than chance") {
  int evolution_wins = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto trials_to_best = [&](const std::string& name) {
      const auto search = make_search(name, {sample_space()}, seed);
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
