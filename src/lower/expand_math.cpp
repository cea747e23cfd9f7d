#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include "lower/math.h"
#include "lower/passes.h"

namespace tenon {
namespace {

// The formula of a function, or nothing when there is none for this type: the call then stays and
// codegen has the C library compute it lane by lane.
Expr formula(MathFn fn, const std::vector<Expr>& args, PowerOfTwo power) {
  const bool single = args[0].dtype() == DType::f32;
  switch (fn) {
    case MathFn::exp:
      return exp_formula(args[0], power);
    case MathFn::log:
      return log_formula(args[0]);
    case MathFn::tanh:
      return tanh_formula(args[0], power);
    case MathFn::erf:
      return erf_formula(args[0], power);
    case MathFn::sigmoid:
      return sigmoid_formula(args[0], power);
    case MathFn::sin:
      return single ? sin_formula(args[0]) : Expr();
    case MathFn::cos:
      return single ? cos_formula(args[0]) : Expr();
    case MathFn::pow:
      return single ? pow_formula(args[0], args[1], power) : Expr();
    case MathFn::ldexp:
      return power == PowerOfTwo::ldexp ? Expr() : ldexp_formula(args[0], args[1]);
    case MathFn::tan:
    case MathFn::asin:
    case MathFn::acos:
    case MathFn::atan:
    case MathFn::sinh:
    case MathFn::cosh:
    case MathFn::asinh:
    case MathFn::acosh:
    case MathFn::atanh:
      return {};
  }
  return {};
}

Expr expand(const Expr& e, PowerOfTwo power) {
  const Call* n = e.as<Call>();
  if (!n) return e;
  const DType t = e.dtype();
  if (t == DType::f32 || t == DType::f64) {
    const Expr expanded = formula(n->fn, n->args, power);
    return expanded.defined() ? expanded : e;
  }
  // Half-width floats: computed in f32, rounded once more at the end.
  std::vector<Expr> wide;
  for (const Expr& a : n->args) wide.push_back(cast(DType::f32, a));
  const Expr expanded = formula(n->fn, wide, power);
  return cast(t, expanded.defined() ? expanded : call(n->fn, wide));
}

}  // namespace

Program expand_math(const Program& program, const Target& target) {
  const auto power = target.has_feature("avx512f") ? PowerOfTwo::ldexp : PowerOfTwo::bits;
  Program out = program;
  out.body = rewrite(program.body, nullptr, [&](const Expr& e) { return expand(e, power); });
  return out;
}

}  // namespace tenon
