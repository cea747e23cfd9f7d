#include "formulas.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace tenon;
using namespace tenon::test;

namespace {

using Doubles = std::vector<double>;

Case matmul(int64_t m, int64_t n, int64_t k) {
  const Tensor a = input("A", f32, {m, k}), b = input("B", f32, {k, n});
  const Axis i("i", Expr(m)), j("j", Expr(n)), r("k", Expr(k));
  const Tensor c = compute("C", {i, j}, sum(a(i, r) * b(r, j), r));
  return {"matmul",
          {c},
          [=](const Inputs& in) {
            Doubles out(m * n, 0.0);
            for (int64_t p = 0; p < m; ++p)
              for (int64_t q = 0; q < n; ++q)
                for (int64_t s = 0; s < k; ++s)
                  out[p * n + q] += in.at("A")[p * k + s] * in.at("B")[s * n + q];
            return std::vector<Doubles>{out};
          },
          6e-8 * static_cast<double>(k + 1)};
}

// y[i, j] = the mean of the up to 9 neighbours that exist, missing ones counting 0
Case stencil(int64_t h, int64_t w) {
  const Tensor x = input("X", f32, {h, w});
  const Axis i("i", Expr(h)), j("j", Expr(w)), p("p", Expr(3)), q("q", Expr(3));
  const Expr row = i + p - 1, column = j + q - 1;
  const Expr inside = row >= 0 && row < h && column >= 0 && column < w;
  const Tensor y =
      compute("Y", {i, j}, sum(select(inside, x(row, column), float_imm(0)), {p, q}) / 9.0);
  return {"stencil", {y}, [=](const Inputs& in) {
            Doubles out(h * w, 0.0);
            for (int64_t a = 0; a < h; ++a)
              for (int64_t b = 0; b < w; ++b)
                for (int64_t c = std::max<int64_t>(0, a - 1); c <= std::min(h - 1, a + 1); ++c)
                  for (int64_t d = std::max<int64_t>(0, b - 1); d <= std::min(w - 1, b + 1); ++d)
                    out[a * w + b] += in.at("X")[c * w + d] / 9;
            return std::vector<Doubles>{out};
          }};
}

// rows: exp(x - max) / sum(exp(x - max)); also gives log(sum) as a second output
Case softmax(int64_t rows, int64_t columns) {
  const Tensor x = input("X", f32, {rows, columns});
  const Axis i("i", Expr(rows)), j("j", Expr(columns)), k("k", Expr(columns)),
      l("l", Expr(columns));
  const Tensor top = compute("top", {i}, reduce_max(x(i, k), {k}));
  const Tensor e = compute("e", {i, j}, exp(x(i, j) - top(i)));
  const Tensor total = compute("total", {i}, sum(e(i, l), l));
  const Axis p("p", Expr(rows)), q("q", Expr(columns)), r("r", Expr(rows));
  const Tensor y = compute("Y", {p, q}, e(p, q) / total(p));
  const Tensor z = compute("Z", {r}, log(total(r)) + top(r));
  return {"softmax",
          {y, z},
          [=](const Inputs& in) {
            Doubles out(rows * columns), logs(rows);
            for (int64_t a = 0; a < rows; ++a) {
              double high = -std::numeric_limits<double>::infinity(), s = 0;
              for (int64_t b = 0; b < columns; ++b)
                high = std::max(high, in.at("X")[a * columns + b]);
              for (int64_t b = 0; b < columns; ++b)
                s += std::exp(in.at("X")[a * columns + b] - high);
              for (int64_t b = 0; b < columns; ++b)
                out[a * columns + b] = std::exp(in.at("X")[a * columns + b] - high) / s;
              logs[a] = std::log(s) + high;
            }
            return std::vector<Doubles>{out, logs};
          },
          1e-7 * static_cast<double>(columns + 20)};
}

// x - mean over rows, scaled by 1 / sqrt(variance + eps), through gelu: several stages and
// functions
Case normalised_gelu(int64_t rows, int64_t columns) {
  const Tensor x = input("X", f32, {rows, columns}), gamma = constant("gamma", f32, {columns});
  const Axis i("i", Expr(rows)), j("j", Expr(columns)), k("k", Expr(columns)),
      l("l", Expr(columns));
  const double n = static_cast<double>(std::max<int64_t>(1, columns));
  const Tensor mean = compute("mean", {i}, sum(x(i, k), k) / n);
  const Tensor variance =
      compute("variance", {i}, sum((x(i, l) - mean(i)) * (x(i, l) - mean(i)), l) / n);
  const Tensor norm =
      compute("norm", {i, j}, (x(i, j) - mean(i)) / sqrt(variance(i) + 1e-5) * gamma(j));
  const Axis p("p", Expr(rows)), q("q", Expr(columns));
  const Tensor y =
      compute("Y", {p, q}, norm(p, q) * 0.5 * (erf(norm(p, q) * std::sqrt(0.5)) + 1.0));
  return {"normalised gelu",
          {y},
          [=](const Inputs& in) {
            Doubles out(rows * columns);
            for (int64_t a = 0; a < rows; ++a) {
              double m = 0, v = 0;
              for (int64_t b = 0; b < columns; ++b) m += in.at("X")[a * columns + b] / n;
              for (int64_t b = 0; b < columns; ++b)
                v += std::pow(in.at("X")[a * columns + b] - m, 2) / n;
              for (int64_t b = 0; b < columns; ++b) {
                const double u =
                    (in.at("X")[a * columns + b] - m) / std::sqrt(v + 1e-5) * in.at("gamma")[b];
                out[a * columns + b] = u * 0.5 * (std::erf(u * std::sqrt(0.5)) + 1);
              }
            }
            return std::vector<Doubles>{out};
          },
          1e-5 * (1 + 0.1 * n)};
}

// integers: a prefix-like gather through a table, exact
Case table_lookup(int64_t n) {
  const Tensor at = input("at", i32, {n}), values = input("values", i64, {17});
  const Axis i("i", Expr(n));
  const Expr place = cast(i64, floor_mod(at(i), int_imm(17, i32)));
  const Tensor y = compute("Y", {i}, values(place) * 3 - cast(i64, at(i)));
  return {"table look-up",
          {y},
          [=](const Inputs& in) {
            Doubles out(n);
            for (int64_t a = 0; a < n; ++a) {
              const auto k = static_cast<int64_t>(in.at("at")[a]);
              out[a] = in.at("values")[((k % 17) + 17) % 17] * 3 - static_cast<double>(k);
            }
            return std::vector<Doubles>{out};
          },
          0};
}

void check(const Case& c, GuardAt at) {
  const Program program = make_program("p", c.outputs);
  const Kernel kernel = compile(program, Target::host());
  const GuardedArguments arguments(program, at, 11);
  kernel.run(arguments.all, default_pool());
  // Outputs in parameter order are the case's outputs in order.
  const auto want = c.want(arguments.inputs);
  REQUIRE(arguments.all.size() - arguments.outputs_from == want.size());
  for (size_t o = 0; o < want.size(); ++o) {
    const Doubles got = arguments.all[arguments.outputs_from + o].to_doubles();
    REQUIRE(got.size() == want[o].size());
    double largest = 0;
    for (double v : want[o]) largest = std::max(largest, std::fabs(v));
    for (size_t k = 0; k < got.size(); ++k) {
      INFO(c.name << " output " << o << " element " << k << " of " << got.size());
      REQUIRE(std::fabs(got[k] - want[o][k]) <= c.tolerance * largest);
    }
  }
}

const int64_t kOdd[] = {0, 1, 7, 17, 37, 130};

}  // namespace

TEST_CASE("unscheduled kernels of formulas agree with plain loops on odd shapes") {
  for (GuardAt at : {GuardAt::end, GuardAt::start}) {
    for (int64_t m : kOdd) {
      for (int64_t n : {int64_t{1}, int64_t{7}, int64_t{37}}) {
        check(matmul(m, n, 17), at);
        check(matmul(n, m, 7), at);
        check(matmul(n, 7, m), at);
      }
      check(stencil(m, 17), at);
      check(stencil(7, m), at);
      check(softmax(7, m == 0 ? 2 : m), at);
      check(softmax(m, 37), at);
      check(normalised_gelu(17, m), at);
      check(table_lookup(m), at);
    }
  }
}

TEST_CASE("a kernel refuses arguments of another shape, type or number") {
  const Kernel kernel = compile(make_program("p", matmul(3, 5, 7).outputs), Target::host());
  const Array a = zeros(f32, {3, 7}), b = zeros(f32, {7, 5}), c = zeros(f32, {3, 5});
  kernel(a, b, c);
  REQUIRE_THROWS_AS(kernel(a, b), UserError);
  REQUIRE_THROWS_WITH(kernel(a, zeros(f32, {7, 6}), c), Catch::Contains("B"));
  REQUIRE_THROWS_WITH(kernel(zeros(f64, {3, 7}), b, c), Catch::Contains("A"));
  REQUIRE_THROWS_AS(kernel(a, b, a.view(0, {3, 5})), UserError);
}
