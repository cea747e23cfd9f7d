#include <tenon/graph/groups.h>
#include <tenon/graph/memory_plan.h>
#include <tenon/graph/onnx.h>
#include <tenon/support/error.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>

#include "graph_testing.h"

using namespace tenon;

namespace {

/// A model with one of everything that has sizes in it.
std::string small_model() {
  ModelBuilder m;
  m.input("x", f32, {1, 2, 6, 6})
      .floats("w", {2, 2, 3, 3}, std::vector<float>(36, 0.5F))
      .floats("b", {2}, {1, 2});
  m.node("Conv", {"x", "w", "b"}, {"c"}).set("pads", std::vector<int64_t>{1, 1, 1, 1});
  m.node("MaxPool", {"c"}, {"p"})
      .set("kernel_shape", std::vector<int64_t>{2, 2})
      .set("strides", std::vector<int64_t>{2, 2});
  m.integers("pads", {0, 0, 1, 1, 0, 0, 1, 1}).node("Pad", {"p", "pads"}, {"q"});
  m.integers("starts", {1})
      .integers("ends", {4})
      .integers("axes", {2})
      .node("Slice", {"q", "starts", "ends", "axes"}, {"s"});
  m.integers("shape", {0, -1}).node("Reshape", {"s", "shape"}, {"r"});
  m.floats("m", {30, 4}, std::vector<float>(120, 0.1F))
      .node("Gemm", {"r", "m"}, {"g"})
      .node("Softmax", {"g"}, {"y"})
      .output("y");
  return m.bytes();
}

enum class End { refused, loaded };

/// All of import, shapes, passes, groups and plan: a UserError or a result, nothing else.
End run(const std::string& bytes) {
  const Evaluator evaluate = formula_evaluator();
  try {
    const Graph bound = bind_shapes(parse_onnx(bytes, "mutant.onnx"), {});
    const Graph graph = simplify_graph(resolve_operators(bound, evaluate), evaluate, {{}, true});
    const std::vector<Group> groups = group_nodes(graph);
    plan_memory(graph, groups);
    for (const Group& group : groups) group_formula(graph, group);
    return End::loaded;
  } catch (const UserError&) {
    return End::refused;
  }
}

}  // namespace

TEST_CASE("mutated and truncated models end in a clear error or a graph") {
  const std::string original = small_model();
  REQUIRE(run(original) == End::loaded);
  int refused = 0, loaded = 0;
  const auto count = [&](End end) { ++(end == End::refused ? refused : loaded); };
  for (size_t size = 0; size < original.size(); size += 7) count(run(original.substr(0, size)));
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    std::string bytes = original;
    for (int64_t flips = rng.between(1, 4); flips > 0; --flips)
      bytes[static_cast<size_t>(rng.below(static_cast<int64_t>(bytes.size())))] ^=
          static_cast<char>(1 << rng.below(8));
    count(run(bytes));
  }
  CHECK(refused > 100);  // the mutations reach the checks
  CHECK(loaded > 100);   // and do not only break the encoding
}
