#include <tenon/graph/groups.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/onnx/operators.h"
#include "graph/passes/constants.h"
#include "kernels/axes.h"

namespace tenon {

namespace {

std::string lower_case(std::string_view word) {
  std::string out;
  for (char c : word) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

Expr literal(const Array& array) {
  if (const auto whole = integer_elements(array)) return int_imm(whole->at(0), array.dtype());
  return float_imm(array.to_doubles().at(0), array.dtype());
}

class FormulaBuilder {
 public:
  FormulaBuilder(const Graph& graph, const Group& group) : graph_(graph), group_(group) {
    for (int i : group.nodes) node_of_[node(i).outputs[0]] = i;
  }

  GroupFormula build() {
    const Node& anchor = node(group_.anchor);
    const bool map = operator_of(anchor).kind == OperatorKind::pointwise;
    GroupFormula formula;
    formula.name = map ? "map" : lower_case(anchor.op);
    const Tensor output = tensor(group_.output);
    formula.program = make_program(formula.name, {output});
    for (const Param& param : formula.program.params) {
      auto found = parameter_of_.find(param.buffer->name);
      formula.arguments.push_back(found == parameter_of_.end() ? group_.output : found->second);
    }
    formula.flops = count_flops(formula.program);
    return formula;
  }

 private:
  const Node& node(int i) const { return graph_.nodes[static_cast<size_t>(i)]; }

  const Node* made_here(ValueId id) const {
    auto found = node_of_.find(id);
    return found == node_of_.end() ? nullptr : &node(found->second);
  }

  const Node* pointwise_here(ValueId id) const {
    const Node* made = made_here(id);
    return made && operator_of(*made).kind == OperatorKind::pointwise ? made : nullptr;
  }

  Tensor parameter(ValueId id) {
    const Value& value = graph_.value(id);
    const bool constant = value.constant.has_value();
    std::string name =
        fmt::format("{}{}", constant ? "w" : "x", constant ? constants_++ : inputs_++);
    parameter_of_[name] = id;
    return constant ? tenon::constant(name, *value.type, value.shape())
                    : input(name, *value.type, value.shape());
  }

  /// The value as a tensor: a parameter, the formula of its node, or one stage for a tree of
  /// pointwise nodes.
  Tensor tensor(ValueId id) {
    auto known = tensors_.find(id);
    if (known != tensors_.end()) return known->second;
    Tensor made;
    if (pointwise_here(id)) {
      made = map_stage(id);
    } else if (const Node* here = made_here(id)) {
      std::vector<Tensor> inputs;
      for (ValueId input : here->inputs)
        inputs.push_back(input == kAbsent ? Tensor() : tensor(input));
      made = node_formula(*here, inputs, lower_case(here->op));
    } else {
      made = parameter(id);
    }
    return tensors_[id] = made;
  }

  Tensor map_stage(ValueId id) {
    const std::vector<Axis> axes = axes_over(graph_.value(id).shape());
    std::map<ValueId, Expr> elements;
    const bool behind = node_of_.at(id) > group_.anchor;
    const bool map = operator_of(node(group_.anchor)).kind == OperatorKind::pointwise;
    const char* name = behind ? "epilogue" : map && id == group_.output ? "map" : "prologue";
    return compute(name, axes, element(id, id, indices_of(axes), elements));
  }

  /// One element of `id` at the indices of stage `root`, pointwise nodes of the group's own written
  /// out.
  Expr element(ValueId id, ValueId root, const std::vector<Expr>& indices,
               std::map<ValueId, Expr>& elements) {
    auto known = elements.find(id);
    if (known != elements.end()) return known->second;
    const Node* here = pointwise_here(id);
    Expr value;
    if (here && graph_.value(id).shape() == graph_.value(root).shape()) {
      std::vector<Expr> inputs;
      for (ValueId input : here->inputs) inputs.push_back(element(input, root, indices, elements));
      value = operator_of(*here).element(*here, inputs);
    } else if (!here && graph_.is_constant(id) && graph_.value(id).constant->size() == 1) {
      value = literal(*graph_.value(id).constant);
    } else {
      value = broadcast_read(tensor(id), indices);
    }
    elements[id] = value;
    return value;
  }

  const Graph& graph_;
  const Group& group_;
  std::map<ValueId, int> node_of_;
  std::map<ValueId, Tensor> tensors_;
  std::map<std::string, ValueId> parameter_of_;
  int inputs_ = 0, constants_ = 0;
};

}  // namespace

GroupFormula group_formula(const Graph& graph, const Group& group) {
  return FormulaBuilder(graph, group).build();
}

}  // namespace tenon
