#include <tenon/graph/groups.h>
#include <tenon/graph/memory_plan.h>
#include <tenon/graph/onnx.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <limits>

#include "../unit/graph/graph_testing.h"
#include "mutate.h"

using namespace tenon;
using Catch::Matchers::Contains;
using tenon_onnx::GraphProto;
using tenon_onnx::ModelProto;
using tenon_onnx::TensorProto;

namespace {

using Integers = std::vector<int64_t>;

/// Everything ahead of code: import, shapes, passes, groups, formulas and the memory plan.
void plan_model(const std::string& bytes) {
  const Evaluator evaluate = formula_evaluator();
  const Graph bound = bind_shapes(parse_onnx(bytes, "hostile.onnx"), {});
  const Graph graph = simplify_graph(resolve_operators(bound, evaluate), evaluate, {{}, true});
  const std::vector<Group> groups = group_nodes(graph);
  plan_memory(graph, groups);
  for (const Group& group : groups) group_formula(graph, group);
}

ModelBuilder image(const std::string& op, const std::vector<std::string>& inputs = {"x"}) {
  ModelBuilder m(18);
  m.input("x", f32, {1, 4, 6, 6}).output("y");
  m.node(op, inputs, {"y"});
  return m;
}

/// One small model for each rule that computes with numbers of the file.
std::vector<ModelProto> models() {
  std::vector<ModelProto> out;
  const auto add = [&](ModelBuilder m) { out.push_back(m.proto()); };
  add(image("Conv", {"x", "w"})
          .floats("w", {4, 2, 3, 3}, std::vector<float>(72, 1))
          .set("group", 2)
          .set("pads", Integers{1, 1, 1, 1})
          .set("strides", Integers{2, 1})
          .set("dilations", Integers{1, 2}));
  add(image("ConvTranspose", {"x", "w"})
          .floats("w", {4, 2, 3, 3}, std::vector<float>(72, 1))
          .set("group", 2)
          .set("strides", Integers{2, 2})
          .set("output_padding", Integers{1, 0})
          .set("output_shape", Integers{12, 12}));
  add(image("ConvTranspose", {"x", "w"})
          .floats("w", {4, 2, 3, 3}, std::vector<float>(72, 1))
          .set("pads", Integers{1, 1, 1, 1}));
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"})
    add(image(op)
            .set("kernel_shape", Integers{2, 3})
            .set("strides", Integers{2, 2})
            .set("pads", Integers{0, 1, 0, 1})
            .set("ceil_mode", 1));
  add(image("LRN").set("size", 3));
  add(image("DepthToSpace").set("blocksize", 2));
  add(image("SpaceToDepth").set("blocksize", 2));
  add(image("Flatten").set("axis", 2));
  add(image("Transpose").set("perm", Integers{0, 2, 3, 1}));
  add(image("Softmax").set("axis", 1));
  add(image("ArgMax").set("axis", 1).set("keepdims", int64_t{0}));
  add(image("Shape").set("start", 1).set("end", 3));
  add(image("Cast").set("to", 7));
  add(image("Concat", {"x", "x", "x"}).set("axis", 2));
  add(image("Split", {"x", "n"}).integers("n", {4}).set("axis", 1));
  add(image("Split").set("num_outputs", 1).set("axis", 1));
  add(image("Pad", {"x", "n"}).integers("n", {0, 1, 0, 0, 0, -1, 2, 2}));
  add(image("Pad", {"x", "n"}).integers("n", {0, 1, 0, 0, 0, 1, 2, 2}).set("mode", "reflect"));
  add(image("Slice", {"x", "a", "b", "c", "d"})
          .integers("a", {0, -3})
          .integers("b", {2, 100})
          .integers("c", {1, 2})
          .integers("d", {1, 2}));
  add(image("Reshape", {"x", "n"}).integers("n", {2, -1, 0}));
  add(image("Expand", {"x", "n"}).integers("n", {3, 1, 1, 6, 6}));
  add(image("Tile", {"x", "n"}).integers("n", {1, 2, 3, 1}));
  add(image("Gather", {"x", "n"}).integers("n", {0, -1, 3}).set("axis", 1));
  add(image("GatherND", {"x", "n"}).integers("n", {0}).set("batch_dims", int64_t{0}));
  add(image("Trilu", {"x", "n"}).integers("n", {1}));
  add(image("Squeeze", {"x", "n"}).integers("n", {0}));
  add(image("Unsqueeze", {"x", "n"}).integers("n", {1, -1}));
  add(image("ReduceSum", {"x", "n"}).integers("n", {1, -1}).set("keepdims", int64_t{0}));
  add(image("CumSum", {"x", "n"}).integers("n", {2}));
  add(image("ConstantOfShape", {"n"}).integers("n", {2, 3}));
  ModelBuilder range = image("Range", {"a", "b", "c"});
  range.integers("a", {1}).integers("b", {9}).integers("c", {2});
  for (auto& t : *range.proto().mutable_graph()->mutable_initializer()) t.clear_dims();
  add(range);
  add(image("Pow", {"n", "m"}).integers("n", {3, 4}).integers("m", {2, 70}));
  add(image("Div", {"n", "m"}).integers("n", {7, 4}).integers("m", {2, 3}));
  add(image("Mod", {"n", "m"}).integers("n", {7, 4}).integers("m", {2, 3}));
  add(image("BitShift", {"n", "m"})
          .integers("n", {7, 4})
          .integers("m", {2, 3})
          .set("direction", "LEFT"));
  add(image("LayerNormalization", {"x", "w"})
          .floats("w", {6}, std::vector<float>(6, 1))
          .set("axis", -1));
  return out;
}

int64_t hostile_number(Rng& rng) {
  const int64_t numbers[] = {0,
                             -1,
                             1,
                             2,
                             3,
                             5,
                             64,
                             255,
                             -7,
                             INT32_MAX,
                             int64_t{INT32_MAX} + 1,
                             int64_t{1} << 40,
                             int64_t{1} << 46,
                             int64_t{1} << 62,
                             std::numeric_limits<int64_t>::max(),
                             std::numeric_limits<int64_t>::min()};
  return numbers[rng.below(std::size(numbers))];
}

/// Pointers to every integer of the model that shapes depend on.
std::vector<std::function<void(int64_t)>> numbers_of(ModelProto& model) {
  std::vector<std::function<void(int64_t)>> out;
  for (auto& node : *model.mutable_graph()->mutable_node())
    for (auto& a : *node.mutable_attribute()) {
      if (a.has_i()) out.push_back([&a](int64_t n) { a.set_i(n); });
      for (int i = 0; i < a.ints_size(); ++i)
        out.push_back([&a, i](int64_t n) { a.set_ints(i, n); });
    }
  for (auto& t : *model.mutable_graph()->mutable_initializer()) {
    for (int i = 0; i < t.int64_data_size(); ++i)
      out.push_back([&t, i](int64_t n) { t.set_int64_data(i, n); });
    for (int i = 0; i < t.dims_size(); ++i) out.push_back([&t, i](int64_t n) { t.set_dims(i, n); });
  }
  for (auto& v : *model.mutable_graph()->mutable_input()) {
    auto* shape = v.mutable_type()->mutable_tensor_type()->mutable_shape();
    for (int i = 0; i < shape->dim_size(); ++i)
      out.push_back([shape, i](int64_t n) { shape->mutable_dim(i)->set_dim_value(n); });
  }
  return out;
}

void drop_or_add(ModelProto& model, Rng& rng) {
  GraphProto& graph = *model.mutable_graph();
  auto& node = *graph.mutable_node(0);
  switch (rng.below(6)) {
    case 0:
      node.add_input(rng.chance(0.5) ? "x" : "");
      return;
    case 1:
      node.mutable_input()->RemoveLast();
      return;
    case 2:
      node.add_output("z");
      return;
    case 3:
      if (graph.initializer_size() == 0) return;
      graph.mutable_initializer(0)->clear_int64_data();  // and an extent of 0: an empty list
      if (graph.initializer(0).dims_size() > 0) graph.mutable_initializer(0)->set_dims(0, 0);
      return;
    case 4:
      for (auto& a : *node.mutable_attribute()) a.clear_ints();
      return;
    default:
      graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
          static_cast<int>(rng.between(1, 16)));
  }
}

}  // namespace

TEST_CASE("hostile numbers in every place of a model end in a clear error or a plan") {
  const MemoryLimit memory;
  int refused = 0, planned = 0;
  for (const ModelProto& original : models()) {
    const std::string op = original.graph().node(0).op_type();
    CAPTURE(op);
    for (uint64_t seed = 0; seed < 60; ++seed) {
      CAPTURE(seed);
      const CaseLimit limit(op.c_str(), seed);
      Rng rng(seed);
      ModelProto model = original;
      if (seed > 0) {  // the first one is whole
        const auto numbers = numbers_of(model);
        for (int64_t n = rng.between(1, 3); n > 0; --n)
          numbers[static_cast<size_t>(rng.below(static_cast<int64_t>(numbers.size())))](
              hostile_number(rng));
        if (rng.chance(0.25)) drop_or_add(model, rng);
      }
      const End end = run_case([&] { plan_model(model.SerializeAsString()); });
      ++(end == End::refused ? refused : planned);
      if (seed == 0) CHECK(end == End::done);
    }
  }
  CHECK(refused > 500);
  CHECK(planned > 200);
  CHECK(peak_memory_bytes() < int64_t{2} << 30);
}

TEST_CASE("numbers that would overflow are refused by name") {
  CHECK_THAT(
      user_error([] {
        plan_model(image("GatherND", {"x", "n"}).integers("n", {0}).set("batch_dims", -5).bytes());
      }),
      Contains("with -5 batch axes"));
  CHECK_THAT(user_error([] {
               plan_model(image("Trilu", {"x", "n"}).integers("n", {}).bytes());
             }),
             Contains("the diagonal has 0 elements"));
  CHECK_THAT(user_error([] {
               plan_model(image("DepthToSpace").set("blocksize", int64_t{1} << 31).bytes());
             }),
             Contains("blocksize is 2147483648; it must be in 1..128"));
  CHECK_THAT(user_error([] {
               ModelBuilder m;
               m.input("x", f32, {int64_t{1} << 62, 0}).node("Relu", {"x"}, {"y"}).output("y");
               plan_model(m.bytes());
             }),
             Contains("larger than an address space"));
}
