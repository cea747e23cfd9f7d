#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <cmath>
#include <limits>

// Operators, named functions, questions about constants, and the built-in combiners.

namespace tenon {

Expr operator+(Expr a, Expr b) { return binary(BinaryOp::add, std::move(a), std::move(b)); }
Expr operator-(Expr a, Expr b) { return binary(BinaryOp::sub, std::move(a), std::move(b)); }
Expr operator*(Expr a, Expr b) { return binary(BinaryOp::mul, std::move(a), std::move(b)); }
Expr operator/(Expr a, Expr b) { return binary(BinaryOp::div, std::move(a), std::move(b)); }
Expr operator-(Expr a) { return unary(UnaryOp::neg, std::move(a)); }
Expr floor_div(Expr a, Expr b) { return binary(BinaryOp::floor_div, std::move(a), std::move(b)); }
Expr floor_mod(Expr a, Expr b) { return binary(BinaryOp::floor_mod, std::move(a), std::move(b)); }
Expr trunc_div(Expr a, Expr b) { return binary(BinaryOp::trunc_div, std::move(a), std::move(b)); }
Expr trunc_mod(Expr a, Expr b) { return binary(BinaryOp::trunc_mod, std::move(a), std::move(b)); }
Expr min(Expr a, Expr b) { return binary(BinaryOp::min, std::move(a), std::move(b)); }
Expr max(Expr a, Expr b) { return binary(BinaryOp::max, std::move(a), std::move(b)); }
Expr operator<(Expr a, Expr b) { return binary(BinaryOp::lt, std::move(a), std::move(b)); }
Expr operator<=(Expr a, Expr b) { return binary(BinaryOp::le, std::move(a), std::move(b)); }
Expr operator>(Expr a, Expr b) { return binary(BinaryOp::gt, std::move(a), std::move(b)); }
Expr operator>=(Expr a, Expr b) { return binary(BinaryOp::ge, std::move(a), std::move(b)); }
Expr operator==(Expr a, Expr b) { return binary(BinaryOp::eq, std::move(a), std::move(b)); }
Expr operator!=(Expr a, Expr b) { return binary(BinaryOp::ne, std::move(a), std::move(b)); }
Expr operator&&(Expr a, Expr b) {
  return binary(BinaryOp::logical_and, std::move(a), std::move(b));
}
Expr operator||(Expr a, Expr b) { return binary(BinaryOp::logical_or, std::move(a), std::move(b)); }
Expr operator!(Expr a) { return unary(UnaryOp::logical_not, std::move(a)); }

Expr abs(Expr a) { return unary(UnaryOp::abs, std::move(a)); }
Expr sqrt(Expr a) { return unary(UnaryOp::sqrt, std::move(a)); }
Expr floor(Expr a) { return unary(UnaryOp::floor, std::move(a)); }
Expr ceil(Expr a) { return unary(UnaryOp::ceil, std::move(a)); }
Expr trunc(Expr a) { return unary(UnaryOp::trunc, std::move(a)); }
Expr round(Expr a) { return unary(UnaryOp::round, std::move(a)); }
Expr is_nan(Expr a) { return unary(UnaryOp::is_nan, std::move(a)); }
Expr exp(Expr a) { return call(MathFn::exp, {std::move(a)}); }
Expr log(Expr a) { return call(MathFn::log, {std::move(a)}); }
Expr tanh(Expr a) { return call(MathFn::tanh, {std::move(a)}); }
Expr erf(Expr a) { return call(MathFn::erf, {std::move(a)}); }
Expr sigmoid(Expr a) { return call(MathFn::sigmoid, {std::move(a)}); }
Expr pow(Expr a, Expr b) { return call(MathFn::pow, {std::move(a), std::move(b)}); }

Expr both(const Expr& a, const Expr& b) {
  if (!a.defined() || is_true(a)) return b;
  if (!b.defined() || is_true(b)) return a;
  return a && b;
}

std::vector<Expr> conjuncts(const Expr& condition) {
  if (!condition.defined()) return {};
  const Binary* b = condition.as<Binary>();
  if (!b || b->op != BinaryOp::logical_and) return {condition};
  std::vector<Expr> out = conjuncts(b->a);
  for (Expr& e : conjuncts(b->b)) out.push_back(std::move(e));
  return out;
}

Expr conjunction(const std::vector<Expr>& parts) {
  Expr out;
  for (const Expr& e : parts) out = both(out, e);
  return out;
}

std::optional<int64_t> as_int(const Expr& e) {
  const IntImm* imm = e.as<IntImm>();
  return imm ? std::optional(imm->value) : std::nullopt;
}

std::optional<double> as_float(const Expr& e) {
  const FloatImm* imm = e.as<FloatImm>();
  return imm ? std::optional(imm->value) : std::nullopt;
}

bool is_const(const Expr& e, int64_t value) { return as_int(e) == value; }
bool is_true(const Expr& e) { return e.defined() && is_bool(e.dtype()) && is_const(e, 1); }
bool is_false(const Expr& e) { return e.defined() && is_bool(e.dtype()) && is_const(e, 0); }

std::optional<std::vector<int64_t>> const_shape(const std::vector<Expr>& shape) {
  std::vector<int64_t> out;
  for (const Expr& extent : shape) {
    auto value = as_int(extent);
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

namespace {

std::shared_ptr<const Combiner> one_element(std::string combiner_name, DType t, BinaryOp op,
                                            Expr identity) {
  Var x("x", {t, 1}), y("y", {t, 1});
  return std::make_shared<const Combiner>(Combiner{
      std::move(combiner_name), {x}, {y}, {binary(op, x, y)}, {std::move(identity)}, true});
}

Expr extreme(DType t, bool highest) {
  if (is_float(t)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return float_imm(highest ? infinity : -infinity, t);
  }
  if (t == DType::u64 && highest) return int_imm(-1, t);
  return int_imm(highest ? max_int(t) : min_int(t), t);
}

}  // namespace

std::shared_ptr<const Combiner> sum_combiner(DType t) {
  return one_element("sum", t, BinaryOp::add, zero(t));
}
std::shared_ptr<const Combiner> prod_combiner(DType t) {
  return one_element("prod", t, BinaryOp::mul, imm(1, t));
}
std::shared_ptr<const Combiner> max_combiner(DType t) {
  return one_element("max", t, BinaryOp::max, extreme(t, false));
}
std::shared_ptr<const Combiner> min_combiner(DType t) {
  return one_element("min", t, BinaryOp::min, extreme(t, true));
}
std::shared_ptr<const Combiner> any_combiner() {
  return one_element("any", DType::boolean, BinaryOp::logical_or, bool_imm(false));
}
std::shared_ptr<const Combiner> all_combiner() {
  return one_element("all", DType::boolean, BinaryOp::logical_and, bool_imm(true));
}

std::vector<Expr> combine(const Combiner& c, const std::vector<Expr>& lhs,
                          const std::vector<Expr>& rhs) {
  VarMap values;
  for (size_t k = 0; k < c.lhs.size(); ++k) {
    values[c.lhs[k]] = lhs[k];
    values[c.rhs[k]] = rhs[k];
  }
  std::vector<Expr> out;
  for (const Expr& r : c.result) out.push_back(substitute(r, values));
  return out;
}

std::optional<BinaryOp> combiner_op(const Combiner& c) {
  if (c.result.size() != 1 || !c.commutative) return std::nullopt;
  const Binary* b = c.result[0].as<Binary>();
  if (!b) return std::nullopt;
  const VarRef *x = b->a.as<VarRef>(), *y = b->b.as<VarRef>();
  if (!x || !y || !x->var.same_as(c.lhs[0]) || !y->var.same_as(c.rhs[0])) return std::nullopt;
  switch (b->op) {
    case BinaryOp::add:
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::max:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
      return b->op;
    default:
      return std::nullopt;
  }
}

}  // namespace tenon
