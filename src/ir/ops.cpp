#include <tenon/ir/ops.h>
#include <tenon/support/error.h>
#include <tenon/support/float16.h>

#include <cmath>
#include <limits>

#include "ir/fold.h"

namespace tenon {
namespace {

std::string type_text(Type t) {
  return t.lanes == 1 ? std::string(name(t.dtype)) : fmt::format("{}x{}", name(t.dtype), t.lanes);
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::ge; }
bool is_logical(BinaryOp op) { return op == BinaryOp::logical_and || op == BinaryOp::logical_or; }

bool is_literal(const Expr& e) { return e.as<IntImm>() || e.as<FloatImm>(); }

// A literal in another type, where that keeps its value.
Expr adapt_literal(const Expr& literal, DType t) {
  if (literal.dtype() == t || !is_literal(literal)) return literal;
  if (const FloatImm* f = literal.as<FloatImm>())
    return is_float(t) ? float_imm(f->value, t) : literal;
  const int64_t value = literal.as<IntImm>()->value;
  if (is_float(t)) return float_imm(static_cast<double>(value), t);
  if (is_bool(t) != is_bool(literal.dtype())) return literal;
  return wrap_int(value, t) == value && (t != DType::u64 || value >= 0) ? int_imm(value, t)
                                                                        : literal;
}

// Literals adapt, scalars broadcast; the two come back with one type or as they were.
void unify(Expr& a, Expr& b) {
  if (a.dtype() != b.dtype()) {
    if (is_literal(b)) b = adapt_literal(b, a.dtype());
    if (a.dtype() != b.dtype() && is_literal(a)) a = adapt_literal(a, b.dtype());
  }
  if (a.lanes() == 1 && b.lanes() > 1) a = broadcast(a, b.lanes());
  if (b.lanes() == 1 && a.lanes() > 1) b = broadcast(b, a.lanes());
}

void check_binary(BinaryOp op, const Expr& a, const Expr& b) {
  if (a.type() != b.type()) {
    throw UserError(
        fmt::format("formula error in {}: both operands need one type, got {} and {}\n  try: "
                    "cast(DType, x) on one of them",
                    name(op), type_text(a.type()), type_text(b.type())));
  }
  const DType t = a.dtype();
  const bool arithmetic = op <= BinaryOp::max && op != BinaryOp::min && op != BinaryOp::max;
  std::string_view need;
  if (is_logical(op) && !is_bool(t)) need = "bool";
  if (op == BinaryOp::div && !is_float(t)) need = "floats (integers: floor_div or trunc_div)";
  if (op >= BinaryOp::floor_div && op <= BinaryOp::trunc_mod && !is_int(t)) need = "integers";
  if ((op == BinaryOp::shl || op == BinaryOp::shr) && !is_int(t)) need = "integers";
  if (op >= BinaryOp::bit_and && op <= BinaryOp::bit_xor && is_float(t)) need = "integers or bool";
  if (arithmetic && is_bool(t)) need = "numbers (bool: cast first)";
  if (!need.empty()) {
    throw UserError(
        fmt::format("formula error in {}: it needs {}, got {}", name(op), need, name(t)));
  }
}

Expr fold_binary(BinaryOp op, const Expr& a, const Expr& b) {
  const DType t = a.dtype();
  const DType result = is_comparison(op) ? DType::boolean : t;
  if (const IntImm* x = a.as<IntImm>(), *y = b.as<IntImm>(); x && y) {
    if (auto value = fold_int(op, x->value, y->value, t)) return int_imm(*value, result);
  }
  if (const FloatImm* x = a.as<FloatImm>(), *y = b.as<FloatImm>(); x && y) {
    if (auto value = fold_float(op, x->value, y->value, t)) return float_imm(*value, t);
  }
  return {};
}

}  // namespace

Expr int_imm(int64_t value, DType t) {
  TENON_CHECK(!is_float(t), "int_imm of type {}", name(t));
  if (wrap_int(value, t) != value)
    throw UserError(
        fmt::format("formula error: the literal {} is outside {}, which holds {} to {}\n  try: "
                    "wrap_int(value, t), or a wider type",
                    value, name(t), min_int(t), max_int(t)));
  return make_expr({t, 1}, IntImm{value});
}

Expr float_imm(double value, DType t) {
  TENON_CHECK(is_float(t), "float_imm of type {}", name(t));
  if (t != DType::f64) value = static_cast<float>(value);
  if (t == DType::f16) value = from_f16(to_f16(value));
  if (t == DType::bf16) value = from_bf16(to_bf16(value));
  return make_expr({t, 1}, FloatImm{value});
}

Expr imm(double value, DType t) {
  return is_float(t) ? float_imm(value, t) : int_imm(static_cast<int64_t>(value), t);
}

Expr zero(DType t) { return imm(0, t); }
Expr bool_imm(bool value) { return int_imm(value, DType::boolean); }

Expr binary(BinaryOp op, Expr a, Expr b) {
  unify(a, b);
  check_binary(op, a, b);
  if (Expr folded = fold_binary(op, a, b); folded.defined()) return folded;
  const bool gives_bool = is_comparison(op) || is_logical(op);
  return make_expr({gives_bool ? DType::boolean : a.dtype(), a.lanes()}, Binary{op, a, b});
}

Expr unary(UnaryOp op, Expr a) {
  const DType t = a.dtype();
  std::string_view need;
  if (op == UnaryOp::logical_not && !is_bool(t)) need = "bool";
  if (op == UnaryOp::bit_not && !is_int(t)) need = "integers";
  if ((op == UnaryOp::neg || op == UnaryOp::abs) && is_bool(t)) need = "numbers";
  if (op >= UnaryOp::sqrt && !is_float(t)) need = "floats";
  if (!need.empty()) {
    throw UserError(
        fmt::format("formula error in {}: it needs {}, got {}", name(op), need, name(t)));
  }
  if (const IntImm* x = a.as<IntImm>()) {
    if (op == UnaryOp::logical_not) return bool_imm(x->value == 0);
    if (op == UnaryOp::neg)
      return int_imm(wrap_int(static_cast<int64_t>(0 - static_cast<uint64_t>(x->value)), t), t);
  }
  if (const FloatImm* x = a.as<FloatImm>(); x && op == UnaryOp::neg) return float_imm(-x->value, t);
  const DType result = op == UnaryOp::is_nan ? DType::boolean : t;
  return make_expr({result, a.lanes()}, Unary{op, a});
}

Expr select(Expr condition, Expr yes, Expr no) {
  unify(yes, no);
  if (condition.lanes() > 1 && yes.lanes() == 1) {
    yes = broadcast(yes, condition.lanes());
    no = broadcast(no, condition.lanes());
  }
  if (!is_bool(condition.dtype()) || yes.type() != no.type() ||
      (condition.lanes() != 1 && condition.lanes() != yes.lanes())) {
    throw UserError(
        fmt::format("formula error in select: it needs a bool condition and two values of one "
                    "type, got {}, {} and {}",
                    type_text(condition.type()), type_text(yes.type()), type_text(no.type())));
  }
  if (is_true(condition)) return yes;
  if (is_false(condition)) return no;
  const Type type = yes.type();
  return make_expr(type, Select{std::move(condition), std::move(yes), std::move(no)});
}

Expr cast(DType t, Expr e) {
  if (e.dtype() == t) return e;
  if (const IntImm* x = e.as<IntImm>(); x && e.dtype() != DType::u64) {
    if (is_float(t) && (t == DType::f32 || t == DType::f64)) {
      return t == DType::f32 ? float_imm(static_cast<float>(x->value), t)
                             : float_imm(static_cast<double>(x->value), t);
    }
    if (!is_float(t)) return int_imm(wrap_int(x->value, t), t);
  }
  if (const FloatImm* x = e.as<FloatImm>();
      x && (t == DType::f64 || (t == DType::f32 && e.dtype() == DType::f64))) {
    return float_imm(x->value, t);
  }
  const int lanes = e.lanes();
  return make_expr({t, lanes}, Cast{std::move(e)});
}

Expr bitcast(DType t, Expr e) {
  TENON_CHECK(byte_size(t) == byte_size(e.dtype()), "bitcast of {} to {}", name(e.dtype()),
              name(t));
  if (e.dtype() == t) return e;
  const int lanes = e.lanes();
  return make_expr({t, lanes}, Bitcast{std::move(e)});
}

Expr load(const Buffer& buffer, std::vector<Expr> indices, Expr mask) {
  TENON_CHECK(buffer.defined(), "load from an undefined buffer");
  int lanes = mask.defined() ? mask.lanes() : 1;
  for (Expr& index : indices) {
    if (index.dtype() != DType::i64) index = cast(DType::i64, index);
    lanes = std::max(lanes, index.lanes());
  }
  return make_expr({buffer->dtype, lanes}, Load{buffer, std::move(indices), std::move(mask)});
}

Expr call(MathFn fn, std::vector<Expr> args) {
  const bool two = fn == MathFn::pow || fn == MathFn::ldexp;
  TENON_CHECK(args.size() == (two ? 2u : 1u), "{} of {} arguments", name(fn), args.size());
  if (args.size() == 2) unify(args[0], args[1]);
  for (const Expr& a : args) {
    if (!is_float(a.dtype()) || a.type() != args[0].type()) {
      throw UserError(fmt::format("formula error in {}: it needs floats of one type, got {}",
                                  name(fn), type_text(a.type())));
    }
  }
  const Type type = args[0].type();
  return make_expr(type, Call{fn, std::move(args)});
}

Expr ramp(Expr base, Expr stride, int lanes) {
  TENON_CHECK(lanes > 1 && base.lanes() == 1 && stride.type() == base.type(), "ramp of {} lanes",
              lanes);
  const DType t = base.dtype();
  return make_expr({t, lanes}, Ramp{std::move(base), std::move(stride), lanes});
}

Expr broadcast(Expr value, int lanes) {
  TENON_CHECK(value.lanes() == 1 && lanes >= 1, "broadcast of {} lanes to {}", value.lanes(),
              lanes);
  if (lanes == 1) return value;
  const DType t = value.dtype();
  return make_expr({t, lanes}, Broadcast{std::move(value), lanes});
}

Expr let(Var var, Expr value, Expr body) {
  TENON_CHECK(var.type() == value.type(), "let {} of another type", var.name());
  const Type type = body.type();
  return make_expr(type, Let{std::move(var), std::move(value), std::move(body)});
}

Expr vector_reduce(BinaryOp op, Expr value) {
  const Type type = value.type().element();
  return make_expr(type, VectorReduce{op, std::move(value)});
}

Expr shuffle(Expr value, std::vector<int> lanes) {
  const Type type = value.type().with_lanes(static_cast<int>(lanes.size()));
  return make_expr(type, Shuffle{std::move(value), std::move(lanes)});
}

Expr reduce(std::shared_ptr<const Combiner> combiner, std::vector<Expr> sources,
            std::vector<Axis> axes, std::vector<Expr> init, Expr condition, int element) {
  TENON_CHECK(combiner && sources.size() == combiner->identity.size(), "reduce of {} sources",
              sources.size());
  for (size_t k = 0; k < sources.size(); ++k) {
    sources[k] = adapt_literal(sources[k], combiner->identity[k].dtype());
    if (sources[k].type() != combiner->identity[k].type()) {
      throw UserError(fmt::format("formula error in {}: the source is {}, the combiner works on {}",
                                  combiner->name, type_text(sources[k].type()),
                                  type_text(combiner->identity[k].type())));
    }
  }
  const Type type = sources[static_cast<size_t>(element)].type();
  return make_expr(type, Reduce{std::move(combiner), std::move(sources), std::move(axes),
                                std::move(init), std::move(condition), element});
}

}  // namespace tenon
