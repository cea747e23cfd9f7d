#include <tenon/ir/ops.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "arith/simplify.h"
#include "case_harness.h"

// Arithmetic on floats.

using namespace tenon;
using namespace tenon::cases;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("D40 float to integer") {
  const std::vector<double> values = {-1.9, 1.9, 300.7, kNaN,   kInf, -kInf,      3e9,  -3e9,
                                      -0.9, 0,   127.5, 255.99, -129, 2147483520, 1e30, -1e30};
  const int64_t n = static_cast<int64_t>(values.size());
  // Truncates, saturates; NaN is 0.
  const auto want = [](double v, DType t) -> double {
    if (std::isnan(v)) return 0;
    const double low = static_cast<double>(min_int(t)), high = static_cast<double>(max_int(t));
    return std::min(std::max(std::trunc(v), low), high);
  };
  for (DType from : {f32, f64, f16, bf16}) {
    const Array in = from_doubles(from, {n}, values);
    const std::vector<double> held = in.to_doubles();
    Work work{{}, {{"X", in}}, {}};
    const Tensor x = input("X", from, {n});
    for (DType to : {i8, u8, i16, u16, i32, u32}) {
      work.outputs.push_back(
          map_of(std::string(name(to)), n, [&](Expr i) { return cast(to, x(i)); }));
      std::vector<double> out;
      for (double v : held) out.push_back(want(v, to));
      work.want.push_back(from_doubles(to, {n}, out));
    }
    for (DType to : {i64, u64}) {  // the ends are no doubles
      work.outputs.push_back(
          map_of(std::string(name(to)), n, [&](Expr i) { return cast(to, x(i)); }));
      work.want.push_back(table<int64_t>({n}, [&](int64_t k) -> int64_t {
        const double v = held[k];
        if (std::isnan(v) || (to == u64 && v < 0)) return 0;
        if (to == u64)
          return v >= 18446744073709551616.0 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(v));
        return v >= 9223372036854775808.0   ? INT64_MAX
               : v < -9223372036854775808.0 ? INT64_MIN
                                            : static_cast<int64_t>(v);
      }));
      if (to == u64)
        work.want.back() = Array::wrap(work.want.back().raw(), u64, {n},
                                       std::make_shared<Array>(work.want.back()));
    }
    check_schedules(work, fmt::format("from {}", name(from)));

    // The same as constants: folded by a builder, the simplifier or the code generator.
    for (DType to : {i8, u8, i32, u32}) {
      Work constants;
      for (size_t k = 0; k < held.size(); ++k) {
        const Expr e = cast(to, float_imm(held[k], from));
        constants.outputs.push_back(map_of(fmt::format("c{}", k), 3, [&](Expr) { return e; }));
        constants.want.push_back(full(to, {3}, want(held[k], to)));
        const auto fold = as_int(simplify(e));
        if (fold)
          holds(static_cast<double>(*fold) == want(held[k], to), "folded",
                fmt::format("{} {} to {}", name(from), held[k], name(to)), std::to_string(*fold));
      }
      check_default(constants, fmt::format("constants from {} to {}", name(from), name(to)));
    }
  }
}

TEST_CASE("D41 fp16") {
  const double tiny = std::ldexp(1, -24);
  const std::vector<double> a = {65504, 65504, 2048, 2048, tiny, tiny / 2, 1, -65504};
  const std::vector<double> b = {15, 16, 1, 3, 0, 0, 0, -16};
  const int64_t n = static_cast<int64_t>(a.size());
  const Tensor x = input("X", f32, {n}), y = input("Y", f32, {n});
  const Tensor h = input("H", f16, {n}), g = input("G", f16, {n});
  const Axis i("i", n), j("j", n), k("k", n);
  // The sum in f16; the conversion alone; the sum of values converted first.
  const Work work{
      {compute("sums", {i}, h(i) + g(i)), compute("rounded", {j}, cast(f16, x(j) + y(j))),
       compute("doubled", {k}, h(k) * 2.0)},
      {{"X", from_doubles(f32, {n}, a)},
       {"Y", from_doubles(f32, {n}, b)},
       {"H", from_doubles(f16, {n}, a)},
       {"G", from_doubles(f16, {n}, b)}},
      {from_doubles(f16, {n}, {65504, kInf, 2048, 2052, tiny, 0, 1, -kInf}),
       from_doubles(f16, {n}, {65504, kInf, 2048, 2052, tiny, 0, 1, -kInf}),
       from_doubles(f16, {n}, {kInf, kInf, 4096, 4096, 2 * tiny, 0, 2, -kInf})}};
  CHECK(work.inputs.at("H").to_doubles()[5] == 0);
  const auto half = [](double v) { return float_imm(v, f16); };
  const std::vector<std::pair<Expr, double>> constants = {
      {half(65504) + half(15), 65504},    {half(65504) + half(16), kInf},
      {half(2048) + half(1), 2048},       {cast(f16, float_imm(2051)), 2052},
      {cast(f16, float_imm(tiny)), tiny}, {cast(f16, float_imm(tiny / 2)), 0}};
  Work folded_work;
  for (const auto& [e, value] : constants) {
    const auto fold = as_float(simplify(e));
    if (fold) holds(*fold == value, "folded", print(e), std::to_string(*fold));
    const Expr& copy = e;
    folded_work.outputs.push_back(
        map_of(fmt::format("c{}", folded_work.outputs.size()), 3, [&](Expr) { return copy; }));
    folded_work.want.push_back(full(f16, {3}, value));
  }
  check_default(folded_work, "constants");
  check_schedules(work, "few");
  // Every finite f16 plus 1, and rounded from the halves between neighbours.
  const int64_t all = 31744;
  const Tensor z = input("Z", f16, {2 * all});
  const Axis p("p", 2 * all), q("q", 2 * all);
  Array bits = Array::empty(f16, {2 * all});
  for (int64_t m = 0; m < 2 * all; ++m)
    bits.data<uint16_t>()[m] = static_cast<uint16_t>(m < all ? m : m - all + 32768);
  const std::vector<double> held = bits.to_doubles();
  std::vector<double> plus, halves;
  for (double v : held) {
    plus.push_back(v + 1);
    halves.push_back(v * 0.5);
  }
  const Work every{{compute("plus", {p}, z(p) + 1.0), compute("halves", {q}, z(q) * 0.5)},
                   {{"Z", bits}},
                   {from_doubles(f16, {2 * all}, plus), from_doubles(f16, {2 * all}, halves)}};
  check(every, "every finite value", [](Schedule&) {});
  check(every, "every finite value, split and vectorize", split_and_vectorize);
}

TEST_CASE("D42 NaN in min, max, relu, clip") {
  for (DType t : {f32, f64, f16, bf16}) {
    const std::vector<double> a = {kNaN, 1, kNaN, -2, 3}, b = {1, kNaN, kNaN, 5, -kInf};
    const int64_t n = 5, long_n = 37;
    const Tensor x = input("X", t, {n}), y = input("Y", t, {n}), r = input("R", t, {4, long_n});
    const Expr none = imm(0, t);
    Work work{
        {map_of("top", n, [&](Expr i) { return max(x(i), y(i)); }),
         map_of("low", n, [&](Expr i) { return min(x(i), y(i)); }),
         map_of("relu", n, [&](Expr i) { return max(x(i), none); }),
         map_of("relu2", n, [&](Expr i) { return max(none, x(i)); }),
         map_of("clip", n, [&](Expr i) { return min(max(x(i), imm(-1, t)), imm(1, t)); })},
        {{"X", from_doubles(t, {n}, a)}, {"Y", from_doubles(t, {n}, b)}},
        {from_doubles(t, {n}, {kNaN, kNaN, kNaN, 5, 3}),
         from_doubles(t, {n}, {kNaN, kNaN, kNaN, -2, -kInf}),
         from_doubles(t, {n}, {kNaN, 1, kNaN, 0, 3}), from_doubles(t, {n}, {kNaN, 1, kNaN, 0, 3}),
         from_doubles(t, {n}, {kNaN, 1, kNaN, -1, 1})}};
    // A NaN at the front, in the middle, in the vector tail, and none.
    std::vector<double> rows(4 * long_n);
    for (size_t m = 0; m < rows.size(); ++m) rows[m] = static_cast<double>(m * 7 % 31) - 20;
    rows[0] = rows[long_n + 17] = rows[2 * long_n + 36] = kNaN;
    double top = -kInf, low = kInf;
    for (int64_t m = 3 * long_n; m < 4 * long_n; ++m) {
      top = std::max(top, rows[m]);
      low = std::min(low, rows[m]);
    }
    const Axis i("i", 4), k("k", long_n), p("p", 4), q("q", long_n);
    work.outputs.push_back(compute("row_top", {i}, reduce_max(r(i, k), {k})));
    work.outputs.push_back(compute("row_low", {p}, reduce_min(r(p, q), {q})));
    work.inputs["R"] = from_doubles(t, {4, long_n}, rows);
    work.want.push_back(from_doubles(t, {4}, {kNaN, kNaN, kNaN, top}));
    work.want.push_back(from_doubles(t, {4}, {kNaN, kNaN, kNaN, low}));
    check_schedules(work, fmt::format("{}", name(t)));
    const Expr nan = float_imm(kNaN, t), one = float_imm(1, t);
    Work constants;
    for (const Expr& e : {max(nan, one), max(one, nan), min(nan, one), min(one, nan)}) {
      const auto fold = as_float(simplify(e));
      if (fold) holds(std::isnan(*fold), "folded", print(e), std::to_string(*fold));
      constants.outputs.push_back(
          map_of(fmt::format("c{}", constants.outputs.size()), 3, [&](Expr) { return e; }));
      constants.want.push_back(full(t, {3}, kNaN));
    }
    check_default(constants, fmt::format("constants of {}", name(t)));
  }
}

TEST_CASE("D43 no float shortcuts") {
  const std::vector<double> values = {kNaN, kInf, -kInf, -0.0, 0.0, 1.5, -2.5, 0};
  const int64_t n = static_cast<int64_t>(values.size());
  for (DType t : {f32, f64}) {
    const Tensor x = input("X", t, {n}), on = input("on", boolean, {n});
    const auto each = [&](const std::function<double(double)>& f) {
      std::vector<double> out;
      for (double v : values) out.push_back(f(v));
      return from_doubles(t, {n}, out);
    };
    const Expr none = imm(0, t);
    const Work work{{map_of("same", n, [&](Expr i) { return cast(t, x(i) == x(i)); }),
                     map_of("gap", n, [&](Expr i) { return x(i) - x(i); }),
                     map_of("nothing", n, [&](Expr i) { return x(i) * none; }),
                     map_of("ratio", n, [&](Expr i) { return x(i) / x(i); }),
                     map_of("either", n, [&](Expr i) { return select(on(i), x(i), x(i)); }),
                     map_of("plus", n, [&](Expr i) { return x(i) + none; }),
                     map_of("minus", n, [&](Expr i) { return none - x(i); }),
                     map_of("negated", n, [&](Expr i) { return -x(i); }),
                     map_of("times", n, [&](Expr i) { return x(i) * imm(1, t); })},
                    {{"X", from_doubles(t, {n}, values)},
                     {"on", table<bool>({n}, [](int64_t k) { return k % 2; })}},
                    {each([](double v) { return std::isnan(v) ? 0.0 : 1.0; }),
                     each([](double v) { return v - v; }), each([](double v) { return v * 0.0; }),
                     each([](double v) { return v / v; }), each([](double v) { return v; }),
                     each([](double v) { return v + 0.0; }), each([](double v) { return 0.0 - v; }),
                     each([](double v) { return -v; }), each([](double v) { return v * 1.0; })}};
    check_schedules(work, fmt::format("{}", name(t)));
  }
  const Tensor x = input("X", f32, {n});
  const Axis i("i", n);
  const Expr v = x(i), none = float_imm(0);
  for (const Expr& e : {cast(f32, v == v), v - v, v * none, v / v, v + none}) {
    const Expr simple = simplify(e);
    holds(!as_float(simple) && !simple.same_as(v), "simplifier", print(e), print(simple));
  }
}
