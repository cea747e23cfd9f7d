#pragma once
#include <tenon/graph/passes.h>
#include <tenon/support/error.h>

#include <optional>
#include <string>
#include <vector>

#include "graph/onnx/operators.h"

namespace tenon {

/// Walks an ONNX graph in order and writes the canonical one. A rule (rules_*.cpp) sees the current
/// node through it: inputs as canonical values of known type and shape, attributes with defaults,
/// and `emit`.
class Resolver {
 public:
  Resolver(const Graph& onnx, const Evaluator& evaluate);
  Graph run();

  // The current node.
  const Node& node() const { return *node_; }
  int64_t opset() const { return onnx_.opset; }
  int input_count() const { return static_cast<int>(node_->inputs.size()); }
  bool has_input(int i) const;
  bool wants_output(int i) const;
  ValueId input(int i) const;  // UserError when absent
  bool has(const std::string& attribute) const { return node_->attributes.count(attribute) != 0; }

  bool is_constant(ValueId id) const { return graph_.is_constant(id); }
  DType type(ValueId id) const { return *graph_.value(id).type; }
  std::vector<int64_t> shape(ValueId id) const { return graph_.value(id).shape(); }
  int rank(ValueId id) const { return static_cast<int>(graph_.value(id).dims->size()); }
  /// Elements of a constant integer tensor, flattened; nothing when it is not constant.
  std::optional<std::vector<int64_t>> integers(ValueId id) const;
  /// The one element of a constant scalar as a number; nothing when it is not constant or has more
  /// elements.
  std::optional<double> real(ValueId id) const;
  /// integers() of input `i`; a UserError that names `what` when only a run would know it.
  std::vector<int64_t> needed_integers(int i, const std::string& what) const;
  /// Attribute `name` if the node has it, else constant input `i`, else nothing.
  std::optional<std::vector<int64_t>> integers_of(const std::string& name, int i) const;
  /// A negative axis counts from the end; UserError when outside of [-rank, rank).
  int64_t axis(int64_t axis, int64_t rank) const;
  /// All of them, sorted, none twice.
  std::vector<int64_t> axes(const std::vector<int64_t>& axes, int64_t rank) const;

  /// Adds a canonical node. A small one on constants only is computed at once, so that shape chains
  /// fold.
  ValueId emit(const std::string& op, Attributes attributes, const std::vector<ValueId>& inputs);
  ValueId emit(const std::string& op, const std::vector<ValueId>& inputs) {
    return emit(op, {}, inputs);
  }
  ValueId reshape(ValueId id, std::vector<int64_t> shape);
  ValueId cast(ValueId id, DType type);
  ValueId constant(Array array);
  ValueId integer_constant(const std::vector<int64_t>& values);  // i64, rank 1
  /// A rank-0 constant of type `type`.
  ValueId scalar(DType type, double value);
  /// `value` in the type of `like`.
  ValueId scalar_like(ValueId like, double value) { return scalar(type(like), value); }

  /// Output `i` of the current node is `id`.
  void result(int i, ValueId id);

  /// UserError: model error in node NAME (OP): RULE, then the inputs' types and shapes.
  [[noreturn]] void fail(const std::string& rule) const;

 private:
  void resolve_node(const Node& node);
  void bind_outputs();
  bool try_fold(const Node& node, ValueId out);

  const Graph& onnx_;
  const Evaluator& evaluate_;
  Graph graph_;
  std::vector<ValueId> canonical_;  // per ONNX value
  const Node* node_ = nullptr;
  size_t first_new_value_ = 0;  // values from here on were made by the current node
  int emitted_ = 0;             // nodes made by the current node
};

}  // namespace tenon
