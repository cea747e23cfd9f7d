#include "graph_testing.h"

#include <tenon/graph/onnx.h>
#include <tenon/support/error.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "graph/onnx/read_tensor.h"

namespace tenon {

using tenon_onnx::AttributeProto;
using tenon_onnx::TensorProto;

std::string user_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  FAIL("no UserError");
  return "";
}

std::vector<Array> run_plainly(const Graph& graph, const std::vector<Array>& inputs) {
  Graph live = graph;
  REQUIRE(inputs.size() == graph.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) live.value(graph.inputs[i]).constant = inputs[i];
  for (const Node& node : graph.nodes)
    live.value(node.outputs[0]).constant = evaluate_plainly(live, node);
  std::vector<Array> outputs;
  for (ValueId id : graph.outputs) outputs.push_back(*live.value(id).constant);
  return outputs;
}

namespace {

int onnx_number(DType type) {
  for (int number = 1; number < 30; ++number)
    if (dtype_from_onnx(number) == type) return number;
  return 0;
}

}  // namespace

ModelBuilder::ModelBuilder(int64_t opset) {
  model_.set_ir_version(7);
  model_.add_opset_import()->set_version(opset);
  model_.mutable_graph()->set_name("test");
}

ModelBuilder& ModelBuilder::input(const std::string& name, DType type,
                                  const std::vector<int64_t>& shape) {
  auto* value = model_.mutable_graph()->add_input();
  value->set_name(name);
  auto* tensor = value->mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(onnx_number(type));
  tensor->mutable_shape();
  for (int64_t extent : shape) tensor->mutable_shape()->add_dim()->set_dim_value(extent);
  return *this;
}

ModelBuilder& ModelBuilder::symbolic(const std::string& name,
                                     const std::vector<std::string>& dims) {
  input(name, f32, {});
  auto* shape = model_.mutable_graph()
                    ->mutable_input()
                    ->rbegin()
                    ->mutable_type()
                    ->mutable_tensor_type()
                    ->mutable_shape();
  for (const std::string& dim : dims) {
    const bool number = !dim.empty() && std::isdigit(static_cast<unsigned char>(dim[0]));
    if (number)
      shape->add_dim()->set_dim_value(std::stoll(dim));
    else
      shape->add_dim()->set_dim_param(dim);
  }
  return *this;
}

ModelBuilder& ModelBuilder::integers(const std::string& name, const std::vector<int64_t>& values) {
  TensorProto* tensor = model_.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(TensorProto::INT64);
  tensor->add_dims(static_cast<int64_t>(values.size()));
  for (int64_t value : values) tensor->add_int64_data(value);
  return *this;
}

ModelBuilder& ModelBuilder::floats(const std::string& name, const std::vector<int64_t>& shape,
                                   const std::vector<float>& values) {
  TensorProto* tensor = model_.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(TensorProto::FLOAT);
  for (int64_t extent : shape) tensor->add_dims(extent);
  for (float value : values) tensor->add_float_data(value);
  return *this;
}

ModelBuilder& ModelBuilder::node(const std::string& op, const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs) {
  auto* node = model_.mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_name(op + "_" + std::to_string(model_.graph().node_size() - 1));
  for (const std::string& name : inputs) node->add_input(name);
  for (const std::string& name : outputs) node->add_output(name);
  return *this;
}

AttributeProto* ModelBuilder::attribute(const std::string& name) {
  AttributeProto* attribute = model_.mutable_graph()->mutable_node()->rbegin()->add_attribute();
  attribute->set_name(name);
  return attribute;
}

ModelBuilder& ModelBuilder::set(const std::string& name, int64_t value) {
  AttributeProto* a = attribute(name);
  a->set_type(AttributeProto::INT);
  a->set_i(value);
  return *this;
}

ModelBuilder& ModelBuilder::set(const std::string& name, const char* value) {
  AttributeProto* a = attribute(name);
  a->set_type(AttributeProto::STRING);
  a->set_s(value);
  return *this;
}

ModelBuilder& ModelBuilder::set_real(const std::string& name, float value) {
  AttributeProto* a = attribute(name);
  a->set_type(AttributeProto::FLOAT);
  a->set_f(value);
  return *this;
}

ModelBuilder& ModelBuilder::set(const std::string& name, const std::vector<int64_t>& values) {
  AttributeProto* a = attribute(name);
  a->set_type(AttributeProto::INTS);
  for (int64_t value : values) a->add_ints(value);
  return *this;
}

ModelBuilder& ModelBuilder::output(const std::string& name) {
  model_.mutable_graph()->add_output()->set_name(name);
  return *this;
}

Graph ModelBuilder::load() const {
  Graph graph = parse_onnx(bytes(), "test.onnx");
  verify_graph(graph);
  return graph;
}

Graph ModelBuilder::resolve(const InputBindings& bindings) const {
  const Graph graph = resolve_operators(bind_shapes(load(), bindings), evaluate_plainly);
  verify_graph(graph);
  return graph;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "tenon-graph-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path test_data() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"))
    return std::filesystem::path(cache) / "tenon";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home ? home : "/") / ".cache" / "tenon";
}

}  // namespace tenon
