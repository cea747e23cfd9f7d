#include <tenon/support/text.h>

#include "graph/onnx/rules.h"

namespace tenon {

namespace {

ValueId mean(Resolver& r, ValueId x, const std::vector<int64_t>& axes) {
  double count = 1;
  for (int64_t axis : axes) count *= static_cast<double>(r.shape(x)[static_cast<size_t>(axis)]);
  const ValueId sum = r.emit("ReduceSum", {{"axes", axes}, {"keepdims", int64_t{1}}}, {x});
  return r.emit("Div", {sum, r.scalar_like(sum, count)});
}

struct Normalised {
  ValueId y, mean, inverse_deviation;
};

/// (x - mean) / sqrt(variance + epsilon) over `axes`
Normalised normalise(Resolver& r, ValueId x, const std::vector<int64_t>& axes, double epsilon) {
  const ValueId centre = mean(r, x, axes), centred = r.emit("Sub", {x, centre});
  const ValueId variance = mean(r, r.emit("Mul", {centred, centred}), axes);
  const ValueId deviation =
      r.emit("Sqrt", {r.emit("Add", {variance, r.scalar_like(variance, epsilon)})});
  const ValueId inverse = r.emit("Div", {r.scalar_like(deviation, 1), deviation});
  return {r.emit("Mul", {centred, inverse}), centre, inverse};
}

/// [c] -> [c,1,..,1], which broadcasts along the channels of an input of rank `rank`.
ValueId per_channel(Resolver& r, ValueId vector, int rank) {
  std::vector<int64_t> shape(static_cast<size_t>(rank) - 1, 1);
  shape[0] = r.shape(vector).at(0);
  return r.reshape(vector, shape);
}

}  // namespace

std::string refuse_batch_norm(const Node& node, int64_t opset) {
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kAbsent) return "training outputs (running mean and variance)";
  if (node.integer("training_mode") != 0) return "attribute training_mode = 1";
  if (opset < 9 && node.integer("spatial") == 0) return "attribute spatial = 0";
  return "";
}

/// Inference. The parameters may have another float type than the input (opset 15): they take the
/// input's.
void resolve_batch_norm(Resolver& r) {
  const ValueId x = r.input(0);
  std::vector<ValueId> inputs{x};
  for (int i = 1; i < 5; ++i) inputs.push_back(r.cast(r.input(i), r.type(x)));
  r.result(0, r.emit("BatchNormalization", {{"epsilon", r.node().real("epsilon")}}, inputs));
}

void resolve_instance_norm(Resolver& r) {
  const ValueId x = r.input(0);
  const int rank = r.rank(x);
  if (rank < 3)
    r.fail(fmt::format("the input has rank {}, it needs batch, channels and spatial axes", rank));
  std::vector<int64_t> axes;
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  const ValueId y = normalise(r, x, axes, r.node().real("epsilon")).y;
  const ValueId scaled = r.emit("Mul", {y, per_channel(r, r.input(1), rank)});
  r.result(0, r.emit("Add", {scaled, per_channel(r, r.input(2), rank)}));
}

std::string refuse_layer_norm(const Node& node, int64_t) {
  if (node.integer("stash_type") == 1) return "";
  return fmt::format("attribute stash_type = {} (supported: 1, float)", node.integer("stash_type"));
}

void resolve_layer_norm(Resolver& r) {
  const DType type = r.type(r.input(0)), stash = type == f64 ? f64 : f32;
  const ValueId x = r.cast(r.input(0), stash);
  std::vector<int64_t> axes;
  for (int64_t d = r.axis(r.node().integer("axis"), r.rank(x)); d < r.rank(x); ++d)
    axes.push_back(d);
  const Normalised n = normalise(r, x, axes, r.node().real("epsilon"));
  ValueId y = r.emit("Mul", {r.cast(n.y, type), r.input(1)});
  if (r.has_input(2)) y = r.emit("Add", {y, r.input(2)});
  r.result(0, y);
  r.result(1, n.mean);
  r.result(2, n.inverse_deviation);
}

/// y = x / (bias + alpha/size * sum of x*x over `size` channels around)^beta. The mean over a
/// window of channels is an average pool along them:  x*x [n,c,..] -> [n,1,c,rest] -> pool [size,1]
/// -> back
void resolve_lrn(Resolver& r) {
  const ValueId x = r.input(0);
  const std::vector<int64_t> shape = r.shape(x);
  const int64_t size = r.node().integer("size");
  if (shape.size() < 2 || size < 1) r.fail(fmt::format("size {} on rank {}", size, shape.size()));
  int64_t rest = 1;
  for (size_t d = 2; d < shape.size(); ++d) rest *= shape[d];
  const std::vector<int64_t> pads{(size - 1) / 2, 0, size / 2, 0};
  const ValueId squares = r.reshape(r.emit("Mul", {x, x}), {shape[0], 1, shape[1], rest});
  const ValueId pooled = r.emit("AveragePool",
                                {{"kernel", std::vector<int64_t>{size, 1}},
                                 {"strides", std::vector<int64_t>{1, 1}},
                                 {"dilations", std::vector<int64_t>{1, 1}},
                                 {"pads", pads},
                                 {"counted_pads", pads}},
                                {squares});
  const ValueId mean = r.reshape(pooled, shape);
  const ValueId scaled = r.emit("Mul", {mean, r.scalar_like(x, r.node().real("alpha"))});
  const ValueId base = r.emit("Add", {scaled, r.scalar_like(x, r.node().real("bias"))});
  r.result(0, r.emit("Div", {x, r.emit("Pow", {base, r.scalar_like(x, r.node().real("beta"))})}));
}

}  // namespace tenon
