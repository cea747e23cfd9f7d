#pragma once
#include <tenon/graph/graph.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

class Resolver;

/// The newest ai.onnx operator set whose changes the table below has been checked against.
inline constexpr int64_t kNewestOpset = 28;
inline constexpr int64_t kOldestOpset = 1;
inline constexpr int kAnyNumber = -1;

/// One operator of the ONNX standard, as far as Tenon reads it.
struct OnnxOperator {
  std::string_view op;
  std::string_view
      versions;  // "6 7 13": the since-versions whose meanings the rule tells apart or covers
  std::string_view attributes;  // "axis:i=0 pads:I to:i!": name, kind (i f s t, capitals for
                                // lists), default or "!"
  int min_inputs, max_inputs;   // kAnyNumber: no upper limit
  int max_outputs;
  /// Writes the node as canonical nodes.
  void (*resolve)(Resolver&);
  /// Why this use of the operator is not supported; empty when it is. Sees attributes with defaults
  /// filled in.
  std::string (*refuse)(const Node&, int64_t opset) = nullptr;
};

/// The table, in alphabetical order.
std::span<const OnnxOperator> onnx_operators();

const OnnxOperator* find_onnx_operator(std::string_view op);

/// One entry of OnnxOperator::attributes.
struct AttributeSpec {
  std::string name;
  char kind = 'i';
  std::string default_text;  // empty: none
  bool required = false;
};
std::vector<AttributeSpec> attribute_specs(const OnnxOperator& row);

}  // namespace tenon
