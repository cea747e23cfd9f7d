#include <tenon/graph/network.h>
#include <tenon/graph/onnx.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <iostream>

#include "run_case.h"

using namespace tenon;

namespace {

constexpr double kLargestError = 1e-4;  // of probabilities

double largest_difference(const Array& a, const Array& b) {
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  double largest = x.size() == y.size() ? 0 : INFINITY;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i)
    largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

/// Default schedules against what onnxruntime gave for the same input.
void check_network(const std::string& name) {
  const std::filesystem::path folder = onnx_cases() / "nets" / name,
                              data = folder / "test_data_set_0";
  if (!std::filesystem::exists(folder)) {
    std::cout << "SKIPPED: no network in " << folder << "; run scripts/fetch_test_data.sh\n";
    return;
  }
  const Array x = load_tensor_proto(data / "input_0.pb"),
              expected = load_tensor_proto(data / "output_0.pb");
  InputBindings bindings;
  const Graph model = load_onnx(folder / "model.onnx");
  bindings.shapes[model.value(model.inputs.at(0)).name] = x.shape();
  const auto start = std::chrono::steady_clock::now();
  Network network = Network::load(folder / "model.onnx", {.bindings = bindings});
  network.compile();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const auto outputs = network.run({{network.inputs().at(0).name, x}});
  std::cout << name << ": " << network.kernels().size() << " kernels, loaded and compiled in "
            << seconds.count() << " s, arena " << network.arena_bytes() / 1024 << " KB\n";
  const Array& output = outputs.at(network.outputs().at(0).name);
  CHECK(largest_difference(output, expected) < kLargestError);
  Network poisoned = Network::load(folder / "model.onnx", {.bindings = bindings, .poison = true});
  poisoned.compile();
  const auto same = poisoned.run({{network.inputs().at(0).name, x}});
  CHECK(largest_difference(same.at(network.outputs().at(0).name), output) == 0);
}

}  // namespace

TEST_CASE("squeezenet with random weights agrees with onnxruntime") { check_network("squeezenet"); }

TEST_CASE("shufflenet with random weights agrees with onnxruntime") { check_network("shufflenet"); }

TEST_CASE("the text-direction classifier agrees with onnxruntime") {
  check_network("text_direction");
}
