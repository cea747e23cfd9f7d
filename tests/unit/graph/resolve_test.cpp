#include <tenon/support/error.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "graph_testing.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

std::vector<int64_t> output_shape(const ModelBuilder& m) {
  const Graph graph = m.resolve();
  return graph.value(graph.outputs.at(0)).shape();
}

}  // namespace

TEST_CASE("a chain of Shape, Gather, Concat and Reshape folds to a number") {
  ModelBuilder m;
  m.input("x", f32, {2, 3, 4}).integers("zero", {0}).integers("minus", {-1});
  m.node("Shape", {"x"}, {"s"}).node("Gather", {"s", "zero"}, {"b"}).set("axis", int64_t{0});
  m.node("Concat", {"b", "minus"}, {"c"}).set("axis", int64_t{0});
  m.node("Reshape", {"x", "c"}, {"y"}).output("y");
  const Graph graph = m.resolve();
  REQUIRE(graph.nodes.size() == 1);
  CHECK(text(graph).find("y: f32[2,12] = Reshape(x) shape=[2,12]") != std::string::npos);
}

TEST_CASE("attributes of old operator sets and inputs of new ones mean the same") {
  ModelBuilder old(11), recent(13);
  for (ModelBuilder* m : {&old, &recent}) m->input("x", f32, {1, 4, 1});
  old.node("Squeeze", {"x"}, {"y"}).set("axes", std::vector<int64_t>{0, -1}).output("y");
  recent.integers("axes", {0, -1}).node("Squeeze", {"x", "axes"}, {"y"}).output("y");
  CHECK(text(old.resolve()).find("Reshape(x) shape=[4]") != std::string::npos);
  CHECK(output_shape(recent) == std::vector<int64_t>{4});

  ModelBuilder sliced(9);
  sliced.input("x", f32, {10, 10}).node("Slice", {"x"}, {"y"});
  sliced.set("starts", std::vector<int64_t>{1, -3})
      .set("ends", std::vector<int64_t>{1000, -1})
      .output("y");
  CHECK(output_shape(sliced) == std::vector<int64_t>{9, 2});

  ModelBuilder broadcast(6);
  broadcast.input("x", f32, {2, 3, 4}).floats("b", {3}, {1, 2, 3}).node("Add", {"x", "b"}, {"y"});
  broadcast.set("axis", int64_t{1}).set("broadcast", int64_t{1}).output("y");
  const Graph graph = broadcast.resolve();
  CHECK(graph.value(graph.nodes.at(0).inputs[1]).shape() == std::vector<int64_t>{3, 1});
}

TEST_CASE("auto_pad becomes pads") {
  ModelBuilder m;
  m.input("x", f32, {1, 1, 5, 6}).floats("w", {1, 1, 2, 3}, std::vector<float>(6, 1));
  m.node("Conv", {"x", "w"}, {"y"})
      .set("auto_pad", "SAME_UPPER")
      .set("strides", std::vector<int64_t>{1, 2})
      .output("y");
  const Graph graph = m.resolve();
  CHECK(graph.nodes.at(0).integers("pads") == std::vector<int64_t>{0, 0, 1, 1});
  CHECK(graph.value(graph.outputs[0]).shape() == std::vector<int64_t>{1, 1, 5, 3});
}

TEST_CASE("softmax ahead of opset 13 works on rows") {
  ModelBuilder m(11);
  m.input("x", f32, {2, 3, 4}).node("Softmax", {"x"}, {"y"}).output("y");
  const std::string graph = text(m.resolve());
  CHECK_THAT(graph, Contains("Reshape(x) shape=[2,12]") && Contains("Softmax") &&
                        Contains("axis=1") && Contains("y: f32[2,3,4]"));
}

TEST_CASE("a graph output that is an input or another output gets a value of its own") {
  ModelBuilder m;
  m.input("x", f32, {2})
      .node("Identity", {"x"}, {"y"})
      .node("Identity", {"y"}, {"z"})
      .output("y")
      .output("z");
  const Graph graph = m.resolve();
  REQUIRE(graph.outputs.size() == 2);
  CHECK(graph.value(graph.outputs[0]).name == "y");
  CHECK(graph.value(graph.outputs[1]).name == "z");
  CHECK(graph.outputs[0] != graph.outputs[1]);
}

TEST_CASE("nodes that do not fit are named with their inputs") {
  const auto message = [](const std::function<void(ModelBuilder&)>& build) {
    ModelBuilder m;
    m.input("x", f32, {2, 3}).input("n", i64, {1});
    build(m);
    m.output("y");
    return user_error([&] { m.resolve(); });
  };
  CHECK_THAT(message([](ModelBuilder& m) {
               m.floats("b", {2}, {1, 2}).node("Add", {"x", "b"}, {"y"});
             }),
             Contains("model error in node \"Add_0\" (Add): shapes 2x3 and 2 do not broadcast") &&
                 Contains("inputs: x f32[2,3], b f32[2]"));
  CHECK_THAT(message([](ModelBuilder& m) {
               m.node("MatMul", {"x", "x"}, {"y"});
             }),
             Contains("the last extent of 2x3 is 3, it must equal the second to last of 2x3, 2"));
  CHECK_THAT(message([](ModelBuilder& m) {
               m.node("Add", {"x", "n"}, {"y"});
             }),
             Contains("types f32 and i64"));
  CHECK_THAT(message([](ModelBuilder& m) {
               m.node("Reshape", {"x", "n"}, {"y"});
             }),
             Contains("extents come from \"n\", which only a run would know"));
  CHECK_THAT(message([](ModelBuilder& m) {
               m.integers("s", {4, -1}).node("Reshape", {"x", "s"}, {"y"});
             }),
             Contains("shape [4,-1] does not divide the 6 elements"));
  CHECK_THAT(message([](ModelBuilder& m) {
               m.node("Transpose", {"x"}, {"y"}).set("perm", std::vector<int64_t>{0, 0});
             }),
             Contains("perm [0,0] is no permutation of the 2 axes"));
  CHECK_THAT(
      message([](ModelBuilder& m) { m.node("Softmax", {"x"}, {"y"}).set("axis", int64_t{2}); }),
      Contains("axis 2 is outside of [-2, 2)"));
  CHECK_THAT(message([](ModelBuilder& m) {
               m.integers("s", {int64_t{1} << 40, 1 << 20}).node("Expand", {"x", "s"}, {"y"});
             }),
             Contains("does not broadcast"));
  CHECK_THAT(message([](ModelBuilder& m) {
               m.integers("s", {int64_t{1} << 46, 2, 3}).node("Expand", {"x", "s"}, {"y"});
             }),
             Contains("larger than an address space"));
}
