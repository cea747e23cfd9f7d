#include <tenon/support/error.h>

#include <cmath>

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

/// a - b * floor(a / b): the sign is b's, as in Python. By an infinite b: a where the signs agree
/// or a is 0, else b.
ValueId floor_modulo(Resolver& r) {
  const ValueId a = r.input(0), b = r.input(1), zero = r.scalar_like(a, 0);
  const ValueId whole = r.emit("Floor", {r.emit("Div", {a, b})});
  const ValueId usual = r.emit("Sub", {a, r.emit("Mul", {b, whole})});
  const ValueId apart =
      r.emit("Less", {r.emit("Mul", {r.emit("Sign", {a}), r.emit("Sign", {b})}), zero});
  const ValueId endless =
      r.emit("And", {r.emit("IsInf", {{"alpha", 1.0}, {"beta", 1.0}}, {b}),
                     r.emit("Less", {r.emit("Abs", {a}), r.scalar_like(a, INFINITY)})});
  return r.emit("Where", {endless, r.emit("Where", {apart, b, a}), usual});
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

/// The result has the base's type.
void resolve_pow(Resolver& r) {
  const ValueId base = r.input(0), exponent = legacy_operand(r);
  const bool whole_base = !is_float(r.type(base));
  if (!whole_base || !is_float(r.type(exponent)))
    return r.result(0, r.emit("Pow", {base, r.cast(exponent, r.type(base))}));
  const DType wide = r.type(exponent) == f64 ? f64 : f32;
  const ValueId power = r.emit("Pow", {r.cast(base, wide), r.cast(exponent, wide)});
  r.result(0, r.cast(power, r.type(base)));
}

void resolve_mod(Resolver& r) {
  const int64_t c_style = r.node().integer("fmod");
  if (c_style == 0 && is_float(r.type(r.input(0)))) return r.result(0, floor_modulo(r));
  r.result(0, r.emit("Mod", {{"fmod", c_style}}, {r.input(0), r.input(1)}));
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
  const ValueId x = r.input(0), by = r.input(1), zero = r.scalar_like(x, 0);
  const bool left = direction == "LEFT", is_signed = is_signed_int(r.type(x));
  // By the width or more, or by less than nothing: all bits are gone, but for the copies of the
  // sign.
  ValueId inside = r.emit("Less", {by, r.scalar_like(by, 8 * byte_size(r.type(x)))});
  if (is_signed) inside = r.emit("And", {inside, r.emit("GreaterOrEqual", {by, zero})});
  const ValueId amount = r.emit("Where", {inside, by, zero});
  ValueId gone = zero;
  if (is_signed && !left)
    gone = r.emit("Where", {r.emit("Less", {x, zero}), r.scalar_like(x, -1), zero});
  const ValueId shifted = r.emit(left ? "ShiftLeft" : "ShiftRight", {x, amount});
  r.result(0, r.emit("Where", {inside, shifted, gone}));
}

void resolve_is_inf(Resolver& r) {
  const auto flag = [&](const char* name) { return r.node().integer(name) != 0 ? 1.0 : 0.0; };
  r.result(0,
           r.emit("IsInf", {{"alpha", flag("detect_negative")}, {"beta", flag("detect_positive")}},
                  {r.input(0)}));
}

void resolve_numbers(Resolver& r) {
  r.result(0, r.emit(r.node().op, r.node().attributes, {r.input(0)}));
}

/// The slope broadcasts to x; ahead of opset 7 a vector means one number per channel.
void resolve_prelu(Resolver& r) {
  const ValueId x = r.input(0);
  ValueId slope = r.input(1);
  const std::vector<int64_t> shape = r.shape(slope);
  if (r.opset() < 7 && shape.size() == 1 && r.rank(x) > 2) {
    std::vector<int64_t> per_channel(static_cast<size_t>(r.rank(x)) - 1, 1);
    per_channel[0] = shape[0];
    slope = r.reshape(slope, per_channel);
  }
  r.result(0, r.emit("PRelu", {x, slope}));
}

void resolve_selu(Resolver& r) {
  r.result(0, r.emit("Selu", {{"alpha", r.node().real("alpha")}, {"beta", r.node().real("gamma")}},
                     {r.input(0)}));
}

void resolve_shrink(Resolver& r) {
  r.result(0, r.emit("Shrink", {{"alpha", r.node().real("bias")}, {"beta", r.node().real("lambd")}},
                     {r.input(0)}));
}

void resolve_gelu(Resolver& r) {
  const std::string& approximate = r.node().text("approximate");
  if (approximate != "none" && approximate != "tanh")
    r.fail("approximate is \"" + approximate + "\", it must be none or tanh");
  r.result(0, r.emit("Gelu", {{"approximate", int64_t{approximate == "tanh"}}}, {r.input(0)}));
}

/// swish(a) * b
void resolve_swiglu(Resolver& r) {
  const ValueId gate = r.emit("Swish", {{"alpha", r.node().real("alpha")}}, {r.input(0)});
  r.result(0, r.emit("Mul", {gate, r.input(1)}));
}

std::string refuse_bit_cast(const Node& node, int64_t) {
  const auto to = dtype_from_onnx(static_cast<int>(node.integer("to")));
  return to && *to != boolean
             ? ""
             : "attribute to = " + onnx_type_name(static_cast<int>(node.integer("to")));
}

/// A boolean is the byte 0 or 1.
void resolve_bit_cast(Resolver& r) {
  const DType to = *dtype_from_onnx(static_cast<int>(r.node().integer("to")));
  const ValueId x = r.type(r.input(0)) == boolean ? r.cast(r.input(0), u8) : r.input(0);
  if (byte_size(r.type(x)) != byte_size(to))
    r.fail(fmt::format("{} has another size than {}", name(r.type(x)), name(to)));
  r.result(0, r.type(x) == to ? x : r.emit("BitCast", {{"to", to}}, {x}));
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
