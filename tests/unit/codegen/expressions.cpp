#include <tenon/support/float16.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "flat.h"

using namespace tenon;
using namespace tenon::test;

namespace {

// out[i] = f(x[i], y[i]) with vectors of `lanes`, and a serial loop over the rest, on every target.
template <class Fn>
Array elementwise(const Target& target, DType result, const Array& x, const Array& y, int lanes,
                  Fn f) {
  const int64_t n = x.size();
  const Buffer bx = flat_buffer("x", x.dtype(), n), by = flat_buffer("y", y.dtype(), n),
               out = flat_buffer("out", result, n);
  const Var i("i"), j("j");
  std::vector<Stmt> parts;
  if (n >= lanes) {
    const Expr at = lanes == 1 ? Expr(i) : ramp(i * lanes, Expr(1), lanes);
    parts.push_back(loop(i, Expr(n / lanes), store(out, at, f(load(bx, {at}), load(by, {at})))));
  }
  if (const int64_t rest = n % lanes) {
    const Expr at = j + (n - rest);
    parts.push_back(loop(j, Expr(rest), store(out, at, f(load(bx, {at}), load(by, {at})))));
  }
  const Array got = guarded_array(result, {n}, GuardAt::end);
  run(program({bx, by}, {out}, seq(parts)), {guarded_copy(x), guarded_copy(y), got}, target);
  return got;
}

template <class T, class Fn, class Want>
void check_ints(const std::vector<T>& x, const std::vector<T>& y, Fn f, Want want,
                const char* what) {
  const int64_t n = static_cast<int64_t>(x.size());
  const Array ax = from_vector<T>({n}, x), ay = from_vector<T>({n}, y);
  for (const Target& target : runnable_targets()) {
    for (int lanes : {1, 4, 16}) {
      const Array got = elementwise(target, ax.dtype(), ax, ay, lanes, f);
      for (int64_t k = 0; k < n; ++k) {
        INFO(what << " " << target.name << " lanes " << lanes << " of " << name(ax.dtype()) << ": "
                  << +x[k] << ", " << +y[k]);
        REQUIRE(got.data<T>()[k] == static_cast<T>(want(x[k], y[k])));
      }
    }
  }
}

template <class T>
T floor_div_of(T a, T b) {
  if constexpr (std::is_unsigned_v<T>) {
    return a / b;
  } else {
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
    return static_cast<T>(a / b - (a % b != 0 && (a % b < 0) != (b < 0)));
  }
}

template <class T>
T wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

template <class T>
void check_integer_type() {
  using U = std::make_unsigned_t<T>;
  const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  std::vector<T> x, y;
  for (T a : {low, T(low + 1), T(-7), T(-1), T(0), T(1), T(7), T(100), T(high - 1), high}) {
    for (T b : {low, T(-7), T(-3), T(-1), T(1), T(2), T(3), T(8), high}) {
      if (b != 0) x.push_back(a), y.push_back(b);
    }
  }
  auto wrapped = [](auto f) { return [f](T a, T b) { return static_cast<T>(f(U(a), U(b))); }; };
  check_ints<T>(
      x, y, [](Expr a, Expr b) { return a + b; }, wrapped([](U a, U b) { return U(a + b); }),
      "add");
  check_ints<T>(
      x, y, [](Expr a, Expr b) { return a - b; }, wrapped([](U a, U b) { return U(a - b); }),
      "sub");
  check_ints<T>(
      x, y, [](Expr a, Expr b) { return a * b; }, wrap_mul<T>, "mul");
  check_ints<T>(
      x, y, [](Expr a, Expr b) { return floor_div(a, b); }, floor_div_of<T>, "floor_div");
  check_ints<T>(
      x, y, [](Expr a, Expr b) { return floor_mod(a, b); },
      [](T a, T b) { return T(U(a) - U(wrap_mul<T>(floor_div_of(a, b), b))); }, "floor_mod");
  check_ints<T>(
      x, y, [](Expr a, Expr b) { return trunc_div(a, b); },
      [](T a, T b) { return std::is_signed_v<T> && b == T(-1) ? T(U(0) - U(a)) : T(a / b); },
      "trunc_div");
  check_ints<T>(
      x, y, [](Expr a, Expr b) { return trunc_mod(a, b); },
      [](T a, T b) { return std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b); }, "trunc_mod");
  for (T by : {T(1), T(2), T(3), T(-1), T(-4), low, high}) {
    if (by == 0) continue;
    auto divisor = [by] { return int_imm(static_cast<int64_t>(by), dtype_of<T>()); };
    check_ints<T>(
        x, y, [&](Expr a, Expr) { return floor_div(a, divisor()); },
        [&](T a, T) { return floor_div_of(a, by); }, "floor_div by a constant");
    check_ints<T>(
        x, y, [&](Expr a, Expr) { return floor_mod(a, divisor()); },
        [&](T a, T) { return T(U(a) - U(wrap_mul<T>(floor_div_of(a, by), by))); },
        "floor_mod by a constant");
  }
  check_ints<T>(
      x, y, [](Expr a, Expr b) { return min(a, b); }, [](T a, T b) { return std::min(a, b); },
      "min");
  check_ints<T>(
      x, y, [](Expr a, Expr b) { return max(a, b); }, [](T a, T b) { return std::max(a, b); },
      "max");
  check_ints<T>(
      x, y, [](Expr a, Expr b) { return select(a < b, a, select(a >= b && a != b, -a, b)); },
      [](T a, T b) { return a < b ? a : (a >= b && a != b ? T(U(0) - U(a)) : b); },
      "compare and select");
  check_ints<T>(
      x, y, [](Expr a, Expr) { return abs(a); }, [](T a, T) { return a < 0 ? T(U(0) - U(a)) : a; },
      "abs");
  check_ints<T>(
      x, y, [](Expr a, Expr b) { return binary(BinaryOp::bit_xor, a, unary(UnaryOp::bit_not, b)); },
      [](T a, T b) { return T(a ^ T(~b)); }, "bits");
  check_ints<T>(
      x, y,
      [](Expr a, Expr b) {
        return binary(BinaryOp::shl, a, binary(BinaryOp::bit_and, b, zero(b.dtype()) + 7));
      },
      [](T a, T b) { return T(U(a) << (b & 7)); }, "shl");
  check_ints<T>(
      x, y,
      [](Expr a, Expr b) {
        return binary(BinaryOp::shr, a, binary(BinaryOp::bit_and, b, zero(b.dtype()) + 7));
      },
      [](T a, T b) { return T(a >> (b & 7)); }, "shr");
}

}  // namespace

TEST_CASE("integer arithmetic of 8 and 16 bits wraps, floors and compares") {
  check_integer_type<int8_t>();
  check_integer_type<uint8_t>();
  check_integer_type<int16_t>();
  check_integer_type<uint16_t>();
}

TEST_CASE("integer arithmetic of 32 and 64 bits wraps, floors and compares") {
  check_integer_type<int32_t>();
  check_integer_type<uint32_t>();
  check_integer_type<int64_t>();
  check_integer_type<uint64_t>();
}

TEST_CASE("division by zero does not fault") {
  const Array x = from_vector<int32_t>({2}, {5, -5}), y = from_vector<int32_t>({2}, {0, 0});
  for (BinaryOp op :
       {BinaryOp::floor_div, BinaryOp::floor_mod, BinaryOp::trunc_div, BinaryOp::trunc_mod}) {
    const Array got =
        elementwise(Target::host(), i32, x, y, 1, [&](Expr a, Expr b) { return binary(op, a, b); });
    REQUIRE(got.size() == 2);
  }
}

namespace {

template <class T>
std::vector<T> special_floats() {
  const T inf = std::numeric_limits<T>::infinity();
  return {T(0),
          T(-0.0),
          T(1),
          T(-1),
          T(0.5),
          T(1.5),
          T(2.5),
          T(-2.5),
          T(3.75),
          T(-1e10),
          T(1e10),
          T(1e-40),
          T(127.5),
          T(255),
          T(300),
          T(-129),
          inf,
          -inf,
          std::numeric_limits<T>::quiet_NaN(),
          std::numeric_limits<T>::max(),
          std::numeric_limits<T>::denorm_min()};
}

template <class T, class Fn, class Want>
void check_floats(Fn f, Want want, const char* what) {
  std::vector<T> x, y;
  for (T a : special_floats<T>()) {
    for (T b : special_floats<T>()) x.push_back(a), y.push_back(b);
  }
  const int64_t n = static_cast<int64_t>(x.size());
  const Array ax = from_vector<T>({n}, x), ay = from_vector<T>({n}, y);
  for (const Target& target : runnable_targets()) {
    for (int lanes : {1, 8, 16, 32}) {
      const Array got = elementwise(target, ax.dtype(), ax, ay, lanes, f);
      for (int64_t k = 0; k < n; ++k) {
        const T a = got.data<T>()[k], b = want(x[k], y[k]);
        INFO(what << " " << target.name << " lanes " << lanes << ": " << x[k] << ", " << y[k]
                  << " -> " << a << ", wanted " << b);
        REQUIRE((a == b || (std::isnan(a) && std::isnan(b))));
      }
    }
  }
}

template <class T>
T nan_max(T a, T b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : std::max(a, b);
}
template <class T>
T nan_min(T a, T b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<T>::quiet_NaN() : std::min(a, b);
}

template <class T>
void check_float_type() {
  check_floats<T>([](Expr a, Expr b) { return a + b; }, [](T a, T b) { return a + b; }, "add");
  check_floats<T>([](Expr a, Expr b) { return a - b; }, [](T a, T b) { return a - b; }, "sub");
  check_floats<T>([](Expr a, Expr b) { return a * b; }, [](T a, T b) { return a * b; }, "mul");
  check_floats<T>([](Expr a, Expr b) { return a / b; }, [](T a, T b) { return a / b; }, "div");
  check_floats<T>([](Expr a, Expr b) { return max(a, b); }, nan_max<T>, "max");
  check_floats<T>([](Expr a, Expr b) { return min(a, b); }, nan_min<T>, "min");
  check_floats<T>([](Expr a, Expr) { return max(a, 0.0); }, [](T a, T) { return nan_max(a, T(0)); },
                  "relu");
  check_floats<T>(
      [](Expr a, Expr) { return min(float_imm(6, a.dtype()), max(float_imm(0, a.dtype()), a)); },
      [](T a, T) { return nan_min(T(6), nan_max(T(0), a)); }, "relu6 with the constants first");
  check_floats<T>([](Expr a, Expr) { return -abs(a); }, [](T a, T) { return -std::fabs(a); },
                  "neg abs");
  check_floats<T>([](Expr a, Expr) { return sqrt(a); }, [](T a, T) { return std::sqrt(a); },
                  "sqrt");
  check_floats<T>([](Expr a, Expr) { return floor(a); }, [](T a, T) { return std::floor(a); },
                  "floor");
  check_floats<T>([](Expr a, Expr) { return ceil(a); }, [](T a, T) { return std::ceil(a); },
                  "ceil");
  check_floats<T>([](Expr a, Expr) { return trunc(a); }, [](T a, T) { return std::trunc(a); },
                  "trunc");
  check_floats<T>([](Expr a, Expr) { return round(a); }, [](T a, T) { return std::nearbyint(a); },
                  "round");
  check_floats<T>(
      [](Expr a, Expr b) { return select(is_nan(a) || !(a < b), a, select(a != b, b, a)); },
      [](T a, T b) { return std::isnan(a) || !(a < b) ? a : (a != b ? b : a); },
      "is_nan and comparisons");
}

}  // namespace

TEST_CASE("f32 arithmetic, NaN, infinities and denormals as IEEE says") {
  check_float_type<float>();
}
TEST_CASE("f64 arithmetic, NaN, infinities and denormals as IEEE says") {
  check_float_type<double>();
}

TEST_CASE("16-bit floats are rounded after each operation") {
  for (DType t : {f16, bf16}) {
    auto bits = [&](double v) { return t == f16 ? to_f16(v) : to_bf16(v); };
    auto value = [&](uint16_t b) { return t == f16 ? from_f16(b) : from_bf16(b); };
    std::vector<double> x, y;
    for (float a : special_floats<float>()) {
      for (float b : special_floats<float>()) x.push_back(a), y.push_back(b);
    }
    for (int k = 0; k < 500; ++k) x.push_back(std::sin(k) * 100), y.push_back(std::cos(3 * k) * 3);
    const int64_t n = static_cast<int64_t>(x.size());
    const Array ax = from_doubles(t, {n}, x), ay = from_doubles(t, {n}, y);
    for (const Target& target : runnable_targets()) {
      for (int lanes : {1, 16}) {
        const Array got = elementwise(target, t, ax, ay, lanes, [&](Expr a, Expr b) {
          return a * b + select(a < b, cast(t, cast(f32, b) / 3.0), max(a, float_imm(0.1, t)));
        });
        for (int64_t k = 0; k < n; ++k) {
          const float a = value(ax.data<uint16_t>()[k]), b = value(ay.data<uint16_t>()[k]);
          const float product = value(bits(static_cast<double>(a) * b));
          const float term = a < b ? value(bits(b / 3.0f)) : nan_max(a, value(bits(0.1)));
          const float want = value(bits(static_cast<double>(product) + term));
          const float is = value(got.data<uint16_t>()[k]);
          INFO(name(t) << " " << target.name << " lanes " << lanes << ": " << a << ", " << b
                       << " -> " << is << ", wanted " << want);
          REQUIRE((is == want || (std::isnan(is) && std::isnan(want))));
        }
      }
    }
  }
}

namespace {

// What a cast of `v` to integer type T gives: truncated, saturated, NaN gives 0.
template <class T>
T saturated(double v) {
  if (std::isnan(v)) return 0;
  if (v <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (v >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(v);
}

template <class T>
void check_float_to_int() {
  for (DType from : {f32, f64}) {
    std::vector<double> x;
    for (double a : special_floats<double>()) x.push_back(a);
    x.push_back(1e19), x.push_back(-2147483649.0), x.push_back(4294967295.0), x.push_back(1.8e19);
    const int64_t n = static_cast<int64_t>(x.size());
    const Array ax = from_doubles(from, {n}, x);
    const std::vector<double> rounded = ax.to_doubles();
    for (const Target& target : runnable_targets()) {
      for (int lanes : {1, 8}) {
        const Array got = elementwise(target, dtype_of<T>(), ax, ax, lanes,
                                      [&](Expr a, Expr) { return cast(dtype_of<T>(), a); });
        for (int64_t k = 0; k < n; ++k) {
          INFO(name(from) << " " << rounded[k] << " to " << name(dtype_of<T>()) << " "
                          << target.name);
          REQUIRE(got.data<T>()[k] == saturated<T>(rounded[k]));
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("casts from float saturate and turn NaN into 0") {
  check_float_to_int<int8_t>();
  check_float_to_int<uint8_t>();
  check_float_to_int<int16_t>();
  check_float_to_int<int32_t>();
  check_float_to_int<uint32_t>();
  check_float_to_int<int64_t>();
  check_float_to_int<uint64_t>();
}

TEST_CASE("casts between integers, bool and floats") {
  const std::vector<int64_t> x = {
      0, 1, -1, 127, 128, 255, 256, -129, 1 << 20, int64_t{1} << 40, -(int64_t{1} << 40)};
  const int64_t n = static_cast<int64_t>(x.size());
  const Array ax = from_vector<int64_t>({n}, x);
  for (const Target& target : runnable_targets()) {
    for (int lanes : {1, 8}) {
      auto through = [&](std::vector<DType> types) {
        return elementwise(target, i64, ax, ax, lanes, [&](Expr a, Expr) {
          for (DType t : types) a = cast(t, a);
          return cast(i64, a);
        });
      };
      for (int64_t k = 0; k < n; ++k) {
        INFO(target.name << " lanes " << lanes << ": " << x[k]);
        REQUIRE(through({i8}).data<int64_t>()[k] == static_cast<int8_t>(x[k]));
        REQUIRE(through({u8, i32}).data<int64_t>()[k] == static_cast<uint8_t>(x[k]));
        REQUIRE(through({u32}).data<int64_t>()[k] == static_cast<uint32_t>(x[k]));
        REQUIRE(through({i16, u16, i32}).data<int64_t>()[k] == static_cast<uint16_t>(x[k]));
        REQUIRE(through({boolean, f32}).data<int64_t>()[k] == (x[k] != 0));
        REQUIRE(through({f64, boolean, u8}).data<int64_t>()[k] == (x[k] != 0));
        REQUIRE(through({f32}).data<int64_t>()[k] ==
                static_cast<int64_t>(static_cast<float>(x[k])));
      }
    }
  }
}

TEST_CASE("bool is one byte in memory and any byte but 0 is true") {
  const Array x = Array::empty(boolean, {7}), y = Array::empty(boolean, {7});
  for (int k = 0; k < 7; ++k)
    x.data<uint8_t>()[k] = static_cast<uint8_t>(k & 1),
    y.data<uint8_t>()[k] = static_cast<uint8_t>(k / 2 & 1);
  for (int lanes : {1, 4}) {
    const Array got = elementwise(Target::host(), boolean, x, y, lanes,
                                  [](Expr a, Expr b) { return (a && !b) || (b && !a); });
    for (int k = 0; k < 7; ++k) REQUIRE(got.data<uint8_t>()[k] == ((k & 1) ^ (k / 2 & 1)));
  }
}

TEST_CASE("bits of a float as an integer and back") {
  const Array x = from_vector<float>({5}, {0, 1, -2.5f, 1e30f, 3}), y = x;
  const Array got = elementwise(Target::host(), f32, x, y, 4, [](Expr a, Expr) {
    return bitcast(f32, bitcast(i32, a) + (1 << 23));  // one more in the exponent
  });
  for (int k = 1; k < 5; ++k) REQUIRE(got.data<float>()[k] == 2 * x.data<float>()[k]);
}

TEST_CASE("mathematical functions come from the C library, lane by lane") {
  struct Case {
    MathFn fn;
    double (*want)(double);
  };
  const Case cases[] = {{MathFn::exp, std::exp},
                        {MathFn::tanh, std::tanh},
                        {MathFn::erf, std::erf},
                        {MathFn::sin, std::sin},
                        {MathFn::cos, std::cos},
                        {MathFn::tan, std::tan},
                        {MathFn::asin, std::asin},
                        {MathFn::acos, std::acos},
                        {MathFn::atan, std::atan},
                        {MathFn::sinh, std::sinh},
                        {MathFn::cosh, std::cosh},
                        {MathFn::asinh, std::asinh},
                        {MathFn::atanh, std::atanh},
                        {MathFn::sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }}};
  const std::vector<double> x = {-0.9, -0.5, 0, 0.25, 0.5, 0.75, 0.99};
  for (DType t : {f32, f64}) {
    const Array ax = from_doubles(t, {7}, x);
    for (const Case& c : cases) {
      const auto got = elementwise(Target::host(), t, ax, ax, 4, [&](Expr a, Expr) {
                         return call(c.fn, {a});
                       }).to_doubles();
      for (int k = 0; k < 7; ++k) {
        INFO(name(c.fn) << " of " << x[k]);
        REQUIRE(got[k] ==
                Approx(c.want(ax.to_doubles()[k])).epsilon(t == f32 ? 1e-5 : 1e-12).margin(1e-7));
      }
    }
    const auto got = elementwise(Target::host(), t, ax, ax, 4, [](Expr a, Expr) {
                       return pow(a + 2.0, a) + log(a + 2.0) + call(MathFn::acosh, {a + 2.0});
                     }).to_doubles();
    for (int k = 0; k < 7; ++k) {
      const double a = ax.to_doubles()[k];
      REQUIRE(got[k] ==
              Approx(std::pow(a + 2, a) + std::log(a + 2) + std::acosh(a + 2)).epsilon(1e-5));
    }
  }
}
