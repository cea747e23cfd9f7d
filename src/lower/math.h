#pragma once
#include <tenon/ir/expr.h>

#include <vector>

namespace tenon {

// Formulas of expand_math: each takes f32 or f64 expressions (any lanes) and gives an expression of
// arithmetic, compares, selects and bit operations (and ldexp where asked for). Errors are against
// the exact value, without contraction of a*b+c; contraction makes none of them worse than stated.
// All keep NaN and give IEEE results for infinities, zeros and denormals.

/// How a formula multiplies by 2^n: with arithmetic on the bits, or with a call of ldexp, which
/// stays and is one instruction.
enum class PowerOfTwo : uint8_t { bits, ldexp };

/// f32, f64: x * 2^n for whole n in [-250, 250], in two steps on the bits.
Expr ldexp_formula(const Expr& x, const Expr& n);
/// f32, f64: 1.5 ULP (results that are denormal: half a denormal step more).
Expr exp_formula(const Expr& x, PowerOfTwo power = PowerOfTwo::bits);
/// f32, f64: 1.5 ULP.
Expr log_formula(const Expr& x);
/// f32, f64: 3 ULP.
Expr tanh_formula(const Expr& x, PowerOfTwo power = PowerOfTwo::bits);
/// f32, f64: 3 ULP.
Expr sigmoid_formula(const Expr& x, PowerOfTwo power = PowerOfTwo::bits);
/// f32: 2 ULP, f64: 3 ULP.
Expr erf_formula(const Expr& x, PowerOfTwo power = PowerOfTwo::bits);
/// f32 only, for every finite argument: 1 ULP.
Expr sin_formula(const Expr& x);
Expr cos_formula(const Expr& x);
/// f32 only: 1 ULP. All special cases of C's pow.
Expr pow_formula(const Expr& x, const Expr& y, PowerOfTwo power = PowerOfTwo::bits);

/// Names for subterms used more than once: bind() them, then close() puts the Lets round the
/// result.
class LetBlock {
 public:
  Expr bind(const char* name, const Expr& value);
  Expr close(Expr body) const;

 private:
  std::vector<std::pair<Var, Expr>> bindings_;
};

/// Layout of a binary float and the constants that hang on it.
struct FloatFormat {
  DType type, bits;    // f32 and i32, f64 and i64
  int mantissa, bias;  // 23 and 127, 52 and 1023
  double magic;        // 1.5 * 2^mantissa: adding it rounds to an integer in the low bits
  int64_t magic_bits, sign_bit;
};
const FloatFormat& format_of(DType t);

/// A literal of e's type and lanes.
Expr constant_like(const Expr& e, double value);
/// c[0]*x^(n-1) + ... + c[n-1] by Horner's rule.
Expr polynomial(const Expr& x, const std::vector<double>& coefficients);
/// magnitude with the sign of `sign`; magnitude >= 0.
Expr with_sign_of(const Expr& magnitude, const Expr& sign);

}  // namespace tenon
