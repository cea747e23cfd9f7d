#include <tenon/graph/graph.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <utility>

namespace tenon {

namespace {

template <class T>
const T& get_attribute(const Node& node, const std::string& attribute, const char* kind) {
  auto found = node.attributes.find(attribute);
  TENON_CHECK(found != node.attributes.end(), "node \"{}\" ({}) has no attribute \"{}\"", node.name,
              node.op, attribute);
  const T* value = std::get_if<T>(&found->second);
  TENON_CHECK(value != nullptr, "attribute \"{}\" of node \"{}\" ({}) is not {}", attribute,
              node.name, node.op, kind);
  return *value;
}

}  // namespace

std::vector<int64_t> Value::shape() const {
  TENON_CHECK(dims.has_value(), "the shape of \"{}\" is not known", name);
  std::vector<int64_t> extents;
  for (const Dim& dim : *dims) {
    TENON_CHECK(dim.known(), "dimension \"{}\" of \"{}\" is not bound", dim.symbol, name);
    extents.push_back(dim.extent);
  }
  return extents;
}

int64_t Node::integer(const std::string& attribute) const {
  return get_attribute<int64_t>(*this, attribute, "an integer");
}
double Node::real(const std::string& attribute) const {
  return get_attribute<double>(*this, attribute, "a real number");
}
const std::string& Node::text(const std::string& attribute) const {
  return get_attribute<std::string>(*this, attribute, "a text");
}
DType Node::dtype(const std::string& attribute) const {
  return get_attribute<DType>(*this, attribute, "an element type");
}
const std::vector<int64_t>& Node::integers(const std::string& attribute) const {
  return get_attribute<std::vector<int64_t>>(*this, attribute, "a list of integers");
}

ValueId Graph::add_value(Value value) {
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_constant(std::string name, Array array) {
  const Dims dims(array.shape().begin(), array.shape().end());
  const DType type = array.dtype();
  return add_value({std::move(name), type, dims, std::move(array)});
}

std::vector<int> producers(const Graph& graph) {
  std::vector<int> producer(graph.values.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (ValueId out : graph.nodes[i].outputs)
      if (out != kAbsent) producer.at(static_cast<size_t>(out)) = static_cast<int>(i);
  return producer;
}

std::vector<std::vector<int>> consumers(const Graph& graph) {
  std::vector<std::vector<int>> readers(graph.values.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (ValueId in : graph.nodes[i].inputs) {
      if (in == kAbsent) continue;
      std::vector<int>& list = readers.at(static_cast<size_t>(in));
      if (list.empty() || list.back() != static_cast<int>(i)) list.push_back(static_cast<int>(i));
    }
  return readers;
}

}  // namespace tenon
