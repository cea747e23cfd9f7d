#include <catch2/catch.hpp>

#include <set>

#include <tenon/schedule/knobs.h>

#include "schedule_formulas.h"

using namespace tenon;

namespace {

void tiled(Schedule& s, Knobs& knob) {
  const int64_t i = knob.divisor("tile_i", 12, {.max = 6});
  const std::vector<int64_t> j = knob.tile("tile_j", 24, 3);
  const int64_t k = knob.pick("tile_k", {2, 4, 8}, 4);
  const bool unroll = knob.flag("unroll");
  const std::string at = knob.choice("at", {"none", "inner"});
  knob.require([](const Point& p) { return p.number("tile_i") * p.number("tile_k") <= 24; },
               "the tile is too large");
  Point good;
  good.values["tile_i"] = int64_t{6};
  knob.suggest({good});
  s.split("i", i);
  s.split("j", j[0]);
  s.split("k", k);
  if (unroll) s.unroll("i.i");
  if (at == "inner") s.cache_read("A", "k.o");
}

KnobSpace space() { return survey(tiled, Matmul(12, 24, 16).program(), wide_target()); }

const Domain& domain(const KnobSpace& s, const std::string& name) {
  for (const Domain& d : s.domains)
    if (d.name == name) return d;
  throw std::runtime_error(name);
}

}  // namespace

TEST_CASE("a survey lists the domains with their defaults") {
  const KnobSpace s = space();
  REQUIRE(s.domains.size() == 5);
  CHECK(domain(s, "tile_i").values ==
        std::vector<KnobValue>{int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{6}});
  CHECK(s.default_point().to_json() ==
        R"({"at":"none","tile_i":6,"tile_j":[1,1],"tile_k":4,"unroll":0})");
  CHECK_FALSE(s.why_not(s.default_point()));
  // 24 = 2*2*2*3 over three levels: 10 * 3 ways.
  CHECK(domain(s, "tile_j").size() == 30);
  CHECK(s.size() == 5 * 30 * 3 * 2 * 2);
  REQUIRE(s.suggestions.size() == 1);
  CHECK_FALSE(s.why_not(s.suggestions[0]));
}

TEST_CASE("bound knobs answer from the point and make the schedule") {
  Schedule s(Matmul(12, 24, 16).program(), wide_target());
  Knobs knobs(
      Point::from_json(R"({"at":"inner","tile_i":3,"tile_j":[4,2],"tile_k":8,"unroll":1})"));
  tiled(s, knobs);
  verify_tree(s);
  CHECK(s.trace().size() == 5);
  CHECK(knobs.answers().number("tile_i") == 3);
}

TEST_CASE("why a point is not allowed") {
  const KnobSpace s = space();
  Point p = s.default_point();
  p.values["tile_k"] = int64_t{8};
  CHECK(s.why_not(p).value() == "the tile is too large");
  p.values["tile_k"] = int64_t{5};
  CHECK(s.why_not(p).value() == "knob \"tile_k\" cannot be 5");
  p.values["tile_k"] = int64_t{4};
  p.values["tile_j"] = std::vector<int64_t>{5, 1};
  CHECK(s.why_not(p).value() == "knob \"tile_j\" cannot be 5x1");
  p.values.erase("tile_j");
  CHECK(s.why_not(p).value() == "knob \"tile_j\" has no value");
}

TEST_CASE("random points, mutations and crossings are allowed points, and repeat for a seed") {
  const KnobSpace s = space();
  Rng rng(3), again(3);
  std::set<std::string> seen;
  Point last = s.default_point();
  for (int n = 0; n < 200; ++n) {
    const Point p = s.random_point(rng);
    CHECK(p == s.random_point(again));
    CHECK_FALSE(s.why_not(p));
    const Point near = s.mutate(p, rng), both = s.cross(p, last, rng);
    CHECK(near == s.mutate(p, again));
    CHECK(both == s.cross(p, last, again));
    CHECK_FALSE(s.why_not(near));
    CHECK_FALSE(s.why_not(both));
    CHECK_FALSE(near == p);
    seen.insert(p.to_json());
    last = p;
  }
  CHECK(seen.size() > 100);
}

TEST_CASE("a ladder moves to its neighbour, a tile moves a factor") {
  const KnobSpace s = space();
  Rng rng(5);
  for (int n = 0; n < 50; ++n) {
    CHECK(std::get<int64_t>(domain(s, "tile_k").neighbour(int64_t{2}, rng)) == 4);
    const auto i = std::get<int64_t>(domain(s, "tile_i").neighbour(int64_t{3}, rng));
    CHECK((i == 2 || i == 4));
    const KnobValue j = domain(s, "tile_j").neighbour(std::vector<int64_t>{4, 2}, rng);
    CHECK(domain(s, "tile_j").contains(j));
    CHECK_FALSE(j == KnobValue(std::vector<int64_t>{4, 2}));
  }
}

TEST_CASE("a knob of more weight is changed more often") {
  Domain a, b;
  a.name = "a";
  b.name = "b";
  for (int64_t v = 0; v < 50; ++v) {
    a.values.emplace_back(v);
    b.values.emplace_back(v);
  }
  a.default_value = b.default_value = KnobValue(int64_t{25});
  const KnobSpace space{{a, b}, {}, {}};
  Rng rng(3);
  int of_a = 0;
  for (int n = 0; n < 400; ++n)
    of_a += space.mutate(space.default_point(), rng, {{"a", 9.0}}).number("a") != 25;
  CHECK(of_a > 320);
}
