#include <tenon/support/text.h>

#include "graph/onnx/rules.h"

namespace tenon {

namespace {

/// What the targets say of each position: the class whose score counts (0 where the position is
/// ignored), and which positions are not ignored (absent: all count).
struct Targets {
  ValueId classes = kAbsent, counts = kAbsent;
};

Targets read_targets(Resolver& r) {
  const ValueId target = r.cast(r.input(1), i64);
  if (!r.has("ignore_index")) return {target, kAbsent};
  const ValueId ignored = r.emit(
      "Equal", {target, r.scalar(i64, static_cast<double>(r.node().integer("ignore_index")))});
  return {r.emit("Where", {ignored, r.scalar(i64, 0), target}), r.emit("Not", {ignored})};
}

void check_shapes(Resolver& r) {
  std::vector<int64_t> expected = r.shape(r.input(0));
  if (expected.size() < 2) r.fail("the scores need a batch and a class axis");
  const int64_t classes = expected[1];
  expected.erase(expected.begin() + 1);
  if (r.shape(r.input(1)) != expected)
    r.fail(fmt::format("the targets have shape {}, the scores ask for {}",
                       shape_text(r.shape(r.input(1))), shape_text(expected)));
  if (r.has_input(2) && r.shape(r.input(2)) != std::vector<int64_t>{classes})
    r.fail(fmt::format("the weights have shape {}, there are {} classes",
                       shape_text(r.shape(r.input(2))), classes));
}

/// The weight of each position, 0 where it is ignored; absent where all weigh 1.
ValueId position_weights(Resolver& r, const Targets& targets, DType type) {
  ValueId weights = kAbsent;
  if (r.has_input(2))
    weights = r.emit("Gather", {{"axis", int64_t{0}}}, {r.input(2), targets.classes});
  if (targets.counts == kAbsent) return weights;
  const ValueId counts = r.cast(targets.counts, type);
  return weights == kAbsent ? counts : r.emit("Mul", {weights, counts});
}

ValueId total(Resolver& r, ValueId x) {
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < r.rank(x); ++d) axes.push_back(d);
  return r.emit("ReduceSum", {{"axes", axes}, {"keepdims", int64_t{0}}}, {x});
}

/// loss[n, d..] = -scores[n, target[n, d..], d..] * weight, then reduced as the node says.
ValueId likelihood_loss(Resolver& r, ValueId scores) {
  check_shapes(r);
  const Targets targets = read_targets(r);
  const std::vector<int64_t> shape = r.shape(targets.classes);
  std::vector<int64_t> with_class = shape;
  with_class.insert(with_class.begin() + 1, 1);
  const ValueId picked = r.emit("GatherElements", {{"axis", int64_t{1}}},
                                {scores, r.reshape(targets.classes, with_class)});
  ValueId loss = r.emit("Neg", {r.reshape(picked, shape)});
  const ValueId weights = position_weights(r, targets, r.type(scores));
  if (weights != kAbsent) loss = r.emit("Mul", {loss, weights});
  const std::string& reduction = r.node().text("reduction");
  if (reduction == "none") return loss;
  if (reduction != "sum" && reduction != "mean")
    r.fail("reduction is \"" + reduction + "\", it must be none, sum or mean");
  const ValueId sum = total(r, loss);
  if (reduction == "sum") return sum;
  const ValueId whole = weights == kAbsent
                            ? r.scalar_like(sum, static_cast<double>(element_count(shape)))
                            : total(r, weights);
  return r.emit("Div", {sum, whole});
}

}  // namespace

void resolve_likelihood_loss(Resolver& r) { r.result(0, likelihood_loss(r, r.input(0))); }

/// The same of log(softmax(scores)) over the classes, which is the second output.
void resolve_cross_entropy_loss(Resolver& r) {
  if (r.rank(r.input(0)) < 2) r.fail("the scores need a batch and a class axis");
  const ValueId scores = r.emit("LogSoftmax", {{"axis", int64_t{1}}}, {r.input(0)});
  r.result(0, likelihood_loss(r, scores));
  r.result(1, scores);
}

}  // namespace tenon
