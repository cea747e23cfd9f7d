#include <tenon/support/text.h>

#include "graph/onnx/read_tensor.h"
#include "graph/onnx/rules.h"

namespace tenon {

namespace {

/// 0, 1, .., count-1 along `axis` of a tensor of rank `rank`, extent 1 elsewhere.
ValueId numbers_along(Resolver& r, int64_t count, int64_t axis, int64_t rank) {
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = count;
  const ValueId numbers = r.emit("Iota", {{"count", count}}, {r.scalar(i64, 0), r.scalar(i64, 1)});
  return r.reshape(numbers, shape);
}

}  // namespace

/// y[.., k, ..] = values[1] where indices[..] is k (or k - depth), else values[0].
void resolve_one_hot(Resolver& r) {
  ValueId indices = r.cast(r.input(0), i64);
  const auto depth = r.real(r.input(1));
  if (!depth) r.fail("the depth must be a constant scalar: only a run would know it");
  if (*depth < 1 || *depth > INT32_MAX) r.fail(fmt::format("the depth is {}", *depth));
  const auto count = static_cast<int64_t>(*depth);
  const ValueId values = r.input(2);
  if (r.shape(values) != std::vector<int64_t>{2}) r.fail("values must be [off, on]");
  const int64_t rank = r.rank(indices) + 1, axis = r.axis(r.node().integer("axis"), rank);
  std::vector<int64_t> shape = r.shape(indices);
  shape.insert(shape.begin() + axis, 1);
  indices = r.reshape(indices, shape);
  const ValueId negative = r.emit("Less", {indices, r.scalar(i64, 0)});
  const ValueId wrapped = r.emit("Add", {indices, r.scalar(i64, static_cast<double>(count))});
  indices = r.emit("Where", {negative, wrapped, indices});
  const auto value = [&](int64_t at) {
    return r.reshape(r.emit("Slice",
                            {{"starts", std::vector<int64_t>{at}},
                             {"steps", std::vector<int64_t>{1}},
                             {"shape", std::vector<int64_t>{1}}},
                            {values}),
                     {});
  };
  const ValueId hit = r.emit("Equal", {indices, numbers_along(r, count, axis, rank)});
  r.result(0, r.emit("Where", {hit, value(1), value(0)}));
}

/// 1 at the first of the largest elements along the axis, else 0.
void resolve_hardmax(Resolver& r) {
  const ValueId x = r.input(0);
  const int64_t rank = r.rank(x), axis = r.axis(r.node().integer("axis"), rank);
  const ValueId best =
      r.emit("ArgMax", {{"axis", axis}, {"keepdims", int64_t{1}}, {"last", int64_t{0}}}, {x});
  const int64_t count = r.shape(x)[static_cast<size_t>(axis)];
  const ValueId hit = r.emit("Equal", {best, numbers_along(r, count, axis, rank)});
  r.result(0, r.cast(hit, r.type(x)));
}

std::string refuse_eye_like(const Node& node, int64_t) {
  if (node.attributes.count("dtype") == 0) return "";
  const auto type = static_cast<int>(node.integer("dtype"));
  return dtype_from_onnx(type) ? "" : "attribute dtype = " + onnx_type_name(type);
}

/// Ones on diagonal k of a matrix of x's shape.
void resolve_eye_like(Resolver& r) {
  const ValueId x = r.input(0);
  if (r.rank(x) != 2) r.fail(fmt::format("the input has rank {}, it needs 2", r.rank(x)));
  const auto k = static_cast<double>(r.node().integer("k"));
  const ValueId rows = numbers_along(r, r.shape(x)[0], 0, 2),
                columns = numbers_along(r, r.shape(x)[1], 1, 2);
  const ValueId hit = r.emit("Equal", {r.emit("Add", {rows, r.scalar(i64, k)}), columns});
  const DType type =
      r.has("dtype") ? *dtype_from_onnx(static_cast<int>(r.node().integer("dtype"))) : r.type(x);
  r.result(0, r.cast(hit, type));
}

}  // namespace tenon
