#include "kernels/elementwise.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <cmath>
#include <limits>

#include "kernels/axes.h"

namespace tenon {
namespace {

using Numbers = OpNumbers;

Expr number(double value, const Expr& like) { return imm(value, like.dtype()); }

Expr sign_of(const Expr& x) {
  const Expr nothing = zero(x.dtype());
  if (is_unsigned_int(x.dtype())) return select(x == nothing, nothing, number(1, x));
  const Expr signs = select(x > nothing, number(1, x), select(x < nothing, number(-1, x), nothing));
  return is_float(x.dtype()) ? select(is_nan(x), x, signs) : signs;
}

/// log(1 + exp(x)) without overflow.
Expr softplus(const Expr& x) { return max(x, zero(x.dtype())) + log(number(1, x) + exp(-abs(x))); }

Expr negative_part(const Expr& x, const Expr& below) {
  return select(x > zero(x.dtype()), x, below);
}

Expr clamp01(const Expr& x) { return max(zero(x.dtype()), min(number(1, x), x)); }

Expr gelu(const Expr& x, bool approximate) {
  // h + h*f, not h*(1 + f): one multiply-add.
  const Expr half = number(0.5, x) * x;
  if (!approximate) return half + half * erf(x * number(std::sqrt(0.5), x));
  const Expr inner = number(std::sqrt(2.0 / M_PI), x) * (x + number(0.044715, x) * x * x * x);
  return half + half * tanh(inner);
}

struct UnaryOperator {
  const char* name;
  char types;  // f: floats; n: numbers; b: bools; i: integers; a: all
  Expr (*apply)(const Expr&, const Numbers&);
};

template <MathFn fn>
Expr math(const Expr& x, const Numbers&) {
  return call(fn, {x});
}
template <UnaryOp op>
Expr plain(const Expr& x, const Numbers&) {
  return unary(op, x);
}

const UnaryOperator kUnary[] = {
    {"identity", 'a', [](const Expr& x, const Numbers&) { return x; }},
    {"neg", 'n', plain<UnaryOp::neg>},
    {"abs", 'n',
     [](const Expr& x, const Numbers&) { return is_unsigned_int(x.dtype()) ? x : abs(x); }},
    {"sign", 'n', [](const Expr& x, const Numbers&) { return sign_of(x); }},
    {"square", 'n', [](const Expr& x, const Numbers&) { return x * x; }},
    {"floor", 'f', plain<UnaryOp::floor>},
    {"ceil", 'f', plain<UnaryOp::ceil>},
    {"round", 'f', plain<UnaryOp::round>},
    {"sqrt", 'f', plain<UnaryOp::sqrt>},
    {"reciprocal", 'f', [](const Expr& x, const Numbers&) { return number(1, x) / x; }},
    {"exp", 'f', math<MathFn::exp>},
    {"log", 'f', math<MathFn::log>},
    {"sin", 'f', math<MathFn::sin>},
    {"cos", 'f', math<MathFn::cos>},
    {"tan", 'f', math<MathFn::tan>},
    {"asin", 'f', math<MathFn::asin>},
    {"acos", 'f', math<MathFn::acos>},
    {"atan", 'f', math<MathFn::atan>},
    {"sinh", 'f', math<MathFn::sinh>},
    {"cosh", 'f', math<MathFn::cosh>},
    {"tanh", 'f', math<MathFn::tanh>},
    {"asinh", 'f', math<MathFn::asinh>},
    {"acosh", 'f', math<MathFn::acosh>},
    {"atanh", 'f', math<MathFn::atanh>},
    {"erf", 'f', math<MathFn::erf>},
    {"sigmoid", 'f', math<MathFn::sigmoid>},
    {"silu", 'f',
     [](const Expr& x, const Numbers& n) {
       return x * sigmoid(n.alpha ? x * number(*n.alpha, x) : x);
     }},
    {"relu", 'n', [](const Expr& x, const Numbers&) { return max(x, zero(x.dtype())); }},
    {"leaky_relu", 'f',
     [](const Expr& x, const Numbers& n) {
       return select(x < zero(x.dtype()), x * number(n.alpha.value_or(0.01), x), x);
     }},
    {"thresholded_relu", 'f',
     [](const Expr& x, const Numbers& n) {
       return select(x > number(n.alpha.value_or(1), x), x, zero(x.dtype()));
     }},
    {"elu", 'f',
     [](const Expr& x, const Numbers& n) {
       return negative_part(x, number(n.alpha.value_or(1), x) * (exp(x) - number(1, x)));
     }},
    {"celu", 'f',
     [](const Expr& x, const Numbers& n) {
       const Expr a = number(n.alpha.value_or(1), x);
       return negative_part(x, a * (exp(x / a) - number(1, x)));
     }},
    {"selu", 'f',
     [](const Expr& x, const Numbers& n) {
       const Expr a = number(n.alpha.value_or(1.67326319217681884765625), x);
       return number(n.beta.value_or(1.05070102214813232421875), x) *
              negative_part(x, a * exp(x) - a);
     }},
    {"softplus", 'f', [](const Expr& x, const Numbers&) { return softplus(x); }},
    {"softsign", 'f', [](const Expr& x, const Numbers&) { return x / (number(1, x) + abs(x)); }},
    {"mish", 'f', [](const Expr& x, const Numbers&) { return x * tanh(softplus(x)); }},
    {"gelu", 'f', [](const Expr& x, const Numbers& n) { return gelu(x, n.approximate); }},
    {"hard_sigmoid", 'f',
     [](const Expr& x, const Numbers& n) {
       return clamp01(number(n.alpha.value_or(0.2), x) * x + number(n.beta.value_or(0.5), x));
     }},
    {"hard_swish", 'f',
     [](const Expr& x, const Numbers&) {
       return x * clamp01(number(1.0 / 6.0, x) * x + number(0.5, x));
     }},
    {"shrink", 'n',
     [](const Expr& x, const Numbers& n) {
       const Expr bias = number(n.alpha.value_or(0), x), lambda = number(n.beta.value_or(0.5), x);
       return select(x < -lambda, x + bias, select(x > lambda, x - bias, zero(x.dtype())));
     }},
    {"is_nan", 'f', plain<UnaryOp::is_nan>},
    {"is_inf", 'f',
     [](const Expr& x, const Numbers& n) {
       // alpha and beta: whether minus and plus infinity count (1 or 0)
       const Expr inf = number(std::numeric_limits<double>::infinity(), x);
       const bool minus = n.alpha.value_or(1) != 0, plus = n.beta.value_or(1) != 0;
       return (bool_imm(plus) && x == inf) || (bool_imm(minus) && x == -inf);
     }},
    {"not", 'b', plain<UnaryOp::logical_not>},
    {"bit_not", 'i', plain<UnaryOp::bit_not>},
};

/// Integer division rounds to zero, as C and ONNX do.
Expr divide(const Expr& a, const Expr& b) { return is_float(a.dtype()) ? a / b : trunc_div(a, b); }

Expr modulo(const Expr& a, const Expr& b, bool fmod) {
  if (!is_float(a.dtype())) return fmod ? trunc_mod(a, b) : floor_mod(a, b);
  const Expr quotient = a / b;
  return a - b * (fmod ? trunc(quotient) : floor(quotient));
}

Expr power(const Expr& a, const Expr& b) {
  if (is_float(a.dtype())) return pow(a, as_type(a.dtype(), b));
  return cast(a.dtype(), pow(cast(f64, a), cast(f64, b)));
}

struct BinaryOperator {
  const char* name;
  char types;
  Expr (*apply)(const Expr&, const Expr&, const Numbers&);
};

template <BinaryOp op>
Expr both_plain(const Expr& a, const Expr& b, const Numbers&) {
  return binary(op, a, b);
}

const BinaryOperator kBinary[] = {
    {"add", 'n', both_plain<BinaryOp::add>},
    {"sub", 'n', both_plain<BinaryOp::sub>},
    {"mul", 'n', both_plain<BinaryOp::mul>},
    {"div", 'n', [](const Expr& a, const Expr& b, const Numbers&) { return divide(a, b); }},
    {"mod", 'n',
     [](const Expr& a, const Expr& b, const Numbers& n) { return modulo(a, b, n.fmod); }},
    {"pow", 'n', [](const Expr& a, const Expr& b, const Numbers&) { return power(a, b); }},
    {"min", 'n', both_plain<BinaryOp::min>},
    {"max", 'n', both_plain<BinaryOp::max>},
    {"prelu", 'n',
     [](const Expr& a, const Expr& b, const Numbers&) {
       return select(a < zero(a.dtype()), a * b, a);
     }},
    {"equal", 'a', both_plain<BinaryOp::eq>},
    {"not_equal", 'a', both_plain<BinaryOp::ne>},
    {"less", 'n', both_plain<BinaryOp::lt>},
    {"less_equal", 'n', both_plain<BinaryOp::le>},
    {"greater", 'n', both_plain<BinaryOp::gt>},
    {"greater_equal", 'n', both_plain<BinaryOp::ge>},
    {"and", 'b', both_plain<BinaryOp::logical_and>},
    {"or", 'b', both_plain<BinaryOp::logical_or>},
    {"xor", 'b', both_plain<BinaryOp::ne>},
    {"bit_and", 'i', both_plain<BinaryOp::bit_and>},
    {"bit_or", 'i', both_plain<BinaryOp::bit_or>},
    {"bit_xor", 'i', both_plain<BinaryOp::bit_xor>},
    {"shift_left", 'i', both_plain<BinaryOp::shl>},
    {"shift_right", 'i', both_plain<BinaryOp::shr>},
};

template <class Table>
std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.emplace_back(entry.name);
  return names;
}

template <class Table>
const auto& find(const Table& table, std::string_view op, std::string_view where) {
  for (const auto& entry : table)
    if (op == entry.name) return entry;
  throw UserError(fmt::format("{}: unknown operator \"{}\"\n  nearest: {}", where, op,
                              join(nearest_names(op, names_of(table)))));
}

bool allowed(char types, DType t) {
  switch (types) {
    case 'f':
      return is_float(t);
    case 'n':
      return !is_bool(t);
    case 'b':
      return is_bool(t);
    case 'i':
      return is_int(t);
    default:
      return true;
  }
}

void check_type(std::string_view where, std::string_view op, char types, DType t) {
  if (allowed(types, t)) return;
  const char* words = types == 'f'   ? "floats"
                      : types == 'n' ? "numbers"
                      : types == 'b' ? "bools"
                                     : "integers";
  throw UserError(fmt::format("{}: \"{}\" takes {}; the type is {}", where, op, words, name(t)));
}

bool is_half(DType t) { return t == f16 || t == bf16; }

}  // namespace

const std::vector<std::string>& unary_names() {
  static const std::vector<std::string> names = names_of(kUnary);
  return names;
}

const std::vector<std::string>& binary_names() {
  static const std::vector<std::string> names = names_of(kBinary);
  return names;
}

Expr unary_expr(std::string_view op, const Expr& x, const OpNumbers& numbers,
                std::string_view where) {
  const UnaryOperator& entry = find(kUnary, op, where);
  check_type(where, op, entry.types, x.dtype());
  if (!is_half(x.dtype())) return entry.apply(x, numbers);
  Expr result = entry.apply(cast(f32, x), numbers);
  return result.dtype() == f32 ? cast(x.dtype(), result) : result;
}

Expr binary_expr(std::string_view op, const Expr& a, const Expr& b, const OpNumbers& numbers,
                 std::string_view where) {
  const BinaryOperator& entry = find(kBinary, op, where);
  check_type(where, op, entry.types, a.dtype());
  if (a.dtype() != b.dtype() && op != "pow")
    throw UserError(fmt::format("{}: \"{}\" of {} and {}; the types must be equal", where, op,
                                name(a.dtype()), name(b.dtype())));
  if (!is_half(a.dtype())) return entry.apply(a, b, numbers);
  Expr result = entry.apply(cast(f32, a), as_type(f32, b), numbers);
  return result.dtype() == f32 ? cast(a.dtype(), result) : result;
}

Tensor unary(std::string_view op, const Tensor& x, const OpNumbers& numbers,
             const std::string& name) {
  const auto axes = axes_over(x.extents());
  return compute(name, axes, unary_expr(op, x.at(indices_of(axes)), numbers, name));
}

Tensor binary(std::string_view op, const Tensor& a, const Tensor& b, const OpNumbers& numbers,
              const std::string& name) {
  const auto axes = axes_over(broadcast_shape(name, a.extents(), b.extents()));
  const auto at = indices_of(axes);
  return compute(name, axes,
                 binary_expr(op, broadcast_read(a, at), broadcast_read(b, at), numbers, name));
}

Tensor where(const Tensor& condition, const Tensor& yes, const Tensor& no,
             const std::string& name) {
  require_same_type(name, yes, no);
  if (!is_bool(condition.dtype()))
    throw UserError(fmt::format("{}: the condition \"{}\" is {}; it must be bool", name,
                                condition.name(), tenon::name(condition.dtype())));
  const auto shape = broadcast_shape(name, condition.extents(),
                                     broadcast_shape(name, yes.extents(), no.extents()));
  const auto axes = axes_over(shape);
  const auto at = indices_of(axes);
  return compute(
      name, axes,
      select(broadcast_read(condition, at), broadcast_read(yes, at), broadcast_read(no, at)));
}

Tensor clip(const Tensor& x, const Tensor& low, const Tensor& high, const std::string& name) {
  const auto axes = axes_over(x.extents());
  Expr value = x.at(indices_of(axes));
  auto bound = [&](const Tensor& t) {
    require_same_type(name, x, t);
    if (t.rank() > 1 || (t.rank() == 1 && t.extent(0) != 1))
      throw UserError(fmt::format("{}: the bound \"{}\" must be a scalar; its shape is {}", name,
                                  t.name(), shape_text(t.extents())));
    return t.rank() == 0 ? t() : t(0);
  };
  if (low.defined()) value = max(value, bound(low));
  if (high.defined()) value = min(value, bound(high));
  return compute(name, axes, value);
}

Tensor clip(const Tensor& x, std::optional<double> low, std::optional<double> high,
            const std::string& name) {
  const auto axes = axes_over(x.extents());
  Expr value = x.at(indices_of(axes));
  if (low) value = max(value, imm(*low, x.dtype()));
  if (high) value = min(value, imm(*high, x.dtype()));
  return compute(name, axes, value);
}

Tensor cast(DType t, const Tensor& x, const std::string& name) {
  const auto axes = axes_over(x.extents());
  return compute(name, axes, as_type(t, x.at(indices_of(axes))));
}

}  // namespace tenon
