#include <tenon/support/text.h>

#include "graph/onnx/rules.h"

namespace tenon {

namespace {

std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t d = first; d < rank; ++d) axes.push_back(d);
  return axes;
}

void pool_globally(Resolver& r, const char* op) {
  const ValueId x = r.input(0);
  if (r.rank(x) < 3)
    r.fail(
        fmt::format("the input has rank {}, it needs batch, channels and spatial axes", r.rank(x)));
  r.result(0, r.emit(op, {{"axes", axes_from(2, r.rank(x))}, {"keepdims", int64_t{1}}}, {x}));
}

}  // namespace

/// Axes are an attribute, or an input from opset 18 on (13 for ReduceSum). None given: all of them,
/// or none of them when the node says so, which leaves an operator of one element.
void resolve_reduce(Resolver& r) {
  const ValueId x = r.input(0);
  const auto given = r.integers_of("axes", 1);
  const bool named = given && !given->empty(), none = r.node().integer("noop_with_empty_axes") != 0;
  std::vector<int64_t> axes =
      named ? r.axes(*given, r.rank(x)) : axes_from(none ? r.rank(x) : 0, r.rank(x));
  r.result(0,
           r.emit(r.node().op,
                  {{"axes", axes}, {"keepdims", int64_t{r.node().integer("keepdims") != 0}}}, {x}));
}

void resolve_arg(Resolver& r) {
  const ValueId x = r.input(0);
  r.result(0, r.emit(r.node().op,
                     {{"axis", r.axis(r.node().integer("axis"), r.rank(x))},
                      {"keepdims", r.node().integer("keepdims")},
                      {"last", r.node().integer("select_last_index")}},
                     {x}));
}

void resolve_cumulative_sum(Resolver& r) {
  const ValueId x = r.input(0);
  const std::vector<int64_t> axis = r.needed_integers(1, "axes");
  if (axis.size() != 1) r.fail(fmt::format("the axis has {} elements", axis.size()));
  r.result(0, r.emit("CumSum",
                     {{"axis", r.axis(axis[0], r.rank(x))},
                      {"exclusive", r.node().integer("exclusive")},
                      {"reverse", r.node().integer("reverse")}},
                     {x}));
}

void resolve_global_average_pool(Resolver& r) { pool_globally(r, "ReduceMean"); }

void resolve_global_max_pool(Resolver& r) { pool_globally(r, "ReduceMax"); }

/// Ahead of opset 13 softmax works on rows: the axes ahead of `axis` by the others, all of them at
/// once.
void resolve_softmax(Resolver& r) {
  const ValueId x = r.input(0);
  const std::string& op = r.node().op;
  const bool rows = r.opset() < 13;
  const int64_t rank = r.rank(x),
                asked = r.has("axis") ? r.node().integer("axis") : (rows ? 1 : -1);
  const std::vector<int64_t> shape = r.shape(x);
  if (rank == 0)
    return r.result(0, r.reshape(r.emit(op, {{"axis", int64_t{0}}}, {r.reshape(x, {1})}), {}));
  const int64_t axis = rows && asked == rank ? rank : r.axis(asked, rank);
  if (!rows || axis == rank - 1) return r.result(0, r.emit(op, {{"axis", axis}}, {x}));
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < rank; ++d) (d < axis ? outer : inner) *= shape[static_cast<size_t>(d)];
  r.result(0, r.reshape(r.emit(op, {{"axis", int64_t{1}}}, {r.reshape(x, {outer, inner})}), shape));
}

}  // namespace tenon
