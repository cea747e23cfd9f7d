#include "graph/onnx/attention.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "graph/passes/rewrite.h"
#include "kernels/attention.h"

namespace tenon {

namespace {

/// Follows values to the nodes that make them, through those that nothing else reads.
class Matcher {
 public:
  Matcher(const Graph& graph, const GraphUses& uses) : graph_(graph), uses_(uses) {}

  /// The node that makes `id` when it is an `op` and the reader at hand is the only one; -1: no.
  int made_by(ValueId id, const std::string& op) const {
    const int n = id == kAbsent ? -1 : uses_.producer[static_cast<size_t>(id)];
    if (n < 0 || node(n).op != op) return -1;
    const bool alone =
        uses_.readers[static_cast<size_t>(id)].size() == 1 && !is_graph_output(graph_, id);
    return alone ? n : -1;
  }

  /// Passes over products with and quotients by single numbers: `id` becomes what they scale.
  double scale_of(ValueId& id) {
    double scale = 1;
    for (;;) {
      const int product = made_by(id, "Mul"), quotient = made_by(id, "Div");
      if (product < 0 && quotient < 0) return scale;
      const Node& here = node(std::max(product, quotient));
      size_t number = 1;
      if (product >= 0 && single_number(here.inputs[0])) number = 0;
      const ValueId data = here.inputs[1 - number];
      if (!single_number(here.inputs[number]) ||
          graph_.value(data).shape() != graph_.value(id).shape())
        return scale;
      const double by = graph_.value(here.inputs[number]).constant->to_doubles()[0];
      scale = product >= 0 ? scale * by : scale / by;
      passed.push_back(static_cast<size_t>(std::max(product, quotient)));
      id = data;
    }
  }

  /// Passes over the addition of a mask to the scores, which come from a product.
  ValueId mask_of(ValueId& id) {
    const int sum = made_by(id, "Add");
    if (sum < 0) return kAbsent;
    const std::vector<int64_t> shape = graph_.value(id).shape();
    for (size_t scores : {0, 1}) {
      const ValueId data = node(sum).inputs[scores], mask = node(sum).inputs[1 - scores];
      ValueId product = data;
      if (graph_.value(data).shape() != shape || data == mask) continue;
      if (Matcher(graph_, uses_).product_below(product) < 0) continue;
      passed.push_back(static_cast<size_t>(sum));
      id = data;
      return mask;
    }
    return kAbsent;
  }

  int product_below(ValueId id) {
    scale_of(id);
    return made_by(id, "MatMul");
  }

  const Node& node(int n) const { return graph_.nodes[static_cast<size_t>(n)]; }
  std::vector<size_t> passed;  ///< nodes that the match replaces

 private:
  bool single_number(ValueId id) const {
    return graph_.is_constant(id) && graph_.value(id).constant->size() == 1;
  }

  const Graph& graph_;
  const GraphUses& uses_;
};

int64_t rank_of(const Graph& graph, ValueId id) {
  return static_cast<int64_t>(graph.value(id).shape().size());
}

/// Makes the Transpose `n`, which alone is read for `columns`, keep the last two dimensions as they
/// were: the keys become rows.
void turn_back(Graph& graph, Node& n) {
  std::vector<int64_t> perm = n.integers("perm");
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  n.attributes["perm"] = perm;
  Dims& dims = *graph.value(n.outputs[0]).dims;
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
}

bool in_order(const std::vector<int64_t>& perm) { return std::is_sorted(perm.begin(), perm.end()); }

}  // namespace

TensorInfo infer_attention(const Node& node, const Infos& inputs) {
  const bool columns = node.integer("keys_as_columns") != 0;
  const TensorInfo &q = inputs.at(0), &k = inputs.at(1), &v = inputs.at(2);
  const size_t rank = std::min({q.shape.size(), k.shape.size(), v.shape.size()});
  if (rank < 2) fail_shape("queries, keys and values need two dimensions or more");
  const auto last = [](const TensorInfo& t, size_t n) { return t.shape[t.shape.size() - n]; };
  const int64_t d = last(k, columns ? 2 : 1), n = last(k, columns ? 1 : 2);
  if (last(q, 1) != d || last(v, 2) != n)
    fail_shape(fmt::format(
        "queries {}, keys {} and values {} do not fit: they are [.., m, d], "
        "[.., {}] and [.., n, e]",
        shape_text(q.shape), shape_text(k.shape), shape_text(v.shape), columns ? "d, n" : "n, d"));
  const auto leading = [](const TensorInfo& t) {
    return std::vector<int64_t>(t.shape.begin(), t.shape.end() - 2);
  };
  auto batch = broadcast_shapes(leading(q), leading(k));
  if (batch) batch = broadcast_shapes(*batch, leading(v));
  if (!batch) fail_shape("leading dimensions do not broadcast");
  std::vector<int64_t> scores = *batch;
  scores.insert(scores.end(), {last(q, 2), n});
  if (inputs.size() > 3 && broadcast_shapes(scores, inputs[3].shape) != scores)
    fail_shape(fmt::format("mask {} does not broadcast to the scores {}",
                           shape_text(inputs[3].shape), shape_text(scores)));
  batch->insert(batch->end(), {last(q, 2), last(v, 1)});
  return {q.type, *batch};
}

Tensor attention_formula(const Node& node, const std::vector<Tensor>& in, const std::string& name) {
  return attention(
      in.at(0), in.at(1), in.at(2), in.size() > 3 ? in[3] : Tensor(),
      {.scale = node.real("scale"), .keys_as_columns = node.integer("keys_as_columns") != 0}, name);
}

bool fuse_attention(Graph& graph, const GraphUses& uses, size_t at, std::vector<bool>& drop) {
  Matcher match(graph, uses);
  const Node values = graph.nodes[at];
  const int softmax = match.made_by(values.inputs[0], "Softmax");
  if (softmax < 0) return false;
  ValueId scores = match.node(softmax).inputs[0];
  const int64_t axis = match.node(softmax).integer("axis"), rank = rank_of(graph, scores);
  if (axis != rank - 1 && axis != -1) return false;
  double scale = match.scale_of(scores);
  // A mask that is scaled with the scores is none that an Attention adds.
  const bool scaled = !match.passed.empty();
  const ValueId mask = match.mask_of(scores);
  if (mask != kAbsent && scaled) return false;
  if (mask != kAbsent) scale = match.scale_of(scores);
  const int product = match.made_by(scores, "MatMul");
  if (product < 0) return false;
  ValueId q = match.node(product).inputs[0], k = match.node(product).inputs[1];
  scale *= match.scale_of(q) * match.scale_of(k);
  if (scale == 0) return false;
  Node fused = {values.name, "Attention", {}, {q, k, values.inputs[1]}, values.outputs};
  if (mask != kAbsent) fused.inputs.push_back(mask);
  const int turned = q == k ? -1 : match.made_by(k, "Transpose");
  const bool rows = turned >= 0;
  if (rows) {
    Node& transpose = graph.nodes[static_cast<size_t>(turned)];
    turn_back(graph, transpose);
    if (in_order(transpose.integers("perm"))) {
      fused.inputs[1] = transpose.inputs[0];
      drop[static_cast<size_t>(turned)] = true;
    }
  }
  fused.attributes = {{"scale", scale}, {"keys_as_columns", int64_t{!rows}}};
  for (size_t n : match.passed) drop[n] = true;
  drop[static_cast<size_t>(softmax)] = drop[static_cast<size_t>(product)] = true;
  graph.nodes[at] = std::move(fused);
  return true;
}

}  // namespace tenon
