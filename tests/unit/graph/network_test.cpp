#include <tenon/graph/network.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <thread>

#include "graph_testing.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

ModelBuilder small_net() {
  ModelBuilder m;
  m.input("x", f32, {1, 2, 6, 6})
      .floats("w", {4, 2, 3, 3}, std::vector<float>(72, 0.25F))
      .floats("b", {4}, {1, -2, 3, 0});
  m.node("Conv", {"x", "w", "b"}, {"c"}).set("pads", std::vector<int64_t>{1, 1, 1, 1});
  m.node("Relu", {"c"}, {"r"});
  m.integers("shape", {1, -1}).node("Reshape", {"r", "shape"}, {"f"});
  m.floats("m", {144, 3}, std::vector<float>(432, 0.01F))
      .node("MatMul", {"f", "m"}, {"y"})
      .output("y")
      .output("f");
  return m;
}

/// Self-attention of 3 heads of 8 over 19 positions, with a mask over the keys, as exporters write
/// it.
ModelBuilder attention_net() {
  ModelBuilder m;
  m.input("x", f32, {1, 19, 24}).input("mask", f32, {1, 1, 1, 19});
  m.floats("root", {}, {std::sqrt(8.0F)})
      .integers("heads", {1, 19, 3, 8})
      .integers("flat", {1, 19, 24});
  const auto projected = [&](const std::string& name, const std::vector<int64_t>& perm) {
    std::vector<float> weights(24 * 24);
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = 0.05F * static_cast<float>((i * 7 + name[0]) % 13) - 0.3F;
    m.floats("w" + name, {24, 24}, weights).node("MatMul", {"x", "w" + name}, {name + "0"});
    m.node("Reshape", {name + "0", "heads"}, {name + "1"});
    m.node("Transpose", {name + "1"}, {name}).set("perm", perm);
  };
  projected("q", {0, 2, 1, 3});
  projected("k", {0, 2, 3, 1});
  projected("v", {0, 2, 1, 3});
  m.node("MatMul", {"q", "k"}, {"s"}).node("Div", {"s", "root"}, {"t"});
  m.node("Add", {"t", "mask"}, {"u"}).node("Softmax", {"u"}, {"p"}).set("axis", int64_t{3});
  m.node("MatMul", {"p", "v"}, {"o"}).node("Transpose", {"o"}, {"r"});
  m.set("perm", std::vector<int64_t>{0, 2, 1, 3}).node("Reshape", {"r", "flat"}, {"y"});
  return m.output("y");
}

std::filesystem::path write_model(const TemporaryFolder& folder, const ModelBuilder& m) {
  const std::filesystem::path path = folder.path() / "small.onnx";
  std::ofstream(path, std::ios::binary) << m.bytes();
  return path;
}

void check_close(const Array& ours, const Array& expected) {
  REQUIRE(ours.shape() == expected.shape());
  const std::vector<double> a = ours.to_doubles(), b = expected.to_doubles();
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(1e-5).margin(1e-6));
}

}  // namespace

TEST_CASE("a network computes what its graph says, under default schedules and unscheduled") {
  const TemporaryFolder folder;
  Network network = Network::load(write_model(folder, small_net()), {.threads = 2});
  const Array x = random(f32, {1, 2, 6, 6}, 3);
  const std::vector<Array> expected = run_plainly(network.graph(), {x});
  SECTION("default") { CHECK(network.kernels().at(0).schedule == "default"); }
  SECTION("unscheduled") { network.select_unscheduled(); }
  network.compile();
  for (int run = 0; run < 2; ++run) {
    const std::map<std::string, Array> outputs = network.run({{"x", x}});
    check_close(outputs.at("y"), expected[0]);
    check_close(outputs.at("f"), expected[1]);
  }
}

TEST_CASE("a network runs on a lent pool") {
  const TemporaryFolder folder;
  const std::filesystem::path model = write_model(folder, small_net());
  std::atomic<int> pieces{0};
  auto run = [&](int n, LentTask task) {
    std::vector<std::thread> threads;
    for (int k = 0; k < n; ++k) threads.emplace_back([=] { task(k); });
    for (std::thread& t : threads) t.join();
    pieces += n;
  };
  NetworkOptions options = {.threads = 2};
  Network own = Network::load(model, options);
  options.lent = lend(2, run);
  Network lent = Network::load(model, options);
  own.compile();
  lent.compile();
  CHECK(pieces >= 2);  // kernels are compiled on it too
  const std::map<std::string, Array> inputs = {{"x", random(f32, {1, 2, 6, 6}, 3)}};
  for (const auto& [name, array] : lent.run(inputs))
    CHECK(array.to_doubles() == own.run(inputs).at(name).to_doubles());
}

TEST_CASE("a network runs its attention as one kernel") {
  const TemporaryFolder folder;
  const std::filesystem::path model = write_model(folder, attention_net());
  Array mask = zeros(f32, {1, 1, 1, 19});
  for (int64_t j = 15; j < 19; ++j) mask.data<float>()[j] = -1e9F;
  std::vector<Array> results;
  for (const bool apart : {false, true}) {
    NetworkOptions options{.threads = 2};
    if (apart) options.skip_passes = {"fuse_operators"};
    Network network = Network::load(model, options);
    const bool fused =
        std::any_of(network.kernels().begin(), network.kernels().end(),
                    [](const GroupKernel& k) { return k.name.find("attention") == 0; });
    CHECK(fused != apart);
    network.compile();
    results.push_back(network.run({{"x", random(f32, {1, 19, 24}, 3)}, {"mask", mask}}).at("y"));
  }
  check_close(results[0], results[1]);
}

TEST_CASE("memory that the plan calls free may be overwritten") {
  const TemporaryFolder folder;
  const std::filesystem::path model = write_model(folder, small_net());
  const Array x = random(f32, {1, 2, 6, 6}, 3);
  std::vector<std::map<std::string, Array>> results;
  for (bool poison : {false, true}) {
    Network network = Network::load(model, {.threads = 1, .fuse = false, .poison = poison});
    network.compile();
    network.run({{"x", x}});
    results.push_back(network.run({{"x", x}}));
    if (poison) CHECK(network.arena_bytes() > 0);
  }
  for (const auto& [name, array] : results[0]) {
    const Array& other = results[1].at(name);
    CHECK(std::memcmp(array.raw(), other.raw(), static_cast<size_t>(array.bytes())) == 0);
  }
}

TEST_CASE("a kernel runs on the record of its own formula, or on a neighbour's if that is good") {
  const TemporaryFolder folder;
  Network network = Network::load(write_model(folder, small_net()), {.threads = 1});
  const GroupKernel kernel = network.kernels().at(0);
  LoggedRecord logged;
  const RecordQuery query = record_query(kernel.task, 1);
  logged.where = {"some.jsonl", 7};
  logged.record.program = query.program;
  logged.record.family = query.family;
  logged.record.args = kernel.task.args;
  logged.record.target = query.target;
  logged.record.trace = to_json(kernel.trace);
  logged.record.status = TrialStatus::ok;
  logged.record.check = CheckResult::passed;
  logged.record.samples_us = {1, 1, 1};
  logged.record.tenon = query.tenon;
  logged.record.llvm = query.llvm;
  int asked = 0;
  const TraceCheck accept = [&](const Task& task, const Trace& trace) {
    ++asked;
    return task.name == kernel.task.name && trace == kernel.trace;
  };
  const auto chosen = [&](const TraceCheck& check) {
    network.select(RecordStore({logged}), check);
    return network.kernels().at(0).schedule;
  };
  CHECK(chosen(accept) == "some.jsonl:7");
  CHECK(asked == 0);
  logged.record.program = "another";
  CHECK(chosen(accept) == "adapted from some.jsonl:7");
  CHECK(asked == 1);
  CHECK(chosen({}) == "default");
  CHECK(chosen([](const Task&, const Trace&) { return false; }) == "default");
}

TEST_CASE("a kernel's arguments say which model it is of, and its formula does not") {
  const TemporaryFolder folder;
  const Network network = Network::load(write_model(folder, small_net()), {.threads = 1});
  for (const GroupKernel& kernel : network.kernels()) {
    CHECK_THAT(kernel.task.args,
               Contains("\"model\":\"small\",\"kernel\":\"" + kernel.name + "\""));
    CHECK_THAT(print(kernel.task.program), !Contains("small") && !Contains(kernel.name));
  }
}

TEST_CASE("a network refuses inputs that do not fit") {
  const TemporaryFolder folder;
  Network network = Network::load(write_model(folder, small_net()), {.threads = 1});
  const Array x = zeros(f32, {1, 2, 6, 6});
  const auto message = [&](const std::map<std::string, Array>& inputs) {
    return user_error([&] { network.run(inputs); });
  };
  CHECK_THAT(message({{"x", x}}), Contains("is not compiled") && Contains("try: compile() first"));
  network.compile();
  CHECK_THAT(message({}), Contains("network small: input \"x\" (f32 1x2x6x6) is missing"));
  CHECK_THAT(message({{"x", x}, {"xx", x}}), Contains("has no input \"xx\"") && Contains("try: x"));
  CHECK_THAT(message({{"x", zeros(f32, {1, 2, 6, 7})}}),
             Contains("is f32 1x2x6x6, the array given is f32 1x2x6x7"));
  CHECK_THAT(message({{"x", zeros(f64, {1, 2, 6, 6})}}), Contains("the array given is f64"));
}

namespace {

/// Every constant of two or more dimensions in blocks of 3 along its last one.
void pack_constants(Network& network) {
  for (size_t k = 0; k < network.kernels().size(); ++k) {
    const Task& task = network.kernels()[k].task;
    Schedule s(task.program, task.target);
    for (const Param& p : task.program.params) {
      const int last = static_cast<int>(p.buffer->shape.size()) - 1;
      if (p.role != ParamRole::constant || last < 1) continue;
      std::vector<LayoutDim> layout = {{last, 3, 0}};
      for (int d = 0; d < last; ++d) layout.push_back({d, 1, 0});
      layout.push_back({last, 1, 3});
      s.pack(p.buffer->name, layout, {.when = PackWhen::ahead});
    }
    network.set_trace(k, s.trace(), "packed");
  }
}

}  // namespace

TEST_CASE(
    "constants are packed when a network is compiled, and unpacked when they are wanted again") {
  const TemporaryFolder folder;
  Network network = Network::load(write_model(folder, small_net()), {.threads = 2});
  const Array x = random(f32, {1, 2, 6, 6}, 3);
  const std::vector<Array> expected = run_plainly(network.graph(), {x});
  const int64_t plain_bytes = network.constant_bytes();
  for (const bool packed : {true, false, true}) {
    if (packed)
      pack_constants(network);
    else
      network.select_unscheduled();
    network.compile();
    const std::map<std::string, Array> outputs = network.run({{"x", x}});
    check_close(outputs.at("y"), expected[0]);
    check_close(outputs.at("f"), expected[1]);
    int dropped = 0;
    for (const Value& v : network.graph().values) dropped += v.name == "m" && !v.constant;
    CHECK(dropped == (packed ? 1 : 0));
    if (!packed) CHECK(network.constant_bytes() == plain_bytes);
  }
}

TEST_CASE("constants of equal contents and layout are packed once") {
  const TemporaryFolder folder;
  ModelBuilder m;
  std::vector<float> values(81);
  for (size_t n = 0; n < values.size(); ++n) values[n] = static_cast<float>(n % 7) * 0.1F;
  m.input("x", f32, {2, 9});
  for (const char* name : {"u", "v", "w"}) m.floats(name, {9, 9}, values);
  m.node("MatMul", {"x", "u"}, {"a"}).node("MatMul", {"a", "v"}, {"b"});
  m.node("MatMul", {"b", "w"}, {"y"}).output("y").output("v");
  Network network = Network::load(write_model(folder, m), {.threads = 1});
  const Array x = random(f32, {2, 9}, 3);
  const std::vector<Array> expected = run_plainly(network.graph(), {x});
  pack_constants(network);
  network.compile();
  CHECK(network.constant_bytes() == 2 * 81 * 4);  // one packed, and v, which is an output
  const std::map<std::string, Array> outputs = network.run({{"x", x}});
  check_close(outputs.at("y"), expected[0]);
  check_close(outputs.at("v"), expected[1]);
}
