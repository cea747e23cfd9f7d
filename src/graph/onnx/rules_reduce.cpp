#include <tenon/support/text.h>

#include <algorithm>

#include "graph/onnx/rules.h"

namespace tenon {

namespace {

struct Reduction {
  std::vector<int64_t> axes;
  bool keepdims;
  bool nothing;  // no axes named and the node says that this means none
};

/// Axes are an attribute, or an input from opset 18 on (13 for ReduceSum); none given: all of them.
Reduction reduction(Resolver& r) {
  const int64_t rank = r.rank(r.input(0));
  auto axes = r.integers_of("axes", 1);
  const bool named = axes && !axes->empty();
  const bool noop = r.has("noop_with_empty_axes") && r.node().integer("noop_with_empty_axes") != 0;
  std::vector<int64_t> all;
  for (int64_t d = 0; d < rank; ++d) all.push_back(d);
  return {named ? r.axes(*axes, rank) : all, r.node().integer("keepdims") != 0, !named && noop};
}

ValueId reduce(Resolver& r, const std::string& op, ValueId x, const std::vector<int64_t>& axes,
               bool keepdims) {
  return r.emit(op, {{"axes", axes}, {"keepdims", int64_t{keepdims}}}, {x});
}

/// `op` over what the node says, on `x` of the input's shape.
ValueId reduce_node(Resolver& r, const std::string& op, ValueId x) {
  const Reduction reduction = tenon::reduction(r);
  return reduction.nothing ? x : reduce(r, op, x, reduction.axes, reduction.keepdims);
}

int64_t reduced_elements(Resolver& r, const Reduction& reduction) {
  int64_t count = 1;
  if (reduction.nothing) return count;
  for (int64_t axis : reduction.axes) count *= r.shape(r.input(0))[static_cast<size_t>(axis)];
  return count;
}

std::vector<int64_t> spatial_axes(Resolver& r) {
  const int64_t rank = r.rank(r.input(0));
  if (rank < 3)
    r.fail(fmt::format("the input has rank {}, it needs batch, channels and spatial axes", rank));
  std::vector<int64_t> axes;
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  return axes;
}

/// Ahead of opset 13 softmax works on rows: the axes ahead of `axis` by the others, all of them at
/// once.
struct Rows {
  ValueId x;
  int64_t axis;
};
Rows softmax_rows(Resolver& r) {
  const ValueId x = r.input(0);
  const bool rows = r.opset() < 13;
  const int64_t rank = r.rank(x),
                asked = r.has("axis") ? r.node().integer("axis") : (rows ? 1 : -1);
  if (rank == 0) return {r.reshape(x, {1}), 0};
  const int64_t axis = rows && asked == rank ? rank : r.axis(asked, rank);
  if (!rows || axis == rank - 1) return {x, axis};
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < rank; ++d)
    (d < axis ? outer : inner) *= r.shape(x)[static_cast<size_t>(d)];
  return {r.reshape(x, {outer, inner}), 1};
}

ValueId square(Resolver& r, ValueId x) { return r.emit("Mul", {x, x}); }

}  // namespace

/// Booleans reduce as bytes: max is "any", min is "all".
void resolve_reduce(Resolver& r) {
  const ValueId x = r.input(0);
  const DType type = r.type(x);
  const ValueId y = reduce_node(r, r.node().op, r.cast(x, type == boolean ? u8 : type));
  r.result(0, r.cast(y, type));
}

void resolve_reduce_mean(Resolver& r) {
  const ValueId sum = reduce_node(r, "ReduceSum", r.input(0));
  const auto count = static_cast<double>(reduced_elements(r, reduction(r)));
  r.result(0, r.emit("Div", {sum, r.scalar_like(sum, count)}));
}

void resolve_reduce_l1(Resolver& r) {
  r.result(0, reduce_node(r, "ReduceSum", r.emit("Abs", {r.input(0)})));
}

void resolve_reduce_l2(Resolver& r) {
  r.result(0, r.emit("Sqrt", {reduce_node(r, "ReduceSum", square(r, r.input(0)))}));
}

void resolve_reduce_sum_square(Resolver& r) {
  r.result(0, reduce_node(r, "ReduceSum", square(r, r.input(0))));
}

void resolve_reduce_log_sum(Resolver& r) {
  r.result(0, r.emit("Log", {reduce_node(r, "ReduceSum", r.input(0))}));
}

/// log(sum(exp(x - m))) + m with m the largest finite element, so that nothing overflows.
void resolve_reduce_log_sum_exp(Resolver& r) {
  const ValueId x = r.input(0);
  const Reduction over = reduction(r);
  if (over.nothing) return r.result(0, x);
  const ValueId top = reduce(r, "ReduceMax", x, over.axes, true);
  // x - x is 0 for finite numbers only: infinite ones and those of empty rows are not subtracted.
  const ValueId finite = r.emit("Equal", {r.emit("Sub", {top, top}), r.scalar_like(top, 0)});
  const ValueId shift = r.emit("Where", {finite, top, r.scalar_like(top, 0)});
  const ValueId sum =
      reduce(r, "ReduceSum", r.emit("Exp", {r.emit("Sub", {x, shift})}), over.axes, true);
  const ValueId y = r.emit("Add", {r.emit("Log", {sum}), shift});
  if (over.keepdims) return r.result(0, y);
  std::vector<int64_t> shape;
  for (int64_t d = 0; d < r.rank(x); ++d)
    if (std::find(over.axes.begin(), over.axes.end(), d) == over.axes.end())
      shape.push_back(r.shape(x)[static_cast<size_t>(d)]);
  r.result(0, r.reshape(y, shape));
}

void resolve_global_average_pool(Resolver& r) {
  const ValueId x = r.input(0);
  const std::vector<int64_t> axes = spatial_axes(r);
  const ValueId sum = reduce(r, "ReduceSum", x, axes, true);
  const auto count = static_cast<double>(reduced_elements(r, {axes, true, false}));
  r.result(0, r.emit("Div", {sum, r.scalar_like(sum, count)}));
}

void resolve_global_max_pool(Resolver& r) {
  r.result(0, reduce(r, "ReduceMax", r.input(0), spatial_axes(r), true));
}

void resolve_softmax(Resolver& r) {
  const Rows rows = softmax_rows(r);
  const ValueId y = r.emit("Softmax", {{"axis", rows.axis}}, {rows.x});
  r.result(0, r.reshape(y, r.shape(r.input(0))));
}

/// (x - m) - log(sum(exp(x - m))) with m the row's maximum
void resolve_log_softmax(Resolver& r) {
  const Rows rows = softmax_rows(r);
  const ValueId top = reduce(r, "ReduceMax", rows.x, {rows.axis}, true);
  const ValueId centred = r.emit("Sub", {rows.x, top});
  const ValueId sum = reduce(r, "ReduceSum", r.emit("Exp", {centred}), {rows.axis}, true);
  const ValueId y = r.emit("Sub", {centred, r.emit("Log", {sum})});
  r.result(0, r.reshape(y, r.shape(r.input(0))));
}

}  // namespace tenon
