#include <tenon/graph/network.h>
#include <tenon/support/error.h>
#include <tenon/support/files.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "../unit/graph/graph_testing.h"
#include "interp/interp.h"
#include "mutate.h"

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

/// What a mutant may cost here and still be run; larger ones are loaded only.
constexpr double kMostFlops = 1e6;
constexpr int64_t kMostBytes = 16 << 20;

bool is_small(const Network& network) {
  int64_t bytes = network.arena_bytes();
  double flops = 0;
  for (const auto& list : {network.inputs(), network.outputs()})
    for (const NamedShape& s : list) bytes += element_count(s.shape) * byte_size(s.dtype);
  for (const GroupKernel& k : network.kernels()) flops += k.task.flops * k.uses;
  return bytes <= kMostBytes && flops <= kMostFlops;
}

std::map<std::string, Array> sample_inputs(const Network& network) {
  std::map<std::string, Array> inputs;
  for (const NamedShape& s : network.inputs()) inputs[s.name] = random(s.dtype, s.shape, 5);
  return inputs;
}

/// The graph node by node in the interpreter.
std::map<std::string, Array> interpret_graph(Graph graph,
                                             const std::map<std::string, Array>& inputs) {
  const Evaluator evaluate = formula_evaluator();
  for (ValueId id : graph.inputs) graph.value(id).constant = inputs.at(graph.value(id).name);
  for (const Node& node : graph.nodes)
    graph.value(node.outputs[0]).constant = evaluate(graph, node);
  std::map<std::string, Array> outputs;
  for (ValueId id : graph.outputs) outputs[graph.value(id).name] = *graph.value(id).constant;
  return outputs;
}

void check_equal(const std::map<std::string, Array>& ours,
                 const std::map<std::string, Array>& expected) {
  REQUIRE(ours.size() == expected.size());
  for (const auto& [name, array] : ours) {
    const std::vector<double> a = array.to_doubles(), b = expected.at(name).to_doubles();
    REQUIRE(a.size() == b.size());
    double scale = 1e-30;
    for (double value : b) scale = std::isfinite(value) ? std::max(scale, std::abs(value)) : scale;
    for (size_t i = 0; i < a.size(); ++i) {
      const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])) ||
                        std::abs(a[i] - b[i]) <= 1e-4 * scale || !std::isfinite(a[i] - b[i]);
      if (!same) FAIL("output " << name << "[" << i << "] is " << a[i] << ", not " << b[i]);
    }
  }
}

struct Tally {
  int refused = 0, loaded = 0, run = 0;
};

/// Everything from the file to the outputs: a UserError or what the interpreter says of the same
/// graph, nothing else.
void run_mutant(const std::string& path, const std::string& bytes, Tally& tally) {
  REQUIRE(!write_file(path, bytes));
  const End end = run_case([&] {
    Network network = Network::load(path, {.threads = 1});
    if (!is_small(network)) return;
    network.select_unscheduled();
    network.compile();
    const std::map<std::string, Array> inputs = sample_inputs(network);
    check_equal(network.run(inputs), interpret_graph(network.graph(), inputs));
    ++tally.run;
  });
  ++(end == End::refused ? tally.refused : tally.loaded);
}

}  // namespace

TEST_CASE("a thousand mutated and fifty truncated models end in a clear error or a right result") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "mutant.onnx").string(), original = small_model();
  const MemoryLimit memory;
  Tally tally;
  run_mutant(path, original, tally);
  REQUIRE(tally.run == 1);
  for (uint64_t cut = 0; cut < 50; ++cut) {
    CAPTURE(cut);
    const CaseLimit limit("truncated model", cut);
    run_mutant(path, original.substr(0, original.size() * cut / 50), tally);
  }
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const CaseLimit limit("mutated model", seed);
    Rng rng(seed);
    run_mutant(path, mutate_bytes(original, rng), tally);
  }
  CAPTURE(tally.refused, tally.loaded, tally.run);
  CHECK(tally.refused > 200);  // the mutations reach the checks
  CHECK(tally.run > 100);      // and do not only break the encoding
  CHECK(peak_memory_bytes() < int64_t{2} << 30);
}
