#include <tenon/graph/graph.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "graph/passes/rewrite.h"

namespace tenon {

namespace {

constexpr size_t kShownElements = 8;

std::string dims_text(const Value& value) {
  if (!value.dims) return "[?]";
  std::vector<std::string> parts;
  for (const Dim& dim : *value.dims)
    parts.push_back(dim.known() ? fmt::format("{}", dim.extent) : dim.symbol);
  return "[" + join(parts, ",") + "]";
}

std::string type_text(const Value& value) {
  return (value.type ? std::string(name(*value.type)) : "?") + dims_text(value);
}

/// Also for ids that no value has: the verifier prints graphs that are not well formed.
std::string name_of(const Graph& graph, ValueId id) {
  if (id == kAbsent) return "none";
  if (id < 0 || static_cast<size_t>(id) >= graph.values.size()) return fmt::format("value {}", id);
  return graph.value(id).name;
}

std::string array_text(const Array& array) {
  const std::vector<double> elements = array.to_doubles();
  std::vector<std::string> parts;
  for (size_t i = 0; i < std::min(elements.size(), kShownElements); ++i)
    parts.push_back(round_trip(elements[i]));
  if (elements.size() > kShownElements) parts.push_back("...");
  return "{" + join(parts) + "}";
}

std::string attribute_text(const Attribute& attribute) {
  struct Printer {
    std::string operator()(int64_t v) const { return fmt::format("{}", v); }
    std::string operator()(double v) const { return round_trip(v); }
    std::string operator()(const std::string& v) const { return "\"" + v + "\""; }
    std::string operator()(DType v) const { return std::string(name(v)); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return fmt::format("[{}]", fmt::join(v, ","));
    }
    std::string operator()(const std::vector<double>& v) const {
      std::vector<std::string> parts;
      for (double x : v) parts.push_back(round_trip(x));
      return "[" + join(parts, ",") + "]";
    }
    std::string operator()(const std::vector<std::string>& v) const {
      return "[" + join(v, ",") + "]";
    }
    std::string operator()(const Array& v) const { return array_text(v); }
  };
  return std::visit(Printer{}, attribute);
}

}  // namespace

std::string attributes_text(const Node& node) {
  std::string text;
  for (const auto& [key, value] : node.attributes) text += " " + key + "=" + attribute_text(value);
  return text;
}

namespace {

std::string node_text(const Graph& graph, const Node& node) {
  std::vector<std::string> inputs, outputs;
  for (ValueId id : node.inputs) inputs.push_back(name_of(graph, id));
  for (ValueId id : node.outputs) {
    const bool known = id >= 0 && static_cast<size_t>(id) < graph.values.size();
    outputs.push_back(name_of(graph, id) + (known ? ": " + type_text(graph.value(id)) : ""));
  }
  const std::string line = join(outputs) + " = " + node.op + "(" + join(inputs) + ")";
  return line + attributes_text(node);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

}  // namespace

std::string text(const Graph& graph) {
  std::string out;
  for (ValueId id : graph.inputs)
    out += "input " + name_of(graph, id) + ": " + type_text(graph.value(id)) + "\n";
  for (const Value& value : graph.values)
    if (value.constant)
      out += "constant " + value.name + ": " + type_text(value) + " " +
             array_text(*value.constant) + "\n";
  for (const Node& node : graph.nodes) out += node_text(graph, node) + "\n";
  for (ValueId id : graph.outputs) out += "output " + name_of(graph, id) + "\n";
  return out;
}

std::string dot(const Graph& graph) {
  std::string out =
      "digraph " + quoted(graph.name.empty() ? "graph" : graph.name) + " {\n  node [shape=box];\n";
  std::vector<std::string> source(graph.values.size());
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    source[static_cast<size_t>(graph.inputs[i])] = fmt::format("in{}", i);
    out += fmt::format("  in{} [shape=ellipse, label={}];\n", i,
                       quoted(name_of(graph, graph.inputs[i])));
  }
  const auto edge = [&](ValueId id, const std::string& to) {
    const std::string& from = source[static_cast<size_t>(id)];
    if (!from.empty())
      out += fmt::format("  {} -> {} [label={}];\n", from, to, quoted(type_text(graph.value(id))));
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    out += fmt::format("  n{} [label={}];\n", i, quoted(node.op));
    for (ValueId id : node.inputs)
      if (id != kAbsent) edge(id, fmt::format("n{}", i));
    for (ValueId id : node.outputs)
      if (id != kAbsent) source[static_cast<size_t>(id)] = fmt::format("n{}", i);
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    out += fmt::format("  out{} [shape=ellipse, label={}];\n", i,
                       quoted(name_of(graph, graph.outputs[i])));
    edge(graph.outputs[i], fmt::format("out{}", i));
  }
  return out + "}\n";
}

}  // namespace tenon
