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

/// Training: mean and variance of the batch take the place of the running ones, which move towards
/// them and are outputs.
void use_batch_statistics(Resolver& r, std::vector<ValueId>& inputs) {
  std::vector<int64_t> axes{0};
  for (int64_t d = 2; d < r.rank(inputs[0]); ++d) axes.push_back(d);
  const ValueId centre = mean(r, inputs[0], axes);
  const ValueId centred = r.emit("Sub", {inputs[0], centre});
  const ValueId batch[] = {centre, mean(r, r.emit("Mul", {centred, centred}), axes)};
  const double momentum = r.node().real("momentum");
  for (int i : {0, 1}) {
    const ValueId running = r.input(3 + i);
    const ValueId now = r.reshape(r.cast(batch[i], r.type(running)), r.shape(running));
    const ValueId kept = r.emit("Mul", {running, r.scalar_like(running, momentum)});
    const ValueId added = r.emit("Mul", {now, r.scalar_like(now, 1 - momentum)});
    r.result(1 + i, r.emit("Add", {kept, added}));
    inputs[3 + static_cast<size_t>(i)] =
        r.reshape(batch[i], r.shape(inputs[3 + static_cast<size_t>(i)]));
  }
}

/// (x - mean) / sqrt(variance + epsilon) over `axes`.
ValueId standardised(Resolver& r, ValueId x, const std::vector<int64_t>& axes, double epsilon) {
  const ValueId centred = r.emit("Sub", {x, mean(r, x, axes)});
  const ValueId variance = mean(r, r.emit("Mul", {centred, centred}), axes);
  const ValueId deviation =
      r.emit("Sqrt", {r.emit("Add", {variance, r.scalar_like(variance, epsilon)})});
  return r.emit("Div", {centred, deviation});
}

std::vector<int64_t> axes_behind(int64_t first, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t d = first; d < rank; ++d) axes.push_back(d);
  return axes;
}

/// The type that a normalisation computes in.
DType wide_type(DType type) { return type == f64 ? f64 : f32; }

}  // namespace

std::string refuse_batch_norm(const Node& node, int64_t opset) {
  const bool trains = node.integer("training_mode") != 0;
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kAbsent && (!trains || i > 2))
      return "training outputs (running mean and variance)";
  if (opset < 9 && node.integer("spatial") == 0) return "attribute spatial = 0";
  return "";
}

/// The parameters may have another float type than the input (opset 15): they take the
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
  if (r.node().integer("training_mode") != 0) {
    use_batch_statistics(r, inputs);
    constant = false;
  }
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
  const std::vector<int64_t> axes = axes_behind(axis, r.rank(x));
  const ValueId wide = r.cast(x, wide_type(r.type(x)));
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

/// x / sqrt(mean(x * x) + epsilon) * scale over the axes from `axis` on.
void resolve_rms_norm(Resolver& r) {
  const ValueId x = r.input(0), scale = r.input(1);
  if (broadcast_shapes(r.shape(scale), r.shape(x)) != r.shape(x))
    r.fail("the scale must broadcast to the input");
  const int64_t axis = r.axis(r.node().integer("axis"), r.rank(x));
  const ValueId wide = r.cast(x, wide_type(r.type(x)));
  const ValueId square = mean(r, r.emit("Mul", {wide, wide}), axes_behind(axis, r.rank(x)));
  const ValueId root =
      r.emit("Sqrt", {r.emit("Add", {square, r.scalar_like(square, r.node().real("epsilon"))})});
  const ValueId y = r.cast(r.emit("Div", {wide, root}), r.type(scale));
  r.result(0, r.emit("Mul", {y, scale}));
}

/// Standardised over each group of channels, then scaled and shifted per channel.
void resolve_group_norm(Resolver& r) {
  const ValueId x = r.input(0);
  const std::vector<int64_t> shape = r.shape(x);
  const int64_t groups = r.node().integer("num_groups");
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0)
    r.fail(fmt::format("{} groups of the channels of {}", groups, shape_text(shape)));
  for (int i : {1, 2})
    if (r.shape(r.input(i)) != std::vector<int64_t>{shape[1]})
      r.fail("scale and bias need one number per channel");
  int64_t members = shape[1] / groups;
  for (size_t d = 2; d < shape.size(); ++d) members *= shape[d];
  const ValueId rows = r.reshape(r.cast(x, wide_type(r.type(x))), {shape[0], groups, members});
  const ValueId y =
      r.cast(r.reshape(standardised(r, rows, {2}, r.node().real("epsilon")), shape), r.type(x));
  const ValueId scaled = r.emit("Mul", {y, per_channel(r, r.input(1), r.rank(x))});
  r.result(0, r.emit("Add", {scaled, per_channel(r, r.input(2), r.rank(x))}));
}

/// x divided by its 1- or 2-norm along the axis; where that is 0, so is the result.
void resolve_lp_norm(Resolver& r) {
  const ValueId x = r.input(0);
  const int64_t p = r.node().integer("p"), axis = r.axis(r.node().integer("axis"), r.rank(x));
  if (p != 1 && p != 2) r.fail(fmt::format("p is {}, it must be 1 or 2", p));
  const Attributes along = {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{1}}};
  const ValueId norm = r.emit(p == 1 ? "ReduceL1" : "ReduceL2", along, {x}),
                zero = r.scalar_like(x, 0);
  const ValueId none = r.emit("Equal", {norm, zero});
  r.result(0, r.emit("Where", {none, zero, r.emit("Div", {x, norm})}));
}

/// (x - mean) / (deviation + 1e-9); over all axes but the channels where none are given.
void resolve_mean_variance_norm(Resolver& r) {
  constexpr double kSmallest = 1e-9;
  const ValueId x = r.input(0);
  const std::vector<int64_t> given =
      r.has("axes") ? r.node().integers("axes") : std::vector<int64_t>{0, 2, 3};
  const std::vector<int64_t> axes = r.axes(given, r.rank(x));
  const ValueId centred = r.emit("Sub", {x, mean(r, x, axes)});
  const ValueId deviation = r.emit("Sqrt", {mean(r, r.emit("Mul", {centred, centred}), axes)});
  r.result(0, r.emit("Div", {centred, r.emit("Add", {deviation, r.scalar_like(x, kSmallest)})}));
}

}  // namespace tenon
