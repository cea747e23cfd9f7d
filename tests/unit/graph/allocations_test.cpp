#include <tenon/compile/compile.h>
#include <tenon/graph/network.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iostream>

#include "counted_malloc.h"
#include "graph_testing.h"

using namespace tenon;

namespace {

/// Convolutions, a pool, a view, an output that is a view and a product: kernels with and without
/// workspace, values in the arena, inputs and outputs.
std::filesystem::path write_net(const TemporaryFolder& folder) {
  ModelBuilder m;
  m.input("x", f32, {1, 8, 16, 16})
      .floats("w", {32, 8, 3, 3}, std::vector<float>(2304, 0.25F))
      .floats("v", {16, 32, 1, 1}, std::vector<float>(512, 0.5F))
      .floats("m", {1024, 40}, std::vector<float>(40960, 0.01F))
      .integers("shape", {1, -1});
  m.node("Conv", {"x", "w"}, {"c"}).set("pads", std::vector<int64_t>{1, 1, 1, 1});
  m.node("Relu", {"c"}, {"r"}).node("Conv", {"r", "v"}, {"d"});
  m.node("MaxPool", {"d"}, {"p"})
      .set("kernel_shape", std::vector<int64_t>{2, 2})
      .set("strides", std::vector<int64_t>{2, 2});
  m.node("Reshape", {"p", "shape"}, {"f"}).node("MatMul", {"f", "m"}, {"z"});
  m.node("Softmax", {"z"}, {"y"}).output("y").output("f");
  const std::filesystem::path path = folder.path() / "net.onnx";
  std::ofstream(path, std::ios::binary) << m.bytes();
  return path;
}

int64_t allocations_of_a_run(int threads) {
  const TemporaryFolder folder;
  Network network = Network::load(write_net(folder), {.threads = threads});
  network.compile();
  const std::map<std::string, Array> inputs = {{"x", random(f32, {1, 8, 16, 16}, 3)}};
  std::map<std::string, Array> outputs = network.run(inputs);
  network.run_into(inputs, outputs);
  const int64_t before = allocation_count();
  for (int run = 0; run < 3; ++run) network.run_into(inputs, outputs);
  return allocation_count() - before;
}

}  // namespace

TEST_CASE("a network allocates nothing once it has run") {
  if (!counts_allocations()) {
    std::cout << "SKIPPED: a sanitizer owns malloc\n";
    return;
  }
  const int64_t before = allocation_count();
  const Array array = zeros(f32, {8});
  CHECK(allocation_count() > before);  // the counter works
  CHECK(allocations_of_a_run(1) == 0);
  CHECK(allocations_of_a_run(2) == 0);
}

TEST_CASE("a checked call of a kernel allocates nothing") {
  if (!counts_allocations()) {
    std::cout << "SKIPPED: a sanitizer owns malloc\n";
    return;
  }
  // Sums of rows by way of a temporary: the kernel has a workspace.
  const Tensor x = input("X", f32, {6, 8});
  const Axis i("i", 6), j("j", 8), k("k", 8), r("r", 6);
  const Tensor e = compute("E", {i, j}, x(i, j) * Expr(2.0f));
  const Task task("sums", {compute("Y", {r}, sum(e(r, k), k))}, {}, Target::host());
  const Kernel kernel = compile(task, Trace{});
  REQUIRE(kernel.module().needs_workspace());
  const std::vector<Array> list = {full(f32, {6, 8}, 3), zeros(f32, {6})};
  kernel(list[0], list[1]);  // the pools and the workspace are made
  kernel.run(list, serial_pool());
  const int64_t before = allocation_count();
  kernel(list[0], list[1]);
  kernel.run(list, serial_pool());
  CHECK(allocation_count() == before);
  CHECK(list[1].to_doubles()[5] == 48);
}
