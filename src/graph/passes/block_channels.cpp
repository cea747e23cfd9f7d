#include <algorithm>
#include <map>
#include <set>

#include "graph/onnx/blocked.h"
#include "graph/onnx/operators.h"
#include "graph/passes/passes.h"

namespace tenon {

namespace {

class Blocker {
 public:
  Blocker(Graph graph, int64_t block) : graph_(std::move(graph)), block_(block) {}

  Graph run() && {
    const std::vector<Node> nodes = std::move(graph_.nodes);
    for (const Node& node : nodes) {
      const auto form = form_of(node);
      if (form)
        add_blocked(node, *form);
      else
        add_plain(node);
    }
    for (ValueId id : graph_.outputs) need_plain(id);
    graph_.nodes = std::move(out_);
    return std::move(graph_);
  }

 private:
  bool in_blocks(ValueId id) const { return blocked_.count(id) > 0; }

  /// The blocked form of a node that has one and for which its inputs, as they are, speak.
  std::optional<BlockedForm> form_of(const Node& node) const {
    const Operator& row = operator_of(node);
    const bool pointwise = row.kind == OperatorKind::pointwise;
    const auto form = pointwise     ? pointwise_form(node)
                      : row.blocked ? row.blocked(node, input_infos(graph_, node), block_)
                                    : std::nullopt;
    if (!form) return std::nullopt;
    bool follows = false;
    for (size_t n = 0; n < node.inputs.size(); ++n) {
      follows = follows || (form->blocked[n] && in_blocks(node.inputs[n]));
      const bool data = n == 0 || row.kind != OperatorKind::linear;
      if (!data && !graph_.is_constant(node.inputs[n])) return std::nullopt;  // packed ahead
    }
    return form->starts || follows ? form : std::nullopt;
  }

  /// All inputs are single numbers or have the output's channels in their place.
  std::optional<BlockedForm> pointwise_form(const Node& node) const {
    const Value& out = graph_.value(node.outputs[0]);
    const std::vector<int64_t> shape = out.shape();
    const size_t rank = shape.size();
    if (rank != 3 && rank != 4) return std::nullopt;
    BlockedForm form{node, {}};
    for (ValueId id : node.inputs) {
      if (id == kAbsent) return std::nullopt;
      const std::vector<int64_t> own = graph_.value(id).shape();
      const bool number = graph_.is_constant(id) && graph_.value(id).constant->size() == 1;
      const bool channels = own.size() + 1 >= rank && own[own.size() + 1 - rank] == shape[1] &&
                            (own.size() == rank || graph_.is_constant(id));
      if (!number && !channels) return std::nullopt;
      form.blocked.push_back(!number);
    }
    return form;
  }

  void add_blocked(const Node& node, const BlockedForm& form) {
    std::vector<ValueId> inputs;
    const ValueId out = node.outputs[0];
    const size_t rank = graph_.value(out).shape().size();
    for (size_t n = 0; n < node.inputs.size(); ++n) {
      if (!form.blocked[n]) need_plain(node.inputs[n]);
      inputs.push_back(form.blocked[n] ? blocked(node.inputs[n], rank) : node.inputs[n]);
    }
    blocked_[out] =
        append_node(graph_, out_, form.node, inputs, graph_.value(out).name + ".blocked");
    missing_.insert(out);
  }

  void add_plain(const Node& node) {
    for (ValueId id : node.inputs) need_plain(id);
    out_.push_back(node);
  }

  /// As an image of so many dimensions.
  ValueId blocked(ValueId id, size_t rank) {
    if (graph_.value(id).shape().size() != rank)  // a constant without the batch
      return append_block_channels(graph_, out_, id, rank, block_);
    auto known = blocked_.find(id);
    if (known == blocked_.end())
      known = blocked_.emplace(id, append_block_channels(graph_, out_, id, rank, block_)).first;
    return known->second;
  }

  void need_plain(ValueId id) {
    if (missing_.erase(id) > 0) append_unblock_channels(graph_, out_, blocked_.at(id), id);
  }

  Graph graph_;
  const int64_t block_;
  std::vector<Node> out_;
  std::map<ValueId, ValueId> blocked_;  // plain value -> the same in blocks
  std::set<ValueId> missing_;           // values that exist in blocks only
};

}  // namespace

Graph block_channels(Graph graph, int64_t block) { return Blocker(std::move(graph), block).run(); }

}  // namespace tenon
