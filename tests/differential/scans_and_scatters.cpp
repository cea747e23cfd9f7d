#include <tenon/ir/ops.h>

#include <cmath>

#include "user_formulas.h"

namespace tenon::test {
namespace {

using Doubles = std::vector<double>;
using All = std::vector<Doubles>;

constexpr double kStep = 6e-8;  // one rounding of an f32

/// How often each of the numbers 0 .. bins - 1 occurs; others are dropped.
Case histogram(int64_t n, int64_t bins) {
  const Tensor x = input("X", i8, {n});
  const Axis b("b", Expr(bins)), i("i", Expr(n));
  const Tensor h = scatter("H", {b}, int_imm(0, i32), {i}, {x(i)}, 1);
  return {"histogram",
          {h},
          [=](const Inputs& in) {
            Doubles out(bins, 0.0);
            for (double v : in.at("X"))
              if (v >= 0 && v < static_cast<double>(bins)) out[static_cast<size_t>(v)] += 1;
            return All{out};
          },
          0};
}

/// Rows of updates added to rows of a table, and how many came to each.
Case row_updates(int64_t rows, int64_t count, int64_t depth) {
  const Tensor at = input("at", i32, {count}), u = input("U", f32, {count, depth});
  const Tensor table = input("table", f32, {rows, depth});
  const Axis r("r", Expr(rows)), c("c", Expr(depth)), i("i", Expr(count)), j("j", Expr(depth));
  const Tensor y = scatter("Y", {r, c}, table(r, c), {i, j}, {at(i) + 3, j}, u(i, j) * 2.0);
  const Axis p("p", Expr(rows)), q("q", Expr(depth));
  const Tensor z = compute("Z", {p, q}, max(y(p, q), 0.0));
  return {"row updates",
          {y, z},
          [=](const Inputs& in) {
            Doubles out = in.at("table"), positive;
            for (int64_t a = 0; a < count; ++a) {
              const double to = in.at("at")[a] + 3;
              if (to < 0 || to >= static_cast<double>(rows)) continue;
              for (int64_t b = 0; b < depth; ++b)
                out[static_cast<int64_t>(to) * depth + b] += 2 * in.at("U")[a * depth + b];
            }
            for (double v : out) positive.push_back(std::max(v, 0.0));
            return All{out, positive};
          },
          kStep * static_cast<double>(count + 2)};
}

/// Where each number occurs last, by a fold that keeps the later part.
Case last_places(int64_t n) {
  const Tensor x = input("X", i32, {n});
  const Axis b("b", Expr(16)), i("i", Expr(n));
  const auto later = combiner(
      "later", int_imm(-1), [](Expr, Expr rhs) { return rhs; }, Commutes::no);
  const Tensor y = scatter("Y", {b}, -1, {i}, {floor_mod(x(i), int_imm(16, i32))}, Expr(i), later);
  return {"last places",
          {y},
          [=](const Inputs& in) {
            Doubles out(16, -1.0);
            for (int64_t a = 0; a < n; ++a) {
              const auto v = static_cast<int64_t>(in.at("X")[a]);
              out[((v % 16) + 16) % 16] = static_cast<double>(a);
            }
            return All{out};
          },
          0};
}

/// Sums along the last axis up to each element, and products of (1 + x / 16) along the first.
Case running(int64_t rows, int64_t columns) {
  const Tensor x = input("X", f32, {rows, columns});
  const Axis i("i", Expr(rows)), t("t", Expr(columns)), s("s", Expr(rows)), j("j", Expr(columns));
  const Tensor sums = scan("S", {i, t}, t, x(i, t), [&](Expr before) { return before + x(i, t); });
  const auto factor = [&] { return x(s, j) * 0.0625 + 1.0; };
  const Tensor products =
      scan("P", {s, j}, s, factor(), [&](Expr before) { return before * factor(); });
  return {"running sums and products",
          {sums, products},
          [=](const Inputs& in) {
            Doubles a = in.at("X"), b(rows * columns);
            for (int64_t p = 0; p < rows; ++p)
              for (int64_t q = 1; q < columns; ++q) a[p * columns + q] += a[p * columns + q - 1];
            for (int64_t p = 0; p < rows; ++p)
              for (int64_t q = 0; q < columns; ++q)
                b[p * columns + q] = (in.at("X")[p * columns + q] * 0.0625 + 1) *
                                     (p > 0 ? b[(p - 1) * columns + q] : 1);
            return All{a, b};
          },
          kStep * static_cast<double>(2 * (rows + columns) + 2)};
}

/// h[t] = a * h[t - 1] + x[t], read by a map; integers that wrap.
Case recurrence(int64_t n, int64_t channels) {
  const Tensor x = input("X", i32, {n, channels}), a = input("A", i32, {channels});
  const Axis t("t", Expr(n)), c("c", Expr(channels)), u("u", Expr(n)), d("d", Expr(channels));
  const Tensor scaled = compute("B", {u, d}, x(u, d) * 3 + 1);
  const Tensor h =
      scan("H", {t, c}, t, scaled(t, c), [&](Expr before) { return before * a(c) + scaled(t, c); });
  const Axis p("p", Expr(n)), q("q", Expr(channels));
  const Tensor y = compute("Y", {p, q}, h(p, q) + x(p, q));
  return {"recurrence",
          {y},
          [=](const Inputs& in) {
            Doubles out(n * channels);
            std::vector<int64_t> state(channels, 0);
            for (int64_t k = 0; k < n; ++k)
              for (int64_t e = 0; e < channels; ++e) {
                const auto v = static_cast<int64_t>(in.at("X")[k * channels + e]);
                const auto f = static_cast<int64_t>(in.at("A")[e]);
                state[e] = wrap_int((k == 0 ? 0 : state[e] * f) + v * 3 + 1, i32);
                out[k * channels + e] = static_cast<double>(wrap_int(state[e] + v, i32));
              }
            return All{out};
          },
          0};
}

/// The largest element so far and where it stands, two states that step together.
Case best_so_far(int64_t rows, int64_t n) {
  const Tensor x = input("X", i16, {rows, n});
  const Axis i("i", Expr(rows)), t("t", Expr(n));
  const auto y =
      scan_tuple("B", {i, t}, t, {x(i, t), int_imm(0)}, [&](const std::vector<Expr>& before) {
        const Expr better = x(i, t) > before[0];
        return std::vector<Expr>{select(better, x(i, t), before[0]),
                                 select(better, Expr(t), before[1])};
      });
  return {"best so far", y,
          [=](const Inputs& in) {
            Doubles best, at;
            for (int64_t r = 0; r < rows; ++r)
              for (int64_t k = 0; k < n; ++k) {
                const double v = in.at("X")[r * n + k];
                const bool better = k == 0 || v > best.back();
                at.push_back(better ? static_cast<double>(k) : at.back());
                best.push_back(better ? v : best.back());
              }
            return All{best, at};
          },
          0};
}

}  // namespace

std::vector<Case> scans_and_scatters() {
  return {histogram(130, 7),      histogram(1, 3),       histogram(0, 7),
          row_updates(7, 37, 17), row_updates(3, 17, 1), row_updates(7, 0, 17),
          row_updates(1, 7, 130), last_places(130),      last_places(0),
          running(7, 37),         running(37, 17),       running(1, 1),
          running(17, 0),         recurrence(37, 17),    recurrence(1, 7),
          recurrence(130, 1),     best_so_far(7, 37),    best_so_far(17, 1)};
}

}  // namespace tenon::test
