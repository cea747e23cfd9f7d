#include <tenon/graph/onnx.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>

#include "graph_testing.h"

using namespace tenon;

namespace {

/// The model if it has been fetched; else says so, which CTest counts as skipped.
std::optional<Graph> fetched(const std::string& file) {
  const std::filesystem::path path = test_data() / file;
  if (std::filesystem::exists(path)) return load_onnx(path);
  std::cout << "SKIPPED: " << path << " is not there; run scripts/fetch_test_data.sh\n";
  return std::nullopt;
}

int count(const Graph& graph, const std::string& op) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [&](const Node& n) { return n.op == op; }));
}

}  // namespace

TEST_CASE("the text-direction classifier loads and every shape is inferred") {
  const auto model = fetched("models/ch_ppocr_mobile_v2.0_cls_infer.onnx");
  if (!model) return;
  REQUIRE(model->nodes.size() == 566);
  const Graph bound = bind_shapes(*model, {{{"x", {1, 3, 48, 192}}}, {}});
  const Graph graph = resolve_operators(bound, evaluate_plainly);
  verify_graph(graph);
  CHECK(count(graph, "Conv") == 53);
  CHECK(count(graph, "BatchNormalization") == 35);
  CHECK(graph.value(graph.outputs.at(0)).shape() == std::vector<int64_t>{1, 2});
  CHECK(graph.value(graph.outputs[0]).name == "save_infer_model/scale_0.tmp_1");
}

TEST_CASE("architectures with random weights load") {
  for (const char* name : {"squeezenet", "shufflenet", "resnet50"}) {
    const auto model = fetched(std::string("onnx-1.23.2/nets/") + name + "/model.onnx");
    if (!model) return;
    const Graph graph = resolve_operators(bind_shapes(*model, {}), evaluate_plainly);
    verify_graph(graph);
    const std::vector<int64_t> shape = graph.value(graph.outputs.at(0)).shape();
    CHECK(element_count(shape) == 1000);
  }
}
