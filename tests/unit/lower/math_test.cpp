#include "lower/math.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "evaluate.h"

using namespace tenon;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

using Formula1 = std::function<Expr(const Expr&)>;

/// Both ways of multiplying by a power of two.
std::vector<Formula1> both(Expr (*formula)(const Expr&, PowerOfTwo)) {
  std::vector<Formula1> out;
  for (PowerOfTwo power : {PowerOfTwo::bits, PowerOfTwo::ldexp})
    out.push_back([formula, power](const Expr& x) { return formula(x, power); });
  return out;
}

// Distance of `got` to the exact value in steps of the type at that value (denormal steps below the
// normals).
double ulp_error(double got, long double exact, DType t) {
  const bool single = t == DType::f32;
  const double nearest = single ? static_cast<float>(exact) : static_cast<double>(exact);
  if (std::isnan(nearest)) return std::isnan(got) ? 0 : kInf;
  if (std::isinf(nearest) || std::isinf(got)) return got == nearest ? 0 : kInf;
  const int digits = single ? 24 : 53, lowest = single ? -149 : -1074;
  int exponent = lowest;
  if (exact != 0) {
    std::frexp(static_cast<double>(exact), &exponent);
    exponent = std::max(exponent - digits, lowest);
  }
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact)) /
         std::ldexp(1.0, exponent);
}

struct Sweep {
  Formula1 formula;
  std::function<long double(long double)> exact;
  DType type;
};

// Largest error over `inputs`, with the input where it occurs.
std::pair<double, double> worst(const Sweep& s, const std::vector<double>& inputs) {
  const Var x("x", {s.type, 1});
  const Expr e = s.formula(x);
  std::pair<double, double> out{0, 0};
  constexpr size_t kBlock = 4096;
  for (size_t at = 0; at < inputs.size(); at += kBlock) {
    const size_t n = std::min(kBlock, inputs.size() - at);
    Columns columns;
    columns[x.get()].f.assign(inputs.begin() + at, inputs.begin() + at + n);
    const Column got = evaluate(e, columns, n);
    for (size_t k = 0; k < n; ++k) {
      const double error = ulp_error(got.f[k], s.exact(inputs[at + k]), s.type);
      if (error > out.first) out = {error, inputs[at + k]};
    }
  }
  return out;
}

// All exponents and signs: random bit patterns, NaNs and infinities among them, and uniform points
// of [-r, r].
std::vector<double> points(DType t, double r, size_t count) {
  Rng rng(11);
  std::vector<double> out{0.0, -0.0, 1, -1, kInf, -kInf, kNan};
  for (double x : {0x1p-149, 0x1p-126, 0x1p-127, 0x1.fffffep-127, 88.72, 88.723, 88.73, -103.9,
                   -103.97, -104.1, -87.4, 0.625, 0.9277, 0.9278, 1.0000001, 0.9999999}) {
    out.push_back(static_cast<float>(x));
    out.push_back(-static_cast<float>(x));
  }
  if (t == DType::f64)
    out.insert(out.end(), {0x1p-1074, 0x1p-1022, 709.78, 709.79, -745.1, -745.2});
  while (out.size() < count) {
    const double uniform = (2 * rng.real() - 1) * r;
    if (t == DType::f32) {
      const uint32_t bits = static_cast<uint32_t>(rng.next());
      float f;
      std::memcpy(&f, &bits, sizeof f);
      out.push_back(f);
      out.push_back(static_cast<float>(uniform));
    } else {
      const uint64_t bits = rng.next();
      double f;
      std::memcpy(&f, &bits, sizeof f);
      out.push_back(f);
      out.push_back(uniform);
    }
  }
  return out;
}

long double sigmoid_exact(long double x) { return 1 / (1 + std::exp(-x)); }

void check(const Sweep& s, double range, size_t count, double bound) {
  const auto [error, at] = worst(s, points(s.type, range, count));
  INFO("largest error " << error << " ULP at " << at);
  CHECK(error <= bound);
}

}  // namespace

TEST_CASE("expanded f32 functions stay within their stated ULP bounds") {
  const auto f = [](auto fn) {
    return std::function<long double(long double)>(
        [fn](long double x) { return static_cast<long double>(fn(static_cast<double>(x))); });
  };
  SECTION("exp") {
    for (const Formula1& formula : both(exp_formula))
      check({formula, f([](double x) { return std::exp(x); }), f32}, 105, 2000000, 1.5);
  }
  SECTION("log") {
    check({log_formula, f([](double x) { return std::log(x); }), f32}, 10, 2000000, 1.5);
  }
  SECTION("tanh") {
    for (const Formula1& formula : both(tanh_formula))
      check({formula, f([](double x) { return std::tanh(x); }), f32}, 10, 2000000, 3);
  }
  SECTION("erf") {
    for (const Formula1& formula : both(erf_formula))
      check({formula, f([](double x) { return std::erf(x); }), f32}, 5, 2000000, 2);
  }
  SECTION("sigmoid") {
    for (const Formula1& formula : both(sigmoid_formula))
      check({formula, sigmoid_exact, f32}, 105, 1000000, 3);
  }
  SECTION("sin") {
    check({sin_formula, f([](double x) { return std::sin(x); }), f32}, 1000, 2000000, 1);
  }
  SECTION("cos") {
    check({cos_formula, f([](double x) { return std::cos(x); }), f32}, 1000, 2000000, 1);
  }
}

TEST_CASE("expanded f64 functions stay within their stated ULP bounds") {
  const auto l = [](auto fn) { return std::function<long double(long double)>(fn); };
  SECTION("exp") {
    for (const Formula1& formula : both(exp_formula))
      check({formula, l([](long double x) { return std::exp(x); }), f64}, 750, 300000, 1.5);
  }
  SECTION("log") {
    check({log_formula, l([](long double x) { return std::log(x); }), f64}, 10, 300000, 1.5);
  }
  SECTION("tanh") {
    for (const Formula1& formula : both(tanh_formula))
      check({formula, l([](long double x) { return std::tanh(x); }), f64}, 20, 300000, 3);
  }
  SECTION("erf") {
    for (const Formula1& formula : both(erf_formula))
      check({formula, l([](long double x) { return std::erf(x); }), f64}, 7, 300000, 3);
  }
  SECTION("sigmoid") {
    for (const Formula1& formula : both(sigmoid_formula))
      check({formula, sigmoid_exact, f64}, 750, 300000, 3);
  }
}

TEST_CASE("expanded functions keep the sign of zero") {
  for (const Formula1& formula : {both(tanh_formula)[0], both(tanh_formula)[1],
                                  both(erf_formula)[0], Formula1(sin_formula)}) {
    const Var x("x", {f32, 1});
    Columns columns;
    columns[x.get()].f = {-0.0, 0.0};
    const Column got = evaluate(formula(x), columns, 2);
    CHECK(std::signbit(got.f[0]));
    CHECK_FALSE(std::signbit(got.f[1]));
  }
}

TEST_CASE("expanded pow agrees with C's pow on special cases and within 1 ULP elsewhere") {
  const std::vector<double> special{0.0,   -0.0,  1,      -1,       2,     -2,   3,
                                    -3,    0.5,   -0.5,   kInf,     -kInf, kNan, 1e30,
                                    -1e30, 1e-40, -1e-40, 16777216, 2.5,   7};
  std::vector<double> xs, ys;
  for (double x : special) {
    for (double y : special) {
      xs.push_back(static_cast<float>(x));
      ys.push_back(static_cast<float>(y));
    }
  }
  Rng rng(5);
  for (int k = 0; k < 100000; ++k) {
    xs.push_back(static_cast<float>(std::exp((rng.real() - 0.5) * 20)));
    ys.push_back(static_cast<float>((rng.real() - 0.5) * 20));
  }
  const Var x("x", {f32, 1}), y("y", {f32, 1});
  Columns columns;
  columns[x.get()].f = xs;
  columns[y.get()].f = ys;
  const Column got = evaluate(pow_formula(x, y), columns, xs.size());
  for (size_t k = 0; k < xs.size(); ++k) {
    const double exact = std::pow(xs[k], ys[k]);
    const double error = ulp_error(got.f[k], exact, f32);
    const bool same_sign = std::isnan(exact) || std::signbit(exact) == std::signbit(got.f[k]);
    if (error > 1 || !same_sign) {
      FAIL("pow(" << xs[k] << ", " << ys[k] << ") gives " << got.f[k] << ", not " << exact);
    }
  }
}
