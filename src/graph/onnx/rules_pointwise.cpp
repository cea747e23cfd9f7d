#include <limits>

#include "graph/onnx/read_tensor.h"
#include "graph/onnx/rules.h"

namespace tenon {

namespace {

/// Ahead of opset 7 the second operand says with `broadcast` and `axis` where its first axis meets
/// the first's.
ValueId legacy_operand(Resolver& r) {
  const ValueId b = r.input(1);
  if (!r.has("axis")) return b;
  const int64_t rank = r.rank(r.input(0)), axis = r.axis(r.node().integer("axis"), rank);
  std::vector<int64_t> shape = r.shape(b);
  while (axis + static_cast<int64_t>(shape.size()) < rank) shape.push_back(1);
  return r.reshape(b, shape);
}

ValueId chain(Resolver& r, const std::string& op) {
  ValueId all = r.input(0);
  for (int i = 1; i < r.input_count(); ++i) all = r.emit(op, {all, r.input(i)});
  return all;
}

ValueId remainder(Resolver& r, ValueId a, ValueId b) {
  if (!is_float(r.type(a))) return r.emit("TruncMod", {a, b});
  const ValueId whole = r.emit("Trunc", {r.emit("Div", {a, b})});
  return r.emit("Sub", {a, r.emit("Mul", {whole, b})});
}

}  // namespace

void resolve_same(Resolver& r) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < r.input_count(); ++i) inputs.push_back(r.input(i));
  r.result(0, r.emit(r.node().op, inputs));
}

void resolve_binary(Resolver& r) {
  r.result(0, r.emit(r.node().op, {r.input(0), legacy_operand(r)}));
}

void resolve_variadic(Resolver& r) { r.result(0, chain(r, r.node().op)); }

void resolve_sum(Resolver& r) { r.result(0, chain(r, "Add")); }

void resolve_mean(Resolver& r) {
  const ValueId sum = chain(r, "Add");
  r.result(0, r.emit("Div", {sum, r.scalar_like(sum, r.input_count())}));
}

/// Limits are attributes ahead of opset 11, then optional inputs. Min last: it wins where the
/// limits cross.
void resolve_clip(Resolver& r) {
  ValueId x = r.input(0);
  if (r.has("min")) x = r.emit("Max", {x, r.scalar_like(x, r.node().real("min"))});
  if (r.has_input(1)) x = r.emit("Max", {x, r.input(1)});
  if (r.has("max")) x = r.emit("Min", {x, r.scalar_like(x, r.node().real("max"))});
  if (r.has_input(2)) x = r.emit("Min", {x, r.input(2)});
  r.result(0, x);
}

/// The result has the base's type; integers go through double.
void resolve_pow(Resolver& r) {
  const ValueId base = r.input(0), exponent = legacy_operand(r);
  const DType type = r.type(base), wide = is_float(type) ? type : f64;
  const ValueId power = r.emit("Pow", {r.cast(base, wide), r.cast(exponent, wide)});
  r.result(0, r.cast(power, type));
}

void resolve_mod(Resolver& r) {
  const ValueId a = r.input(0), b = r.input(1);
  const bool c_style = r.node().integer("fmod") != 0;
  if (!c_style && is_float(r.type(a))) r.fail("floating point needs fmod = 1");
  r.result(0, c_style ? remainder(r, a, b) : r.emit("FloorMod", {a, b}));
}

void resolve_bit(Resolver& r) {
  std::vector<ValueId> inputs;
  for (int i = 0; i < r.input_count(); ++i) inputs.push_back(r.input(i));
  r.result(0, r.emit("Bit" + r.node().op.substr(std::string("Bitwise").size()), inputs));
}

void resolve_bit_shift(Resolver& r) {
  const std::string& direction = r.node().text("direction");
  if (direction != "LEFT" && direction != "RIGHT")
    r.fail("direction is \"" + direction + "\", it must be LEFT or RIGHT");
  r.result(0, r.emit(direction == "LEFT" ? "ShiftLeft" : "ShiftRight", {r.input(0), r.input(1)}));
}

void resolve_reciprocal(Resolver& r) {
  r.result(0, r.emit("Div", {r.scalar_like(r.input(0), 1), r.input(0)}));
}

void resolve_sign(Resolver& r) {
  const ValueId x = r.input(0), zero = r.scalar_like(x, 0);
  ValueId sign = r.emit("Where", {r.emit("Greater", {x, zero}), r.scalar_like(x, 1), zero});
  if (!is_unsigned_int(r.type(x)))
    sign = r.emit("Where", {r.emit("Less", {x, zero}), r.scalar_like(x, -1), sign});
  r.result(0, sign);
}

void resolve_is_inf(Resolver& r) {
  const ValueId x = r.input(0);
  const double infinity = std::numeric_limits<double>::infinity();
  const bool positive = r.node().integer("detect_positive") != 0,
             negative = r.node().integer("detect_negative") != 0;
  ValueId found =
      r.emit("Equal", {positive || !negative ? x : r.emit("Neg", {x}), r.scalar_like(x, infinity)});
  if (positive && negative)
    found = r.emit("Or", {found, r.emit("Equal", {x, r.scalar_like(x, -infinity)})});
  if (!positive && !negative) found = r.emit("And", {found, r.emit("Not", {found})});
  r.result(0, found);
}

std::string refuse_cast(const Node& node, int64_t) {
  const auto to = static_cast<int>(node.integer("to"));
  return dtype_from_onnx(to) ? "" : "attribute to = " + onnx_type_name(to);
}

void resolve_cast(Resolver& r) {
  r.result(0, r.cast(r.input(0), *dtype_from_onnx(static_cast<int>(r.node().integer("to")))));
}

void resolve_cast_like(Resolver& r) { r.result(0, r.cast(r.input(0), r.type(r.input(1)))); }

void resolve_where(Resolver& r) {
  r.result(0, r.emit("Where", {r.input(0), r.input(1), r.input(2)}));
}

}  // namespace tenon
