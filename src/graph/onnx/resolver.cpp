#include "graph/onnx/resolver.h"

#include <tenon/support/text.h>

#include <algorithm>
#include <numeric>

#include "graph/onnx/onnx_operators.h"
#include "graph/passes/constants.h"

namespace tenon {

namespace {

/// Larger constants are left to fold_constants: shape chains are short vectors.
constexpr int64_t kFoldAtOnceElements = 1024;
constexpr double kFoldAtOnceIterations = 1e6;

}  // namespace

Resolver::Resolver(const Graph& onnx, const Evaluator& evaluate)
    : onnx_(onnx), evaluate_(evaluate), canonical_(onnx.values.size(), kAbsent) {
  graph_.name = onnx.name;
}

bool Resolver::has_input(int i) const {
  return i < input_count() && node_->inputs[static_cast<size_t>(i)] != kAbsent;
}

bool Resolver::wants_output(int i) const {
  return static_cast<size_t>(i) < node_->outputs.size() &&
         node_->outputs[static_cast<size_t>(i)] != kAbsent;
}

ValueId Resolver::input(int i) const {
  if (!has_input(i)) fail(fmt::format("input {} is missing", i));
  return canonical_[static_cast<size_t>(node_->inputs[static_cast<size_t>(i)])];
}

std::optional<std::vector<int64_t>> Resolver::integers(ValueId id) const {
  const Value& value = graph_.value(id);
  if (!value.constant) return std::nullopt;
  return integer_elements(*value.constant);
}

std::optional<double> Resolver::real(ValueId id) const {
  const Value& value = graph_.value(id);
  if (!value.constant || value.constant->size() != 1) return std::nullopt;
  return value.constant->to_doubles()[0];
}

std::vector<int64_t> Resolver::needed_integers(int i, const std::string& what) const {
  const ValueId id = input(i);
  std::optional<std::vector<int64_t>> elements = integers(id);
  if (!elements)
    fail(fmt::format(
        "{} come from \"{}\", which only a run would know; shapes must be known before\n"
        "  try: give its contents when binding the inputs",
        what, graph_.value(id).name));
  return *elements;
}

std::optional<std::vector<int64_t>> Resolver::integers_of(const std::string& name, int i) const {
  if (has(name)) return node_->integers(name);
  if (has_input(i)) return needed_integers(i, name);
  return std::nullopt;
}

int64_t Resolver::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank)
    fail(fmt::format("axis {} is outside of [{}, {})", axis, -rank, rank));
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> Resolver::axes(const std::vector<int64_t>& axes, int64_t rank) const {
  std::vector<int64_t> positive;
  for (int64_t a : axes) positive.push_back(axis(a, rank));
  std::sort(positive.begin(), positive.end());
  if (std::adjacent_find(positive.begin(), positive.end()) != positive.end())
    fail(fmt::format("axes [{}] name one axis twice", fmt::join(axes, ",")));
  return positive;
}

void Resolver::fail(const std::string& rule) const {
  std::string inputs;
  for (ValueId id : node_->inputs) {
    inputs += inputs.empty() ? "\n  inputs: " : ", ";
    if (id == kAbsent || canonical_[static_cast<size_t>(id)] == kAbsent) {
      inputs += "none";
      continue;
    }
    const Value& value = graph_.value(canonical_[static_cast<size_t>(id)]);
    inputs += onnx_.value(id).name + " " + info_text({*value.type, value.shape()});
  }
  throw UserError(
      fmt::format("model error in node \"{}\" ({}): {}{}", node_->name, node_->op, rule, inputs));
}

ValueId Resolver::emit(const std::string& op, Attributes attributes,
                       const std::vector<ValueId>& inputs) {
  Node node{node_->name, op, std::move(attributes), inputs, {}};
  if (emitted_++ > 0) node.name += fmt::format(".{}", emitted_);
  TensorInfo info;
  try {
    info = find_operator(op).infer(node, input_infos(graph_, node));
  } catch (const UserError& error) {
    fail(error.what());
  }
  Value value{node.name, info.type, Dims(info.shape.begin(), info.shape.end()), {}};
  checked_bytes(info.type, info.shape, node_->name);
  const ValueId out = graph_.add_value(std::move(value));
  node.outputs = {out};
  if (!try_fold(node, out)) graph_.nodes.push_back(std::move(node));
  return out;
}

/// Computes the node at once when it is small and depends on constants only.
bool Resolver::try_fold(const Node& node, ValueId out) {
  const auto small = [&](ValueId id) {
    return element_count(graph_.value(id).shape()) <= kFoldAtOnceElements;
  };
  for (ValueId id : node.inputs)
    if (id != kAbsent && (!graph_.is_constant(id) || !small(id))) return false;
  if (!evaluate_ || !small(out)) return false;
  if (node_iterations(graph_, node) > kFoldAtOnceIterations) return false;
  graph_.value(out).constant = evaluate_(graph_, node);
  return true;
}

ValueId Resolver::reshape(ValueId id, std::vector<int64_t> shape) {
  if (this->shape(id) == shape) return id;
  if (graph_.is_constant(id) && element_count(shape) == element_count(this->shape(id)))
    return constant(graph_.value(id).constant->reshaped(std::move(shape)));
  return emit("Reshape", {{"shape", std::move(shape)}}, {id});
}

ValueId Resolver::cast(ValueId id, DType type) {
  if (this->type(id) == type) return id;
  return emit("Cast", {{"to", type}}, {id});
}

ValueId Resolver::constant(Array array) {
  return graph_.add_constant(fmt::format("{}.constant{}", node_->name, graph_.values.size()),
                             std::move(array));
}

ValueId Resolver::integer_constant(const std::vector<int64_t>& values) {
  return constant(from_vector<int64_t>({static_cast<int64_t>(values.size())}, values));
}

ValueId Resolver::scalar(DType type, double value) { return constant(full(type, {}, value)); }

void Resolver::result(int i, ValueId id) {
  if (!wants_output(i)) return;
  const ValueId onnx_id = node_->outputs[static_cast<size_t>(i)];
  canonical_[static_cast<size_t>(onnx_id)] = id;
  if (static_cast<size_t>(id) >= first_new_value_)
    graph_.value(id).name = onnx_.value(onnx_id).name;
}

void Resolver::resolve_node(const Node& node) {
  node_ = &node;
  first_new_value_ = graph_.values.size();
  emitted_ = 0;
  const OnnxOperator* row = find_onnx_operator(node.op);
  TENON_CHECK(row != nullptr, "no rule for {}", node.op);
  row->resolve(*this);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    TENON_CHECK(
        node.outputs[i] == kAbsent || canonical_[static_cast<size_t>(node.outputs[i])] != kAbsent,
        "the rule of {} does not give output {}", node.op, i);
}

/// Gives every graph output a value of its own name; one that is an input, a constant or another
/// output too is copied.
void Resolver::bind_outputs() {
  std::vector<int> producer = producers(graph_);
  for (ValueId onnx_id : onnx_.outputs) {
    const std::string& name = onnx_.value(onnx_id).name;
    ValueId id = canonical_[static_cast<size_t>(onnx_id)];
    const bool taken =
        std::find(graph_.outputs.begin(), graph_.outputs.end(), id) != graph_.outputs.end();
    const bool computed =
        static_cast<size_t>(id) < producer.size() && producer[static_cast<size_t>(id)] >= 0;
    if (graph_.value(id).name != name && (taken || !computed)) {
      const Value source = graph_.value(id);
      const ValueId copy = graph_.add_value({name, source.type, source.dims, {}});
      graph_.nodes.push_back({name, "Identity", {}, {id}, {copy}});
      id = copy;
    }
    graph_.value(id).name = name;
    graph_.outputs.push_back(id);
  }
}

Graph Resolver::run() {
  const auto check_size = [](const Value& v) { checked_bytes(*v.type, v.shape(), v.name); };
  for (size_t i = 0; i < onnx_.values.size(); ++i) {
    if (!onnx_.values[i].constant) continue;
    check_size(onnx_.values[i]);
    canonical_[i] = graph_.add_value(onnx_.values[i]);
  }
  for (ValueId id : onnx_.inputs) {
    check_size(onnx_.value(id));
    const ValueId copy = graph_.add_value(onnx_.value(id));
    canonical_[static_cast<size_t>(id)] = copy;
    graph_.inputs.push_back(copy);
  }
  for (const Node& node : onnx_.nodes) resolve_node(node);
  bind_outputs();
  return std::move(graph_);
}

Graph resolve_operators(const Graph& graph, const Evaluator& evaluate) {
  return Resolver(graph, evaluate).run();
}

}  // namespace tenon
