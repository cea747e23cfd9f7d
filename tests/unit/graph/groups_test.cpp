#include <tenon/graph/groups.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "graph_testing.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

/// "Conv Add Relu | MaxPool": the groups as operator names.
std::string grouped(const ModelBuilder& m, const GroupOptions& options = {}) {
  const Graph graph = m.resolve();
  std::string out;
  for (const Group& group : group_nodes(graph, options)) {
    if (!out.empty()) out += " | ";
    for (size_t i = 0; i < group.nodes.size(); ++i)
      out += (i ? " " : "") + graph.nodes[static_cast<size_t>(group.nodes[i])].op;
  }
  return out;
}

ModelBuilder conv_start() {
  ModelBuilder m;
  m.input("x", f32, {1, 2, 4, 4}).floats("w", {2, 2, 1, 1}, {1, 2, 3, 4}).floats("b", {2}, {1, 2});
  m.node("Conv", {"x", "w", "b"}, {"c"});
  return m;
}

}  // namespace

TEST_CASE("activations join the convolution, also when they read its output twice") {
  ModelBuilder m = conv_start();
  m.floats("three", {}, {3}).floats("six", {}, {6}).floats("zero", {}, {0});
  m.node("Add", {"c", "three"}, {"a"}).node("Clip", {"a", "zero", "six"}, {"l"});
  m.node("Mul", {"c", "l"}, {"p"}).node("Div", {"p", "six"}, {"y"}).output("y");
  CHECK(grouped(m) == "Conv Add Add Max Min Mul Div");
  CHECK(grouped(m, {.fuse = false}) == "Conv | Add | Add | Max | Min | Mul | Div");
}

TEST_CASE("a residual joins the later convolution") {
  ModelBuilder m = conv_start();
  m.node("Relu", {"c"}, {"r"}).node("Conv", {"r", "w"}, {"d"}).node("Add", {"d", "r"}, {"s"});
  m.node("Relu", {"s"}, {"y"}).output("y");
  CHECK(grouped(m) == "Conv Add Relu | Conv Add Relu");
}

TEST_CASE("a value read by another anchor, or given out, ends the group") {
  ModelBuilder m = conv_start();
  m.node("Relu", {"c"}, {"r"}).output("r").node("Exp", {"r"}, {"y"}).output("y");
  CHECK(grouped(m) == "Conv Add Relu | Exp");
}

TEST_CASE("no group on both sides of another: cycles cannot arise") {
  // relu(c) goes through a pool (another anchor) and meets itself again.
  ModelBuilder m = conv_start();
  m.node("Relu", {"c"}, {"r"})
      .node("MaxPool", {"r"}, {"p"})
      .set("kernel_shape", std::vector<int64_t>{1, 1});
  m.node("Add", {"r", "p"}, {"y"}).output("y");
  CHECK(grouped(m) == "Conv Add Relu | MaxPool Add");
}

TEST_CASE("pointwise nodes and movers that nothing else reads go in front of maps and sums") {
  ModelBuilder m;
  m.input("x", f32, {3, 4})
      .node("Exp", {"x"}, {"e"})
      .node("Transpose", {"e"}, {"t"})
      .node("Neg", {"t"}, {"n"});
  m.node("Sqrt", {"n"}, {"s"}).node("ReduceSum", {"s"}, {"y"}).output("y");
  CHECK(grouped(m) == "Exp | Transpose Neg Sqrt ReduceSum");
}

TEST_CASE("views are in no group") {
  ModelBuilder m;
  m.input("x", f32, {2, 6})
      .integers("s", {12})
      .node("Exp", {"x"}, {"e"})
      .node("Reshape", {"e", "s"}, {"r"});
  m.node("Neg", {"r"}, {"y"}).output("y");
  CHECK(grouped(m) == "Exp | Neg");
}

TEST_CASE("equal groups have equal text whatever the model calls things") {
  const auto program = [](const std::string& name) {
    ModelBuilder m;
    m.input(name + "_in", f32, {1, 2, 4, 4}).floats(name + "_w", {2, 2, 1, 1}, {1, 2, 3, 4});
    m.node("Conv", {name + "_in", name + "_w"}, {name})
        .node("Relu", {name}, {name + "_out"})
        .output(name + "_out");
    const Graph graph = m.resolve();
    const std::vector<Group> groups = group_nodes(graph);
    REQUIRE(groups.size() == 1);
    return print(group_formula(graph, groups[0]).program);
  };
  CHECK(program("first") == program("second"));
}

TEST_CASE("a group's program has its inputs and output as parameters and scalars as literals") {
  ModelBuilder m = conv_start();
  m.floats("half", {}, {0.5F}).node("Mul", {"c", "half"}, {"y"}).output("y");
  const Graph graph = m.resolve();
  const std::vector<Group> groups = group_nodes(graph);
  REQUIRE(groups.size() == 1);
  const GroupFormula formula = group_formula(graph, groups[0]);
  REQUIRE(formula.arguments.size() == formula.program.params.size());
  std::vector<std::string> names;
  for (ValueId id : formula.arguments) names.push_back(graph.value(id).name);
  CHECK(names.size() == 4);  // x, w, bias, y
  CHECK(names.back() == "y");
  CHECK_THAT(print(formula.program), Contains("0.5"));
  CHECK(formula.flops == Approx(1 * 2 * 16 * (2 * 2 + 1 + 1)));
}
