#include "lower/math.h"

#include <tenon/ir/ops.h>
#include <tenon/support/error.h>

#include <limits>

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Expr op(BinaryOp o, const Expr& a, const Expr& b) { return binary(o, a, b); }
Expr ibits(const FloatFormat& f, int64_t value) { return int_imm(wrap_int(value, f.bits), f.bits); }

// 2^n for n with a normal result.
Expr power_of_two(const FloatFormat& f, const Expr& n) {
  return bitcast(f.type, op(BinaryOp::shl, n + ibits(f, f.bias), ibits(f, f.mantissa)));
}

struct ExpConstants {
  double low, high;          // beyond these the result is 0 or infinite
  double ln2_high, ln2_low;  // ln2_high has trailing zeros: n*ln2_high is exact
  std::vector<double> p;     // (exp(r) - 1 - r) / r^2 on |r| <= ln(2)/2
};

// f32: Cephes expf. f64: Taylor to degree 13, whose tail is below 2^-58 on the interval.
const ExpConstants& exp_constants(DType t) {
  static const ExpConstants f32c{-104,
                                 89,
                                 0.693359375,
                                 -2.12194440e-4,
                                 {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3,
                                  4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}};
  static const ExpConstants f64c{
      -746,
      710,
      0x1.62e42feep-1,
      0x1.a39ef35793c76p-33,
      {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
       1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5}};
  return t == DType::f32 ? f32c : f64c;
}

struct LogConstants {
  double smallest_normal, scale;
  int scale_bits;
  int64_t sqrt_half_bits;
  double ln2_high, ln2_low;
};

const LogConstants& log_constants(DType t) {
  static const LogConstants f32c{0x1p-126, 0x1p23, 23, 0x3f3504f3, 0.693359375, -2.12194440e-4};
  static const LogConstants f64c{0x1p-1022,          0x1p54,           54,
                                 0x3fe6a09e667f3bcd, 0x1.62e42fefap-1, 0x1.cf79abc9e3b3ap-40};
  return t == DType::f32 ? f32c : f64c;
}

// log(1+f) - f for f in [sqrt(1/2)-1, sqrt(2)-1]. f32: Cephes logf. f64: fdlibm e_log.c.
Expr log1p_tail(LetBlock& block, const Expr& f) {
  if (f.dtype() == DType::f32) {
    const Expr z = block.bind("z", f * f);
    const Expr p = polynomial(
        f, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
            -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
    return f * z * p - z * constant_like(z, 0.5);
  }
  const Expr s = block.bind("s", f / (f + constant_like(f, 2)));
  const Expr z = block.bind("z", s * s);
  const Expr r = z * polynomial(z, {1.479819860511658591e-01, 1.531383769920937332e-01,
                                    1.818357216161805012e-01, 2.222219843214978396e-01,
                                    2.857142874366239149e-01, 3.999999999940941908e-01,
                                    6.666666666666735130e-01});
  const Expr half = block.bind("half", f * f * constant_like(f, 0.5));
  return s * (half + r) - half;
}

// exp(-2|x|) - 1 would cancel near 0: tanh(a) for 0 <= a < 0.625 as a + a*z*P(z). Cephes tanhf,
// tanh.
Expr tanh_small(LetBlock& block, const Expr& a) {
  const Expr z = block.bind("z", a * a);
  if (a.dtype() == DType::f32) {
    return a + a * z *
                   polynomial(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2,
                                  1.33314422036e-1, -3.33332819422e-1});
  }
  const Expr p = polynomial(
      z, {-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3});
  const Expr q = polynomial(
      z, {1, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3});
  return a + a * z * (p / q);
}

// f32: an odd polynomial up to 1, another (minimax over [1, 3.75], where the result rounds to 1) in
// v = (2|x| - 4.75)/2.75 beyond.
Expr erf_f32(LetBlock& block, const Expr& x) {
  const Expr a = block.bind("a", abs(x)), end = constant_like(a, 3.75);
  const Expr s = block.bind("s", x * x);
  const Expr t = block.bind("t", select(a > end, end, a));
  const Expr v = block.bind("v", t * constant_like(t, 2 / 2.75) - constant_like(t, 4.75 / 2.75));
  const Expr outer = polynomial(
      v, {-0.0004042895743623376, 0.001160160289146006, 0.0005357994814403355,
          -0.005888668354600668, 0.008156861178576946, 0.0010772328823804855, -0.021256301552057266,
          0.04110127314925194, -0.04690621420741081, 0.0356905460357666, -0.01799260452389717,
          0.005509031005203724, 0.9992170929908752});
  const Expr inner =
      x + x * polynomial(s, {7.853860006434843e-05, -0.0008010193123482168, 0.005188327748328447,
                             -0.026853810995817184, 0.1128358542919159, -0.3761262595653534,
                             0.12837916612625122});
  return select(a > constant_like(a, 1), with_sign_of(outer, x), inner);
}

// f64: Cephes ndtr.c.
Expr erf_f64(LetBlock& block, const Expr& x, PowerOfTwo power) {
  const Expr a = block.bind("a", abs(x));
  const Expr t = block.bind("t", select(a > constant_like(a, 6.5), constant_like(a, 6.5), a));
  const Expr s = block.bind("s", t * t);
  const Expr inner =
      t *
      polynomial(s, {9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
                     7.00332514112805075473e3, 5.55923013010394962768e4}) /
      polynomial(s, {1, 3.35617141647503099647e1, 5.21357949780152679795e2,
                     4.59432382970980127987e3, 2.26290000613890934246e4, 4.92673942608635921086e4});
  const Expr p = polynomial(
      t, {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
          4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
          9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2});
  const Expr q =
      polynomial(t, {1, 1.32281951154744992508e1, 8.67072140885989742329e1,
                     3.54937778887819891062e2, 9.75708501743205489753e2, 1.82390916687909736289e3,
                     2.24633760818710981792e3, 1.65666309194161350182e3, 5.57535340817727675546e2});
  const Expr outer = constant_like(t, 1) - exp_formula(-s, power) * (p / q);
  return with_sign_of(select(t > constant_like(t, 1), outer, inner), x);
}

// 1/(2 pi) in pieces of 28 bits: each times an f32 is exact in f64.
const std::vector<double>& inverse_two_pi();

}  // namespace

const FloatFormat& format_of(DType t) {
  static const FloatFormat f32f{DType::f32, DType::i32,          23, 127, 0x1.8p23,
                                0x4b400000, INT64_C(-0x80000000)};
  static const FloatFormat f64f{DType::f64, DType::i64,         52,       1023,
                                0x1.8p52,   0x4338000000000000, INT64_MIN};
  TENON_CHECK(t == DType::f32 || t == DType::f64, "no formula for {}", name(t));
  return t == DType::f32 ? f32f : f64f;
}

Expr LetBlock::bind(const char* name, const Expr& value) {
  Var v(name, value.type());
  bindings_.emplace_back(v, value);
  return v;
}

Expr LetBlock::close(Expr body) const {
  for (size_t k = bindings_.size(); k-- > 0;) {
    body = let(bindings_[k].first, bindings_[k].second, body);
  }
  return body;
}

Expr constant_like(const Expr& e, double value) {
  return broadcast(imm(value, e.dtype()), e.lanes());
}

Expr polynomial(const Expr& x, const std::vector<double>& c) {
  Expr p = constant_like(x, c[0]);
  for (size_t k = 1; k < c.size(); ++k) p = p * x + constant_like(x, c[k]);
  return p;
}

Expr with_sign_of(const Expr& magnitude, const Expr& sign) {
  const FloatFormat& f = format_of(sign.dtype());
  const Expr bit = op(BinaryOp::bit_and, bitcast(f.bits, sign), ibits(f, f.sign_bit));
  return bitcast(f.type, op(BinaryOp::bit_or, bitcast(f.bits, magnitude), bit));
}

// 2^n in two steps, so that denormal results are rounded once and the largest finite ones do not
// overflow early.
Expr ldexp_formula(const Expr& argument, const Expr& exponent) {
  const FloatFormat& f = format_of(argument.dtype());
  LetBlock b;
  const Expr x = b.bind("x", argument);
  const Expr n = b.bind(
      "n", bitcast(f.bits, exponent + constant_like(exponent, f.magic)) - ibits(f, f.magic_bits));
  const Expr half = b.bind("half", op(BinaryOp::shr, n, ibits(f, 1)));
  return b.close(x * power_of_two(f, half) * power_of_two(f, n - half));
}

// exp(x) = 2^n * exp(r), n = round(x / ln 2), r = x - n ln 2 (Cody and Waite).
Expr exp_formula(const Expr& argument, PowerOfTwo power) {
  const FloatFormat& f = format_of(argument.dtype());
  const ExpConstants& c = exp_constants(f.type);
  LetBlock b;
  const Expr arg = b.bind("arg", argument);
  // Arguments whose result is 0, -inf among them (masked attention), run as 0: no denormals on the
  // way. A lane that is off costs the one instruction nothing.
  const Expr high = constant_like(arg, c.high), zero = constant_like(arg, 0);
  const Expr below = b.bind("below", arg < constant_like(arg, c.low));
  const Expr capped = b.bind("capped", select(arg > high, high, arg));
  const Expr x = power == PowerOfTwo::ldexp ? capped : b.bind("x", select(below, zero, capped));
  const Expr magic = constant_like(x, f.magic);
  const Expr t = b.bind("t", x * constant_like(x, 1.4426950408889634) + magic);
  const Expr n = b.bind("n", t - magic);
  const Expr r =
      b.bind("r", x - n * constant_like(x, c.ln2_high) - n * constant_like(x, c.ln2_low));
  const Expr one = constant_like(x, 1);
  const Expr p = b.bind("p", one + (r + r * r * polynomial(r, c.p)));
  const Expr value = power == PowerOfTwo::ldexp ? call(MathFn::ldexp, {p, n}) : ldexp_formula(p, n);
  return b.close(select(below, zero, value));
}

// log(x) = e ln 2 + log(1+f) with x = 2^e (1+f), 1+f in [sqrt(1/2), sqrt(2)).
Expr log_formula(const Expr& argument) {
  const FloatFormat& f = format_of(argument.dtype());
  const LogConstants& c = log_constants(f.type);
  LetBlock b;
  const Expr x = b.bind("x", argument);
  const Expr tiny = b.bind("tiny", x < constant_like(x, c.smallest_normal));
  const Expr scaled = select(tiny, x * constant_like(x, c.scale), x);
  const Expr bits = b.bind("bits", bitcast(f.bits, scaled));
  const Expr e =
      b.bind("e", op(BinaryOp::shr, bits - ibits(f, c.sqrt_half_bits), ibits(f, f.mantissa)));
  const Expr m = bitcast(f.type, bits - op(BinaryOp::shl, e, ibits(f, f.mantissa)));
  const Expr g = b.bind("f", m - constant_like(x, 1));
  const Expr ef = b.bind(
      "ef", cast(f.type, e) - select(tiny, constant_like(x, c.scale_bits), constant_like(x, 0)));
  const Expr tail = log1p_tail(b, g) + ef * constant_like(x, c.ln2_low);
  const Expr finite = ef * constant_like(x, c.ln2_high) + (g + tail);
  const Expr zero = constant_like(x, 0), inf = constant_like(x, kInf);
  const Expr special = select(x == zero, -inf, select(x > zero, inf, constant_like(x, kNan)));
  return b.close(select(x > zero && x < inf, finite, special));
}

Expr tanh_formula(const Expr& argument, PowerOfTwo power) {
  const bool single = argument.dtype() == DType::f32;
  LetBlock b;
  const Expr x = b.bind("x", argument);
  const Expr magnitude = b.bind("m", abs(x));
  const Expr cap = constant_like(x, single ? 10 : 20);
  const Expr a = b.bind("a", select(magnitude > cap, cap, magnitude));
  const Expr one = constant_like(x, 1), two = constant_like(x, 2);
  const Expr large = one - two / (exp_formula(a + a, power) + one);
  const Expr small = tanh_small(b, a);
  return b.close(with_sign_of(select(a < constant_like(x, 0.625), small, large), x));
}

// With e = exp(-|x|): 1/(1+e) for x >= 0, e/(1+e) below, so that small results keep their bits.
Expr sigmoid_formula(const Expr& argument, PowerOfTwo power) {
  LetBlock b;
  const Expr x = b.bind("x", argument);
  const Expr e = b.bind("e", exp_formula(-abs(x), power));
  const Expr one = constant_like(x, 1);
  return b.close(select(x < constant_like(x, 0), e, one) / (one + e));
}

Expr erf_formula(const Expr& argument, PowerOfTwo power) {
  LetBlock b;
  const Expr x = b.bind("x", argument);
  return b.close(x.dtype() == DType::f32 ? erf_f32(b, x) : erf_f64(b, x, power));
}

namespace {

// The quadrant (in the low bits of `n`) and the rest r in [-pi/4, pi/4] of an f32, in f64. The
// turns x/(2 pi) are summed piece by piece without their integer parts, all exact: right for every
// finite x (Payne and Hanek).
struct Reduced {
  Expr n, r;
};
Reduced reduce_angle(LetBlock& b, const Expr& x) {
  const Expr xd = b.bind("xd", cast(DType::f64, x));
  Expr turns = constant_like(xd, 0);
  const std::vector<double>& pieces = inverse_two_pi();
  for (size_t k = pieces.size(); k-- > 0;) {
    const Expr p = b.bind("p", xd * constant_like(xd, pieces[k]));
    turns = b.bind("turns", turns + (p - round(p)));
  }
  const FloatFormat& f = format_of(DType::f64);
  const Expr q = b.bind("q", (turns - round(turns)) * constant_like(xd, 4));
  const Expr t = b.bind("t", q + constant_like(xd, f.magic));
  const Expr rest = q - (t - constant_like(xd, f.magic));
  return {b.bind("n", bitcast(f.bits, t)),
          b.bind("r", rest * constant_like(xd, 1.5707963267948966))};
}

// Polynomials of FreeBSD's k_sinf.c and k_cosf.c, in f64. `quarter` turns are added to the angle.
Expr sine(const Expr& argument, int64_t quarter) {
  LetBlock b;
  const Expr x = b.bind("x", argument);
  const auto [n0, r0] = reduce_angle(b, x);
  const Expr r = r0, n = b.bind("n", n0 + int_imm(quarter));
  const Expr z = b.bind("z", r * r);
  const Expr s = r + r * z *
                         polynomial(z, {0.0000027183114939898219064, -0.000198393348360966317347,
                                        0.0083333293858894631756, -0.166666666416265235595});
  const Expr c = constant_like(r, 1) +
                 z * polynomial(z, {0.0000243904487962774090654, -0.00138867637746099294692,
                                    0.0416666233237390631894, -0.499999997251031003120});
  const Expr zero = int_imm(0);
  const Expr odd = op(BinaryOp::bit_and, n, int_imm(1)) != zero;
  const Expr negative = op(BinaryOp::bit_and, n, int_imm(2)) != zero;
  const Expr value = b.bind("value", select(odd, c, s));
  const Expr result = cast(DType::f32, select(negative, -value, value));
  // The sum of the turns loses the sign of a zero.
  return b.close(quarter == 0 ? select(x == constant_like(x, 0), x, result) : result);
}

const std::vector<double>& inverse_two_pi() {
  static const std::vector<double> pieces{
      0x1.45f306c000000p-3,   0x1.c9c882a000000p-31,  0x1.4fe13a8000000p-61, 0x1.f47d4d0000000p-88,
      0x1.bb81b6c000000p-115, 0x1.4acc9e0000000p-145, 0x1.0e4107c000000p-172};
  return pieces;
}

}  // namespace

Expr sin_formula(const Expr& x) { return sine(x, 0); }
Expr cos_formula(const Expr& x) { return sine(x, 1); }

// exp(y log|x|) in f64, whose error of at most 2^-45 is far below an f32 ULP; then the cases of C's
// pow.
Expr pow_formula(const Expr& base, const Expr& exponent, PowerOfTwo power) {
  LetBlock b;
  const Expr x = b.bind("x", base), y = b.bind("y", exponent);
  const Expr magnitude = abs(x);
  const Expr xd = cast(DType::f64, magnitude), yd = cast(DType::f64, y);
  const Expr raw = cast(DType::f32, exp_formula(yd * log_formula(xd), power));
  const Expr zero = constant_like(x, 0), one = constant_like(x, 1);
  const Expr positive = select(magnitude == one && y == y, one, raw);
  const Expr whole = b.bind("whole", floor(y) == y);
  const Expr half = b.bind("half", y * constant_like(y, 0.5));
  const Expr odd = whole && floor(half) != half;
  const Expr value = b.bind("value", positive);
  const Expr signed_value = select(odd, with_sign_of(value, x), value);
  const Expr no_root = x < zero && x > constant_like(x, -kInf) && !whole;
  const Expr result = select(no_root, constant_like(x, kNan), signed_value);
  return b.close(select(y == zero || x == one, one, result));
}

}  // namespace tenon
