#include "graph/passes/passes.h"

#include <tenon/support/error.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "graph_testing.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

std::vector<float> ramp(size_t n, float scale, float offset) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = scale * static_cast<float>(i % 7) + offset;
  return values;
}

ModelBuilder conv_bn_model(bool second_reader) {
  ModelBuilder m;
  m.input("x", f32, {1, 2, 4, 4})
      .floats("w", {3, 2, 3, 3}, ramp(54, 0.1F, -0.3F))
      .floats("b", {3}, {1, 2, 3});
  m.floats("scale", {3}, {0.5F, -2, 1.5F}).floats("bias", {3}, {0.1F, 0.2F, 0.3F});
  m.floats("mean", {3}, {0.3F, -1, 2}).floats("variance", {3}, {0.5F, 4, 1});
  m.node("Conv", {"x", "w", "b"}, {"c"});
  m.node("BatchNormalization", {"c", "scale", "bias", "mean", "variance"}, {"n"});
  m.node("Relu", {"n"}, {"y"}).output("y");
  if (second_reader) m.node("Exp", {"c"}, {"z"}).output("z");
  return m;
}

size_t count(const Graph& graph, const std::string& op) {
  return static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                           [&](const Node& node) { return node.op == op; }));
}

Graph simplified(const Graph& graph, const std::vector<std::string>& skip = {}) {
  return simplify_graph(graph, evaluate_plainly, {skip, true});
}

/// Every node's own formula, one after the other.
std::vector<Array> run_formulas(Graph graph, const std::vector<Array>& inputs) {
  const Evaluator evaluate = formula_evaluator();
  for (size_t n = 0; n < inputs.size(); ++n) graph.value(graph.inputs[n]).constant = inputs[n];
  for (const Node& node : graph.nodes)
    graph.value(node.outputs[0]).constant = evaluate(graph, node);
  std::vector<Array> outputs;
  for (ValueId id : graph.outputs) outputs.push_back(*graph.value(id).constant);
  return outputs;
}

/// Convolutions of 3 to 16 to 20 channels, a depthwise one, a residual, a pool, a joint, a mean;
/// `e` is read plain.
ModelBuilder image_model() {
  ModelBuilder m;
  m.input("x", f32, {1, 3, 9, 10});
  m.floats("w0", {16, 3, 3, 3}, ramp(432, 0.1F, -0.3F)).floats("b0", {16}, ramp(16, 1, -3));
  m.floats("w1", {20, 16, 1, 1}, ramp(320, 0.05F, -0.1F)).floats("k", {20, 1, 1}, ramp(20, 1, -3));
  m.floats("w2", {20, 1, 3, 3}, ramp(180, 0.1F, -0.2F));
  m.node("Conv", {"x", "w0", "b0"}, {"c"}).set("pads", std::vector<int64_t>{1, 1, 1, 1});
  m.node("Relu", {"c"}, {"r"});
  m.node("MaxPool", {"r"}, {"p"})
      .set("kernel_shape", std::vector<int64_t>{2, 3})
      .set("strides", std::vector<int64_t>{2, 1})
      .set("pads", std::vector<int64_t>{0, 1, 1, 1});
  m.node("Conv", {"p", "w1"}, {"d"}).node("Mul", {"d", "k"}, {"s"});
  m.node("Conv", {"s", "w2"}, {"g"})
      .set("pads", std::vector<int64_t>{1, 1, 1, 1})
      .set("group", int64_t{20});
  m.node("Add", {"g", "s"}, {"a"}).node("Concat", {"p", "a"}, {"j"}).set("axis", int64_t{1});
  m.node("GlobalAveragePool", {"j"}, {"m"}).node("Softmax", {"m"}, {"y"}).set("axis", int64_t{1});
  m.node("Transpose", {"a"}, {"e"}).output("y").output("e");
  return m;
}

}  // namespace

TEST_CASE("channels stay in blocks from the first convolution to what needs them plain") {
  const Graph before = image_model().resolve();
  for (int64_t block : {4, 8, 16}) {
    const Graph after =
        simplify_graph(before, formula_evaluator(), {.verify = true, .block = block});
    INFO(text(after));
    CHECK(count(after, "Conv") == 0);
    CHECK(count(after, "BlockedConv") == 3);
    CHECK(count(after, "BlockChannels") == 0);  // the image is read as it is, constants are folded
    CHECK(count(after, "UnblockChannels") == 2);  // for Softmax and for Transpose
    const Array x = random(f32, {1, 3, 9, 10}, 5);
    const std::vector<Array> expected = run_formulas(before, {x}), got = run_formulas(after, {x});
    REQUIRE(got.size() == expected.size());
    for (size_t n = 0; n < got.size(); ++n) {
      REQUIRE(got[n].shape() == expected[n].shape());
      const auto a = got[n].to_doubles(), b = expected[n].to_doubles();
      for (size_t i = 0; i < a.size(); ++i)
        REQUIRE(a[i] == Approx(b[i]).epsilon(1e-4).margin(1e-5));
    }
  }
  CHECK(count(simplify_graph(before, formula_evaluator(),
                             {.skip = {"block_channels"}, .verify = true, .block = 8}),
              "BlockedConv") == 0);
}

TEST_CASE("what would not pay stays plain: few channels, a depthwise convolution alone") {
  const Graph few = simplify_graph(conv_bn_model(false).resolve(), formula_evaluator(),
                                   {.verify = true, .block = 16});
  CHECK(count(few, "Conv") == 1);
  ModelBuilder m;
  m.input("x", f32, {1, 32, 9, 9}).floats("w", {32, 1, 3, 3}, ramp(288, 0.1F, -0.3F));
  m.node("Conv", {"x", "w"}, {"y"}).set("group", int64_t{32}).output("y");
  const Graph alone =
      simplify_graph(m.resolve(), formula_evaluator(), {.verify = true, .block = 16});
  CHECK(count(alone, "Conv") == 1);
}

TEST_CASE("scores, softmax and values become one attention") {
  const auto run = [](ModelBuilder m, const std::string& expected) {
    const Graph before = m.resolve();
    const Graph after = simplify_graph(before, formula_evaluator(), {.verify = true});
    INFO(text(after));
    CHECK(text(after).find(expected) != std::string::npos);
    std::vector<Array> inputs;
    uint64_t seed = 3;
    for (ValueId id : before.inputs)
      inputs.push_back(random(f32, before.value(id).shape(), seed++));
    const auto a = run_formulas(after, inputs)[0].to_doubles(),
               b = run_formulas(before, inputs)[0].to_doubles();
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i) REQUIRE(a[i] == Approx(b[i]).epsilon(1e-4).margin(1e-5));
  };
  const auto operands = [](bool turned) {
    ModelBuilder m;
    m.input("q", f32, {2, 3, 5, 8}).input("v", f32, {2, 3, 7, 4}).floats("root", {}, {0.5F});
    if (turned)
      m.input("k", f32, {2, 7, 3, 8})
          .node("Transpose", {"k"}, {"kt"})
          .set("perm", std::vector<int64_t>{0, 2, 3, 1});
    else
      m.input("kt", f32, {2, 3, 8, 7});
    return m;
  };
  const auto finish = [](ModelBuilder m, const std::string& scores) {
    m.node("Softmax", {scores}, {"p"}).set("axis", int64_t{-1});
    return m.node("MatMul", {"p", "v"}, {"y"}).output("y");
  };
  ModelBuilder plain = operands(false);
  plain.node("MatMul", {"q", "kt"}, {"s"});
  run(finish(plain, "s"), "= Attention(q, kt, v) keys_as_columns=1 scale=1");
  ModelBuilder masked = operands(true);
  masked.input("mask", f32, {2, 1, 1, 7}).node("MatMul", {"q", "kt"}, {"s"});
  masked.node("Div", {"s", "root"}, {"t"}).node("Add", {"mask", "t"}, {"u"});
  run(finish(masked, "u"), "Attention(q, kt, v, mask) keys_as_columns=0 scale=2");
  // Scaled queries and keys, which a copy had turned into columns.
  ModelBuilder scaled;
  scaled.input("q", f32, {5, 8})
      .input("k", f32, {7, 8})
      .input("v", f32, {7, 4})
      .floats("root", {}, {0.5F});
  scaled.node("Mul", {"q", "root"}, {"a"})
      .node("Transpose", {"k"}, {"kt"})
      .node("Mul", {"root", "kt"}, {"b"});
  scaled.node("MatMul", {"a", "b"}, {"s"});
  run(finish(scaled, "s"), "Attention(q, k, v) keys_as_columns=0 scale=0.25");
}

TEST_CASE("what is no attention stays as it is") {
  const auto attentions = [](ModelBuilder m) {
    return count(simplify_graph(m.resolve(), formula_evaluator(), {.verify = true}), "Attention");
  };
  const auto model = [](int64_t axis, const char* after_mask, bool second_reader) {
    ModelBuilder m;
    m.input("q", f32, {3, 5, 8}).input("k", f32, {3, 8, 5}).input("v", f32, {3, 5, 4});
    m.input("mask", f32, {5}).floats("two", {}, {2.0F});
    m.node("MatMul", {"q", "k"}, {"s"}).node("Add", {"s", "mask"}, {"t"});
    m.node("Mul", {"t", "two"}, {"u"}).node("Softmax", {after_mask}, {"p"}).set("axis", axis);
    m.node("MatMul", {"p", "v"}, {"y"}).output("y");
    if (second_reader) m.node("Exp", {"s"}, {"z"}).output("z");
    return m;
  };
  CHECK(attentions(model(2, "t", false)) == 1);
  CHECK(attentions(model(1, "t", false)) == 0);  // softmax along the queries
  CHECK(attentions(model(2, "u", false)) == 0);  // the mask is scaled as well
  CHECK(attentions(model(2, "t", true)) == 0);   // the scores are read elsewhere
  ModelBuilder wider;
  wider.input("q", f32, {5, 8}).input("k", f32, {8, 7}).input("v", f32, {7, 4});
  wider.input("mask", f32, {3, 1, 7}).node("MatMul", {"q", "k"}, {"s"});
  wider.node("Add", {"s", "mask"}, {"t"}).node("Softmax", {"t"}, {"p"}).set("axis", int64_t{-1});
  wider.node("MatMul", {"p", "v"}, {"y"}).output("y");
  CHECK(attentions(wider) == 0);  // the mask stretches the scores
  CHECK(count(simplify_graph(model(2, "t", false).resolve(), formula_evaluator(),
                             {.skip = {"fuse_operators"}, .verify = true}),
              "Attention") == 0);
}

TEST_CASE("a transposed convolution keeps channels in blocks") {
  ModelBuilder m;
  m.input("x", f32, {1, 16, 5, 6});
  m.floats("w", {16, 20, 3, 3}, ramp(2880, 0.01F, -0.03F)).floats("b", {20}, ramp(20, 1, -3));
  m.node("ConvTranspose", {"x", "w", "b"}, {"c"})
      .set("strides", std::vector<int64_t>{2, 2})
      .set("pads", std::vector<int64_t>{1, 1, 1, 1})
      .set("output_padding", std::vector<int64_t>{1, 0});
  m.node("Relu", {"c"}, {"y"}).output("y");
  const Graph before = m.resolve();
  const Graph after = simplify_graph(before, formula_evaluator(), {.verify = true, .block = 16});
  INFO(text(after));
  CHECK(count(after, "BlockedConvTranspose") == 1);
  CHECK(count(after, "ConvTranspose") == 0);
  const Array x = random(f32, {1, 16, 5, 6}, 5);
  const Array got = run_formulas(after, {x})[0], expected = run_formulas(before, {x})[0];
  REQUIRE(got.shape() == expected.shape());
  const auto a = got.to_doubles(), b = expected.to_doubles();
  for (size_t i = 0; i < a.size(); ++i) REQUIRE(a[i] == Approx(b[i]).epsilon(1e-4).margin(1e-5));
}

TEST_CASE("convolutions over one dimension keep channels in blocks") {
  ModelBuilder m;
  m.input("x", f32, {2, 3, 30});
  m.floats("w0", {16, 3, 5}, ramp(240, 0.1F, -0.3F)).floats("b0", {16}, ramp(16, 1, -3));
  m.floats("w1", {20, 16, 3}, ramp(960, 0.05F, -0.1F)).floats("k", {20, 1}, ramp(20, 1, -3));
  m.node("Conv", {"x", "w0", "b0"}, {"c"}).set("pads", std::vector<int64_t>{2, 2});
  m.node("Relu", {"c"}, {"r"});
  m.node("MaxPool", {"r"}, {"p"})
      .set("kernel_shape", std::vector<int64_t>{2})
      .set("strides", std::vector<int64_t>{2})
      .set("pads", std::vector<int64_t>{0, 1});
  m.node("Conv", {"p", "w1"}, {"d"}).set("dilations", std::vector<int64_t>{2});
  m.node("Mul", {"d", "k"}, {"s"}).node("GlobalAveragePool", {"s"}, {"g"});
  m.node("Sub", {"s", "g"}, {"y"}).output("y");
  const Graph before = m.resolve();
  for (int64_t block : {4, 16}) {
    const Graph after =
        simplify_graph(before, formula_evaluator(), {.verify = true, .block = block});
    INFO(text(after));
    CHECK(count(after, "BlockedConv") == 2);
    CHECK(count(after, "BlockChannels") == 0);
    CHECK(count(after, "UnblockChannels") == 1);  // for the caller
    const Array x = random(f32, {2, 3, 30}, 5);
    const Array got = run_formulas(after, {x})[0], expected = run_formulas(before, {x})[0];
    REQUIRE(got.shape() == expected.shape());
    const auto a = got.to_doubles(), b = expected.to_doubles();
    for (size_t i = 0; i < a.size(); ++i) REQUIRE(a[i] == Approx(b[i]).epsilon(1e-4).margin(1e-5));
  }
}

TEST_CASE("3x3 convolutions run by Winograd's algorithm where it is allowed and pays") {
  ModelBuilder m;
  m.input("x", f32, {1, 32, 13, 18});
  m.floats("w", {48, 32, 3, 3}, ramp(13824, 0.01F, -0.03F)).floats("b", {48}, ramp(48, 1, -3));
  m.floats("v", {32, 48, 3, 3}, ramp(13824, 0.01F, -0.02F));
  m.floats("s", {32, 32, 3, 3}, ramp(9216, 0.01F, -0.02F));
  m.node("Conv", {"x", "w", "b"}, {"c"}).set("pads", std::vector<int64_t>{1, 1, 1, 1});
  m.node("Relu", {"c"}, {"r"});
  m.node("Conv", {"r", "v"}, {"d"}).set("pads", std::vector<int64_t>{0, 1, 2, 0});
  m.node("Conv", {"d", "s"}, {"e"}).set("strides", std::vector<int64_t>{2, 2});
  m.node("Add", {"e", "e"}, {"y"}).output("y");
  const Graph before = m.resolve();
  const SimplifyOptions allowed{.verify = true, .block = 16, .allow_winograd = true};
  const Graph after = simplify_graph(before, formula_evaluator(), allowed);
  INFO(text(after));
  CHECK(count(after, "WinogradConv") == 2);
  CHECK(count(after, "WinogradWeights") == 0);  // computed now
  CHECK(count(after, "BlockedConv") == 1);      // stride 2
  const Array x = random(f32, {1, 32, 13, 18}, 5);
  const auto got = run_formulas(after, {x})[0].to_doubles(),
             expected = run_formulas(before, {x})[0].to_doubles();
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    REQUIRE(got[i] == Approx(expected[i]).epsilon(1e-4).margin(1e-3));
  SimplifyOptions not_allowed = allowed, skipped = allowed;
  not_allowed.allow_winograd = false;
  skipped.skip = {"use_winograd"};
  for (const SimplifyOptions& options : {not_allowed, skipped})
    CHECK(count(simplify_graph(before, formula_evaluator(), options), "WinogradConv") == 0);
}

TEST_CASE("batch normalisation folds into the convolution before it, bias included") {
  const Graph before = conv_bn_model(false).resolve();
  const Graph after = simplified(before);
  CHECK(count(before, "BatchNormalization") == 1);
  REQUIRE(after.nodes.size() == 3);  // Conv, Add, Relu
  const Array x = random(f32, {1, 2, 4, 4}, 5);
  const std::vector<double> expected = run_plainly(before, {x})[0].to_doubles(),
                            folded = run_plainly(after, {x})[0].to_doubles();
  for (size_t i = 0; i < expected.size(); ++i)
    CHECK(folded[i] == Approx(expected[i]).epsilon(1e-5).margin(1e-6));
}

TEST_CASE("folded weights are exactly those computed in double") {
  const Graph after = simplified(conv_bn_model(false).resolve());
  const Array& weights = *after.value(after.nodes.at(0).inputs[1]).constant;
  const double scale = 0.5F / std::sqrt(0.5F + double{1e-5F});
  CHECK(weights.to_doubles()[1] == static_cast<double>(static_cast<float>((0.1F - 0.3F) * scale)));
}

TEST_CASE("a convolution that another node reads keeps its weights") {
  const Graph after = simplified(conv_bn_model(true).resolve());
  CHECK(count(after, "Conv") == 1);
  CHECK(count(after, "Mul") == 1);  // lower_affine wrote the normalisation as scale and shift
  CHECK(after.value(after.nodes.at(0).inputs[1]).name == "w");
}

TEST_CASE("a pass can be left out, and an unknown one is an error") {
  const Graph resolved = conv_bn_model(false).resolve();
  CHECK(count(simplified(resolved, {"fold_affine", "lower_affine"}), "BatchNormalization") == 1);
  CHECK_THAT(user_error([&] { simplified(resolved, {"fold_afine"}); }),
             Contains("no graph pass \"fold_afine\"") && Contains("fold_affine"));
}

TEST_CASE("a variance that makes the scale infinite is not folded") {
  ModelBuilder m;
  m.input("x", f32, {1, 1, 2, 2})
      .floats("w", {1, 1, 1, 1}, {1})
      .floats("zero", {1}, {0})
      .floats("one", {1}, {1});
  m.floats("minus", {1}, {-1});
  m.node("Conv", {"x", "w"}, {"c"})
      .node("BatchNormalization", {"c", "one", "zero", "zero", "minus"}, {"y"})
      .output("y");
  const Graph after = simplified(m.resolve(), {"lower_affine"});
  CHECK(count(after, "BatchNormalization") == 1);
}

TEST_CASE("constants fold, but an expanded scalar stays small") {
  ModelBuilder m;
  m.input("x", f32, {3, 2}).floats("w", {2, 3}, {1, 2, 3, 4, 5, 6}).node("Transpose", {"w"}, {"t"});
  m.node("Add", {"x", "t"}, {"y"}).output("y");
  m.floats("one", {}, {1})
      .integers("shape", {1 << 20})
      .node("Expand", {"one", "shape"}, {"e"})
      .output("e");
  const Graph after = simplified(m.resolve());
  CHECK(count(after, "Transpose") == 0);
  CHECK(count(after, "Expand") == 1);
  CHECK(after.value(after.nodes.at(0).inputs[1]).constant->to_doubles() ==
        std::vector<double>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("common and dead nodes go") {
  ModelBuilder m;
  m.input("x", f32, {2})
      .node("Exp", {"x"}, {"a"})
      .node("Exp", {"x"}, {"b"})
      .node("Neg", {"x"}, {"unused"});
  m.node("Add", {"a", "b"}, {"y"}).output("y");
  const Graph after = simplified(m.resolve());
  REQUIRE(after.nodes.size() == 2);
  CHECK(after.nodes[1].inputs[0] == after.nodes[1].inputs[1]);
  for (const Value& value : after.values) CHECK(value.name != "unused");
}

TEST_CASE("equal nodes with other attributes are not common") {
  ModelBuilder m;
  m.input("x", f32, {2, 2}).node("LeakyRelu", {"x"}, {"a"}).set_real("alpha", 0.1F);
  m.node("LeakyRelu", {"x"}, {"b"})
      .set_real("alpha", 0.2F)
      .node("Add", {"a", "b"}, {"y"})
      .output("y");
  CHECK(simplified(m.resolve()).nodes.size() == 3);
}

TEST_CASE("the verifier finds what is not well formed") {
  const Graph good = conv_bn_model(false).resolve();
  const auto message = [&](const std::function<void(Graph&)>& damage) {
    Graph graph = good;
    damage(graph);
    try {
      verify_graph(graph);
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    FAIL("accepted");
    return std::string();
  };
  CHECK_THAT(message([](Graph& g) { std::swap(g.nodes[0], g.nodes[1]); }),
             Contains("before anything gives it"));
  CHECK_THAT(message([](Graph& g) { g.nodes[1].outputs = g.nodes[0].outputs; }),
             Contains("comes from"));
  CHECK_THAT(message([](Graph& g) { g.outputs[0] = 1000; }), Contains("names value 1000"));
  CHECK_THAT(message([](Graph& g) { g.value(g.outputs[0]).dims.reset(); }),
             Contains("is not known"));
  CHECK_THAT(message([](Graph& g) { g.value(g.nodes[0].inputs[1]).type = f64; }),
             Contains("another type or shape"));
}

TEST_CASE("a constant too large to interpret is folded by a compiled kernel") {
  constexpr int64_t kRows = 410, kColumns = 300;
  ModelBuilder m;
  m.input("x", f32, {1, kColumns})
      .floats("w", {kRows, kColumns}, ramp(kRows * kColumns, 0.1F, -0.3F));
  m.node("Gemm", {"x", "w"}, {"y"}).set("transB", 1).output("y");
  const Graph graph = simplify_graph(m.resolve(), formula_evaluator(), {.verify = true});
  REQUIRE(graph.nodes.size() == 1);
  const Array& turned = *graph.value(graph.nodes[0].inputs[1]).constant;
  REQUIRE(turned.shape() == Shape{kColumns, kRows});
  const std::vector<float> w = ramp(kRows * kColumns, 0.1F, -0.3F);
  int64_t wrong = 0;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j)
      wrong += turned.data<float>()[j * kRows + i] != w[static_cast<size_t>(i * kColumns + j)];
  CHECK(wrong == 0);
}
