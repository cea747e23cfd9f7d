#include <tenon/support/text.h>

#include "graph/onnx/rules.h"

namespace tenon {

namespace {

ValueId mean(Resolver& r, ValueId x, const std::vector<int64_t>& axes) {
  return r.emit("ReduceMean", {{"axes", axes}, {"keepdims", int64_t{1}}}, {x});
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
/// input's. The canonical operator takes them shaped [c,1,..] and constant; others are worked into
/// one scale per channel here.
void resolve_batch_norm(Resolver& r) {
  const ValueId x = r.input(0);
  if (r.rank(x) < 2) r.fail("the input needs a batch and a channel axis");
  const char* const names[] = {"", "scale", "bias", "mean", "variance"};
  std::vector<ValueId> inputs{x};
  bool constant = true;
  for (int i = 1; i < 5; ++i) {
    const std::vector<int64_t> shape = r.shape(r.input(i));
    if (shape != std::vector<int64_t>{r.shape(x)[1]})
      r.fail(fmt::format("{} has shape {}, the input has {} channels", names[i], shape_text(shape),
                         r.shape(x)[1]));
    constant = constant && r.is_constant(r.input(i));
    inputs.push_back(per_channel(r, r.cast(r.input(i), r.type(x)), r.rank(x)));
  }
  const double epsilon = r.node().real("epsilon");
  if (constant) return r.result(0, r.emit("BatchNormalization", {{"epsilon", epsilon}}, inputs));
  const ValueId deviation = r.emit("Sqrt", {r.emit("Add", {inputs[4], r.scalar_like(x, epsilon)})});
  const ValueId scale = r.emit("Div", {inputs[1], deviation});
  r.result(0, r.emit("Add", {r.emit("Mul", {r.emit("Sub", {x, inputs[3]}), scale}), inputs[2]}));
}

void resolve_instance_norm(Resolver& r) {
  const ValueId x = r.input(0);
  if (r.rank(x) < 3)
    r.fail(
        fmt::format("the input has rank {}, it needs batch, channels and spatial axes", r.rank(x)));
  for (int i : {1, 2})
    if (r.shape(r.input(i)) != std::vector<int64_t>{r.shape(x)[1]} ||
        r.type(r.input(i)) != r.type(x))
      r.fail("scale and bias need one number per channel, of the input's type");
  r.result(0, r.emit("InstanceNormalization", {{"epsilon", r.node().real("epsilon")}},
                     {x, r.input(1), r.input(2)}));
}

std::string refuse_layer_norm(const Node& node, int64_t) {
  if (node.integer("stash_type") == 1) return "";
  return fmt::format("attribute stash_type = {} (supported: 1, float)", node.integer("stash_type"));
}

/// The mean and the inverse deviation, where they are wanted, are computed beside.
void resolve_layer_norm(Resolver& r) {
  const ValueId x = r.input(0);
  const int64_t axis = r.axis(r.node().integer("axis"), r.rank(x));
  const double epsilon = r.node().real("epsilon");
  std::vector<ValueId> inputs{x, r.input(1)};
  if (r.has_input(2)) inputs.push_back(r.input(2));
  for (ValueId id : inputs)
    if (r.type(id) != r.type(x) || broadcast_shapes(r.shape(id), r.shape(x)) != r.shape(x))
      r.fail("scale and bias must broadcast to the input and have its type");
  r.result(0, r.emit("LayerNormalization", {{"axis", axis}, {"epsilon", epsilon}}, inputs));
  if (!r.wants_output(1) && !r.wants_output(2)) return;
  std::vector<int64_t> axes;
  for (int64_t d = axis; d < r.rank(x); ++d) axes.push_back(d);
  const ValueId wide = r.cast(x, r.type(x) == f64 ? f64 : f32);
  const ValueId centre = mean(r, wide, axes), centred = r.emit("Sub", {wide, centre});
  const ValueId variance = mean(r, r.emit("Mul", {centred, centred}), axes);
  const ValueId deviation =
      r.emit("Sqrt", {r.emit("Add", {variance, r.scalar_like(variance, epsilon)})});
  r.result(1, centre);
  r.result(2, r.emit("Reciprocal", {deviation}));
}

void resolve_lrn(Resolver& r) {
  const Node& node = r.node();
  if (node.integer("size") < 1 || r.rank(r.input(0)) < 2)
    r.fail(fmt::format("size {} on rank {}", node.integer("size"), r.rank(r.input(0))));
  r.result(0, r.emit("LRN", node.attributes, {r.input(0)}));
}

}  // namespace tenon
