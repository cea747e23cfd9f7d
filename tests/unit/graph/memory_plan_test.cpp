#include <tenon/graph/memory_plan.h>
#include <tenon/support/rng.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "graph_testing.h"

using namespace tenon;

namespace {

std::vector<BufferLife> random_lives(Rng& rng) {
  std::vector<BufferLife> lives(static_cast<size_t>(rng.between(0, 40)));
  for (BufferLife& life : lives) {
    life.bytes = rng.chance(0.1) ? 0 : rng.between(1, 5000);
    life.first = static_cast<int>(rng.below(20));
    life.last = life.first + static_cast<int>(rng.below(6));
  }
  return lives;
}

int64_t most_live_bytes(const std::vector<BufferLife>& lives) {
  int64_t most = 0;
  for (int step = 0; step < 30; ++step) {
    int64_t bytes = 0;
    for (const BufferLife& life : lives)
      if (life.first <= step && step <= life.last) bytes += (life.bytes + 63) / 64 * 64;
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

TEST_CASE("no two buffers that live together overlap, all are aligned and inside") {
  const uint64_t seed = 20;
  CAPTURE(seed);
  Rng rng(seed);
  for (int round = 0; round < 300; ++round) {
    const std::vector<BufferLife> lives = random_lives(rng);
    const ArenaLayout layout = place_buffers(lives);
    for (size_t a = 0; a < lives.size(); ++a) {
      REQUIRE(layout.offsets[a] % 64 == 0);
      REQUIRE(layout.offsets[a] + lives[a].bytes <= layout.bytes);
      for (size_t b = 0; b < a; ++b) {
        const bool together = lives[a].first <= lives[b].last && lives[b].first <= lives[a].last;
        const bool apart = layout.offsets[a] + lives[a].bytes <= layout.offsets[b] ||
                           layout.offsets[b] + lives[b].bytes <= layout.offsets[a];
        const bool empty = lives[a].bytes == 0 || lives[b].bytes == 0;
        REQUIRE((!together || apart || empty));
      }
    }
    REQUIRE(layout.bytes >= most_live_bytes(lives));
    REQUIRE(layout.bytes <= 2 * most_live_bytes(lives) + 64);
  }
}

TEST_CASE("a chain of equal buffers needs two places") {
  std::vector<BufferLife> lives;
  for (int i = 0; i < 10; ++i) lives.push_back({1000, i, i + 1});
  CHECK(place_buffers(lives).bytes == 2 * 1024);
}

TEST_CASE("a gap is filled before the arena grows") {
  // The small one fits between the two large ones that live with it.
  const ArenaLayout layout = place_buffers({{640, 0, 2}, {320, 0, 0}, {512, 0, 2}, {64, 1, 2}});
  CHECK(layout.bytes == 640 + 512 + 320);
  CHECK(layout.offsets[3] < 640 + 512 + 320);
}

TEST_CASE("views share their input's place and keep it alive") {
  ModelBuilder m;
  m.input("x", f32, {4, 8}).integers("flat", {32});
  m.node("Exp", {"x"}, {"a"}).node("Reshape", {"a", "flat"}, {"v"});
  m.node("MatMul", {"x", "w"}, {"u"})
      .node("Softmax", {"u"}, {"s"})
      .node("Neg", {"v"}, {"n"})
      .output("n")
      .output("s");
  m.proto().mutable_graph()->mutable_node()->SwapElements(0, 0);
  m.floats("w", {8, 8}, std::vector<float>(64, 0.5F));
  const Graph graph = m.resolve();
  const std::vector<Group> groups = group_nodes(graph);
  const MemoryPlan plan = plan_memory(graph, groups);
  const auto home = [&](const std::string& name) {
    for (size_t i = 0; i < graph.values.size(); ++i)
      if (graph.values[i].name == name) return plan.homes[i];
    FAIL(name);
    return MemoryPlan::Home{};
  };
  CHECK(home("v").root == home("a").root);
  CHECK(home("v").place == MemoryPlan::Place::arena);
  CHECK(home("u").offset != home("a").offset);  // "a" is still read, through its view
  CHECK(home("n").place == MemoryPlan::Place::output);
  CHECK(home("x").place == MemoryPlan::Place::input);
  CHECK(home("w").place == MemoryPlan::Place::constant);
}
