#pragma once
#include <tenon/runtime/array.h>
#include <tenon/support/dtype.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tenon {

/// Index into Graph::values. `kAbsent` stands for an optional input that is left out.
using ValueId = int32_t;
inline constexpr ValueId kAbsent = -1;

/// One dimension of a value: an extent, or a name that bind_shapes gives an extent ("batch").
struct Dim {
  int64_t extent = 0;
  std::string symbol;  // empty once the extent is known

  Dim() = default;
  Dim(int64_t extent) : extent(extent) {}
  Dim(std::string symbol) : symbol(std::move(symbol)) {}
  bool known() const { return symbol.empty(); }
  bool operator==(const Dim&) const = default;
};

using Dims = std::vector<Dim>;

/// A tensor that flows through the graph. Type and shape are unknown ahead of resolve_operators for
/// all values but graph inputs and constants.
struct Value {
  std::string name;
  std::optional<DType> type;
  std::optional<Dims> dims;
  std::optional<Array> constant;  // has the same type and shape

  /// All dimensions as numbers; InternalError when the shape or one of them is not known.
  std::vector<int64_t> shape() const;
};

/// What a node is told beside its inputs. Numbers of either kind keep their width: int64_t and
/// double.
using Attribute = std::variant<int64_t, double, std::string, DType, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>, Array>;
using Attributes = std::map<std::string, Attribute>;

/// An operator applied to values. `op` is a row of the operator table (graph/onnx/operators.h).
struct Node {
  std::string name;
  std::string op;
  Attributes attributes;
  std::vector<ValueId> inputs;  // kAbsent where optional and left out
  std::vector<ValueId> outputs;

  int64_t integer(const std::string& attribute) const;
  double real(const std::string& attribute) const;
  const std::string& text(const std::string& attribute) const;
  DType dtype(const std::string& attribute) const;
  const std::vector<int64_t>& integers(const std::string& attribute) const;
};

/// A dataflow graph, a plain value: nodes in an order in which every value is produced before it is
/// used. Each value has exactly one origin: it is a graph input, a constant, or the output of one
/// node.
struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  /// The ONNX operator set that the nodes' names refer to; 0 once resolve_operators made them
  /// canonical.
  int64_t opset = 0;

  ValueId add_value(Value value);
  ValueId add_constant(std::string name, Array array);
  const Value& value(ValueId id) const { return values.at(static_cast<size_t>(id)); }
  Value& value(ValueId id) { return values.at(static_cast<size_t>(id)); }
  bool is_constant(ValueId id) const { return id != kAbsent && value(id).constant.has_value(); }
};

/// Per value: the index of the node that produces it, or -1 (input, constant).
std::vector<int> producers(const Graph& graph);

/// Per value: the indices of the nodes that read it, ascending, each once.
std::vector<std::vector<int>> consumers(const Graph& graph);

/// Throws InternalError with the graph's text when it is not well formed: an id out of range, a
/// value used ahead of its producer, with two origins or none, a constant of another type or shape
/// than its value; a canonical graph (opset 0) must also know the type and the extents of every
/// value in use.
void verify_graph(const Graph& graph);

/// One line per input, constant, node and output: `y: f32[1,8] = Relu(x)`. Deterministic.
std::string text(const Graph& graph);

/// The graph in the dot language: nodes as boxes, types and shapes on the edges.
std::string dot(const Graph& graph);

}  // namespace tenon
