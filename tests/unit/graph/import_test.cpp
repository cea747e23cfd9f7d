#include <tenon/graph/onnx.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "graph_testing.h"

using namespace tenon;
using Catch::Matchers::Contains;
using tenon_onnx::TensorProto;

namespace {

ModelBuilder add_model(TensorProto weights) {
  ModelBuilder m;
  m.input("x", f32, {2});
  weights.set_name("w");
  *m.proto().mutable_graph()->add_initializer() = weights;
  m.node("Identity", {"w"}, {"y"}).output("y");
  return m;
}

Array constant_w(const ModelBuilder& m) {
  const Graph graph = m.load();
  for (const Value& value : graph.values)
    if (value.name == "w") return *value.constant;
  FAIL("no w");
  return {};
}

TensorProto tensor(TensorProto::DataType type, const std::vector<int64_t>& dims) {
  TensorProto t;
  t.set_data_type(type);
  for (int64_t dim : dims) t.add_dims(dim);
  return t;
}

}  // namespace

TEST_CASE("initialisers in every encoding") {
  SECTION("raw") {
    TensorProto t = tensor(TensorProto::FLOAT, {2});
    const float values[] = {1.5F, -2};
    t.set_raw_data(values, sizeof values);
    CHECK(constant_w(add_model(t)).to_doubles() == std::vector<double>{1.5, -2});
  }
  SECTION("float_data") {
    TensorProto t = tensor(TensorProto::FLOAT, {2});
    t.add_float_data(1.5F);
    t.add_float_data(-2);
    CHECK(constant_w(add_model(t)).to_doubles() == std::vector<double>{1.5, -2});
  }
  SECTION("int32_data holds the bits of 16-bit floats") {
    TensorProto t = tensor(TensorProto::FLOAT16, {2});
    t.add_int32_data(0x3e00);
    t.add_int32_data(0xc000);
    CHECK(constant_w(add_model(t)).to_doubles() == std::vector<double>{1.5, -2});
  }
  SECTION("int32_data holds small integers and booleans") {
    TensorProto t = tensor(TensorProto::INT8, {2});
    t.add_int32_data(-128);
    t.add_int32_data(127);
    CHECK(constant_w(add_model(t)).to_doubles() == std::vector<double>{-128, 127});
    TensorProto b = tensor(TensorProto::BOOL, {2});
    b.add_int32_data(0);
    b.add_int32_data(7);
    CHECK(constant_w(add_model(b)).to_doubles() == std::vector<double>{0, 1});
  }
  SECTION("int64_data, double_data, uint64_data") {
    TensorProto i = tensor(TensorProto::INT64, {});
    i.add_int64_data(-5);
    CHECK(constant_w(add_model(i)).to_doubles() == std::vector<double>{-5});
    TensorProto d = tensor(TensorProto::DOUBLE, {1});
    d.add_double_data(0.1);
    CHECK(constant_w(add_model(d)).to_doubles() == std::vector<double>{0.1});
    TensorProto u = tensor(TensorProto::UINT32, {1});
    u.add_uint64_data(4000000000U);
    CHECK(constant_w(add_model(u)).to_doubles() == std::vector<double>{4e9});
  }
  SECTION("no elements need no data") {
    CHECK(constant_w(add_model(tensor(TensorProto::FLOAT, {3, 0}))).shape() == Shape{3, 0});
  }
}

TEST_CASE("initialisers that do not fit their shape are refused before memory is asked for") {
  const auto message = [](const TensorProto& t) {
    return user_error([&] { add_model(t).load(); });
  };
  TensorProto t = tensor(TensorProto::FLOAT, {1 << 30, 1 << 30});
  t.set_raw_data("12345678");
  CHECK_THAT(message(t), Contains("needs 4611686018427387904 bytes, 8 are stored") &&
                             Contains("initialiser \"w\""));
  CHECK_THAT(message(tensor(TensorProto::FLOAT, {int64_t{1} << 40, int64_t{1} << 40})),
             Contains("more elements"));
  CHECK_THAT(message(tensor(TensorProto::FLOAT, {-1})), Contains("dimension -1 is negative"));
  CHECK_THAT(message(tensor(TensorProto::FLOAT, {2})), Contains("needs 2 elements, 0 are stored"));
  TensorProto i = tensor(TensorProto::INT8, {1});
  i.add_int32_data(128);
  CHECK_THAT(message(i), Contains("element 0 is 128, which is no int8"));
}

TEST_CASE("external data is read from the model's folder only") {
  const TemporaryFolder folder;
  const float values[] = {1, 2, 3};
  std::ofstream(folder.path() / "w.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(values), sizeof values);
  const auto load = [&](const std::string& location, const std::string& offset,
                        const std::string& length) {
    TensorProto t = tensor(TensorProto::FLOAT, {2});
    t.set_data_location(TensorProto::EXTERNAL);
    const auto entry = [&](const std::string& key, const std::string& value) {
      auto* pair = t.add_external_data();
      pair->set_key(key);
      pair->set_value(value);
    };
    entry("location", location);
    if (!offset.empty()) entry("offset", offset);
    if (!length.empty()) entry("length", length);
    return parse_onnx(add_model(t).bytes(), "m.onnx", folder.path());
  };
  CHECK(load("w.bin", "4", "8").value(0).constant->to_doubles() == std::vector<double>{2, 3});
  const auto message = [&](const std::string& location, const std::string& offset,
                           const std::string& length) {
    return user_error([&] { load(location, offset, length); });
  };
  CHECK_THAT(message("w.bin", "8", "8"),
             Contains("needs 8 bytes at offset 8 of \"w.bin\", which has 12"));
  CHECK_THAT(message("w.bin", "9223372036854775807", ""), Contains("which has 12"));
  CHECK_THAT(message("w.bin", "-4", ""), Contains("offset \"-4\""));
  CHECK_THAT(message("w.bin", "", "12"), Contains("needs 8 bytes, 12 are stored"));
  CHECK_THAT(message("v.bin", "", ""), Contains("does not exist"));
  CHECK_THAT(message("../w.bin", "", ""), Contains("outside of the model's folder"));
  CHECK_THAT(message("/etc/passwd", "", ""), Contains("outside of the model's folder"));
  std::filesystem::create_symlink("/etc/passwd", folder.path() / "link");
  CHECK_THAT(message("link", "", ""), Contains("outside of the model's folder"));
}

TEST_CASE("initialisers listed as inputs are no inputs") {
  ModelBuilder m;
  m.input("x", f32, {2})
      .input("w", f32, {2})
      .floats("w", {2}, {1, 2})
      .node("Add", {"x", "w"}, {"y"})
      .output("y");
  const Graph graph = m.load();
  REQUIRE(graph.inputs.size() == 1);
  CHECK(graph.value(graph.inputs[0]).name == "x");
}

TEST_CASE("everything unsupported comes in one list with node names") {
  ModelBuilder m;
  m.input("x", f32, {2});
  m.input("s", f32, {2});
  m.proto().mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(
      TensorProto::STRING);
  m.node("Einsum", {"x"}, {"a"}).set("equation", "i->i");
  m.node("Relu", {"x"}, {"b"}).set("strange", int64_t{1});
  m.node("MaxPool", {"x"}, {"c", "indices"}).set("kernel_shape", std::vector<int64_t>{2});
  m.node("Cast", {"x"}, {"d"}).set("to", int64_t{TensorProto::FLOAT8E5M2});
  m.node("FusedGelu", {"x"}, {"e"});
  m.proto().mutable_graph()->mutable_node(4)->set_domain("com.microsoft");
  m.node("If", {"x"}, {"f"});
  auto* branch = m.proto().mutable_graph()->mutable_node(5)->add_attribute();
  branch->set_name("then_branch");
  branch->set_type(tenon_onnx::AttributeProto::GRAPH);
  m.node("Concat", {"x"}, {"g"});
  m.output("b");
  const std::string message = user_error([&] { m.load(); });
  CHECK_THAT(message, Contains("model \"test.onnx\" uses 8 things that Tenon does not support"));
  CHECK_THAT(message, Contains("input \"s\": element type string"));
  CHECK_THAT(message, Contains("node \"Einsum_0\" (Einsum): the operator"));
  CHECK_THAT(message, Contains("node \"Relu_1\" (Relu): attribute strange"));
  CHECK_THAT(message, Contains("node \"MaxPool_2\" (MaxPool): the second output (indices)"));
  CHECK_THAT(message, Contains("node \"Cast_3\" (Cast): attribute to = float8e5m2"));
  CHECK_THAT(message, Contains("(com.microsoft.FusedGelu): an operator of domain com.microsoft"));
  CHECK_THAT(message, Contains("(If): the operator, which runs a subgraph"));
  CHECK_THAT(message, Contains("(Concat): attribute axis left out"));
}

TEST_CASE("operator sets") {
  const auto message = [](int64_t opset, const std::string& op) {
    ModelBuilder m(opset);
    m.input("x", f32, {2}).node(op, {"x"}, {"y"}).output("y");
    return user_error([&] { m.load(); });
  };
  CHECK_THAT(message(99, "Relu"), Contains("operator set 99 of ai.onnx"));
  CHECK_THAT(message(5, "Relu"),
             Contains("the operator as of operator set 5 (supported from 6 on)"));
  CHECK_THAT(message(8, "Erf"),
             Contains("the operator as of operator set 8 (supported from 9 on)"));
  ModelBuilder unused(13);
  auto* import = unused.proto().add_opset_import();
  import->set_domain("com.microsoft");
  import->set_version(1);
  unused.input("x", f32, {2}).node("Relu", {"x"}, {"y"}).output("y");
  CHECK_NOTHROW(unused.load());
}

TEST_CASE("models that are not well formed") {
  const auto message = [](const std::function<void(ModelBuilder&)>& change) {
    ModelBuilder m;
    m.input("x", f32, {2}).node("Relu", {"x"}, {"y"});
    change(m);
    return user_error([&] { m.load(); });
  };
  CHECK_THAT(message([](ModelBuilder&) {}), Contains("the graph has no outputs"));
  CHECK_THAT(message([](ModelBuilder& m) { m.output("z"); }),
             Contains("the graph's outputs reads \"z\""));
  CHECK_THAT(message([](ModelBuilder& m) { m.node("Relu", {"yy"}, {"z"}).output("z"); }),
             Contains("node \"Relu_1\" (Relu) reads \"yy\"") && Contains("nearest: y"));
  CHECK_THAT(message([](ModelBuilder& m) { m.node("Relu", {"x"}, {"y"}).output("y"); }),
             Contains("defines \"y\", which exists already"));
  CHECK_THAT(user_error([] { parse_onnx("no model", "a.onnx"); }),
             Contains("\"a.onnx\" is not an ONNX model"));
  CHECK_THAT(user_error([] { parse_onnx("", "a.onnx"); }), Contains("is not an ONNX model"));
  CHECK_THAT(user_error([] { load_onnx("/nowhere/a.onnx"); }), Contains("no such file"));
  CHECK_THAT(user_error([] { load_onnx("/tmp"); }), Contains("not a regular file"));
}

TEST_CASE("binding shapes") {
  ModelBuilder m;
  m.symbolic("x", {"batch", "3"})
      .symbolic("z", {"batch", "?", "?"})
      .node("Relu", {"x"}, {"y"})
      .output("y");
  const Graph model = m.load();
  const auto message = [&](const std::map<std::string, std::vector<int64_t>>& shapes) {
    return user_error([&] { bind_shapes(model, {shapes, {}}); });
  };
  const Graph bound = bind_shapes(model, {{{"z", {4, 5, 6}}}, {}});
  CHECK(bound.value(bound.inputs[0]).shape() == std::vector<int64_t>{4, 3});
  CHECK_THAT(message({}), Contains("the shape of x ([batch, 3]), z ([batch, z.1, z.2]) is open") &&
                              Contains("--shape x=?x3 --shape z=?x?x?"));
  CHECK_THAT(message({{"xx", {1, 3}}}), Contains("has no input \"xx\"") && Contains("try: x"));
  CHECK_THAT(message({{"x", {1}}}), Contains("it has rank 2, the shape given has 1"));
  CHECK_THAT(message({{"x", {1, 4}}}), Contains("dimension 1 is 3 in the model, not 4"));
  CHECK_THAT(message({{"x", {1, 3}}, {"z", {2, 1, 1}}}),
             Contains("dimension \"batch\" is 1 already, not 2"));
  CHECK_THAT(message({{"x", {-1, 3}}}), Contains("extent -1 is negative"));
  CHECK_THAT(user_error([&] {
               bind_shapes(model, {{}, {{"x", zeros(i64, {1, 3})}}});
             }),
             Contains("input \"x\" is f32 in the model, the array given is i64"));
}
