// Length: one short formula after another, each with the plain loops that define it.
#include "user_formulas.h"

#include <tenon/ir/ops.h>

#include <cmath>
#include <limits>

namespace tenon::test {
namespace {

using Doubles = std::vector<double>;
using All = std::vector<Doubles>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kStep = 6e-8;  // one rounding of an f32

double mod(double a, double b) { return a - std::floor(a / b) * b; }

/// y = c * x[i, j] plus its four neighbours, the border repeated.
Case five_points(int64_t h, int64_t w) {
  const Tensor x = input("X", f32, {h, w});
  const Axis i("i", Expr(h)), j("j", Expr(w));
  const Expr up = select(i > 0, x(i - 1, j), x(i, j)),
             down = select(i < h - 1, x(i + 1, j), x(i, j));
  const Expr left = select(j > 0, x(i, j - 1), x(i, j)),
             right = select(j < w - 1, x(i, j + 1), x(i, j));
  const Tensor y = compute("Y", {i, j}, up + down + left + right - x(i, j) * 4.0);
  return {"five points",
          {y},
          [=](const Inputs& in) {
            const Doubles& v = in.at("X");
            Doubles out(h * w);
            auto at = [&](int64_t a, int64_t b) {
              return v[std::clamp<int64_t>(a, 0, h - 1) * w + std::clamp<int64_t>(b, 0, w - 1)];
            };
            for (int64_t a = 0; a < h; ++a)
              for (int64_t b = 0; b < w; ++b)
                out[a * w + b] =
                    at(a - 1, b) + at(a + 1, b) + at(a, b - 1) + at(a, b + 1) - 4 * at(a, b);
            return All{out};
          },
          10 * kStep};
}

/// y[b, i, j] = u[b, i] * v[b, j] + bias[j]
Case outer_product(int64_t n, int64_t rows, int64_t columns) {
  const Tensor u = input("U", f32, {n, rows}), v = input("V", f32, {n, columns});
  const Tensor bias = constant("bias", f32, {columns});
  const Axis b("b", Expr(n)), i("i", Expr(rows)), j("j", Expr(columns));
  const Tensor y = compute("Y", {b, i, j}, u(b, i) * v(b, j) + bias(j));
  return {"outer product", {y}, [=](const Inputs& in) {
            Doubles out;
            for (int64_t p = 0; p < n; ++p)
              for (int64_t q = 0; q < rows; ++q)
                for (int64_t r = 0; r < columns; ++r)
                  out.push_back(in.at("U")[p * rows + q] * in.at("V")[p * columns + r] +
                                in.at("bias")[r]);
            return All{out};
          }};
}

/// y[i, j] = sum of a[i, k] * v[k, j] over k <= i
Case causal_product(int64_t n, int64_t width) {
  const Tensor a = input("A", f32, {n, n}), v = input("V", f32, {n, width});
  const Axis i("i", Expr(n)), j("j", Expr(width)), k("k", Expr(n));
  const Tensor y = compute("Y", {i, j}, sum(a(i, k) * v(k, j), {k}, {.condition = k <= i}));
  return {"causal product",
          {y},
          [=](const Inputs& in) {
            Doubles out(n * width, 0.0);
            for (int64_t p = 0; p < n; ++p)
              for (int64_t s = 0; s <= p; ++s)
                for (int64_t q = 0; q < width; ++q)
                  out[p * width + q] += in.at("A")[p * n + s] * in.at("V")[s * width + q];
            return All{out};
          },
          kStep * static_cast<double>(n + 2)};
}

/// y[i] = the sum of x up to and with i, and of the rest, as two outputs
Case running_sums(int64_t n) {
  const Tensor x = input("X", i32, {n});
  const Axis i("i", Expr(n)), k("k", Expr(n)), p("p", Expr(n)), q("q", Expr(n));
  const Tensor y = compute("Y", {i}, sum(x(k), {k}, {.condition = k <= i}));
  const Tensor z = compute("Z", {p}, sum(select(q > p, x(q), int_imm(0, i32)), q));
  return {"running sums",
          {y, z},
          [=](const Inputs& in) {
            Doubles up(n, 0.0), rest(n, 0.0);
            for (int64_t a = 0; a < n; ++a)
              for (int64_t b = 0; b < n; ++b) (b <= a ? up : rest)[a] += in.at("X")[b];
            return All{up, rest};
          },
          0};
}

/// y[i] = log(sum of exp(x[i, j]))
Case log_sum_exp(int64_t rows, int64_t columns) {
  const Tensor x = input("X", f32, {rows, columns});
  const Axis i("i", Expr(rows)), k("k", Expr(columns)), p("p", Expr(rows)), q("q", Expr(columns));
  const Tensor top = compute("top", {i}, reduce_max(x(i, k), {k}));
  const Tensor y = compute("Y", {p}, log(sum(exp(x(p, q) - top(p)), q)) + top(p));
  return {"log-sum-exp",
          {y},
          [=](const Inputs& in) {
            Doubles out(rows, 0.0);
            for (int64_t a = 0; a < rows; ++a) {
              for (int64_t b = 0; b < columns; ++b) out[a] += std::exp(in.at("X")[a * columns + b]);
              out[a] = std::log(out[a]);
            }
            return All{out};
          },
          kStep * static_cast<double>(columns + 20)};
}

/// Polynomials that leave the range of their type, in u8 and in i32, and both mixed.
Case wrapping_polynomials(int64_t n) {
  const Tensor x = input("X", u8, {n}), w = input("W", i32, {n});
  const Axis i("i", Expr(n)), j("j", Expr(n)), k("k", Expr(n));
  const Tensor y = compute("Y", {i}, (x(i) * x(i) * 3 - 7) * x(i) + 201);
  const Expr big = w(j) * 268435459;
  const Tensor z = compute("Z", {j}, (big * w(j) - 1000003) * big);
  const Tensor m = compute("M", {k}, cast(i32, y(k)) - floor_div(z(k), int_imm(7, i32)));
  return {"wrapping polynomials",
          {y, z, m},
          [=](const Inputs& in) {
            Doubles a(n), b(n), c(n);
            for (int64_t p = 0; p < n; ++p) {
              const auto u = static_cast<int64_t>(in.at("X")[p]);
              const auto s = static_cast<int64_t>(in.at("W")[p]);
              const int64_t y8 = wrap_int((u * u * 3 - 7) * u + 201, u8);
              const int64_t b32 = wrap_int(s * 268435459, i32);
              const int64_t z32 =
                  wrap_int(wrap_int(wrap_int(b32 * s, i32) - 1000003, i32) * b32, i32);
              a[p] = static_cast<double>(y8);
              b[p] = static_cast<double>(z32);
              c[p] = static_cast<double>(y8) - std::floor(b[p] / 7);
            }
            return All{a, b, c};
          },
          0};
}

/// y[b, d] = sum over l of table[at[b, l] mod rows, d]
Case bag_of_rows(int64_t bags, int64_t length, int64_t depth) {
  const int64_t rows = 11;
  const Tensor at = input("at", i32, {bags, length}), table = constant("table", f32, {rows, depth});
  const Axis b("b", Expr(bags)), d("d", Expr(depth)), l("l", Expr(length));
  const Expr row = cast(i64, floor_mod(at(b, l), int_imm(rows, i32)));
  const Tensor y = compute("Y", {b, d}, sum(table(row, d), l));
  return {"bag of rows",
          {y},
          [=](const Inputs& in) {
            Doubles out(bags * depth, 0.0);
            for (int64_t p = 0; p < bags; ++p)
              for (int64_t s = 0; s < length; ++s)
                for (int64_t q = 0; q < depth; ++q) {
                  const auto r = static_cast<int64_t>(mod(in.at("at")[p * length + s], rows));
                  out[p * depth + q] += in.at("table")[r * depth + q];
                }
            return All{out};
          },
          kStep * static_cast<double>(length + 1)};
}

/// y[i, j] = max over k of a[i, k] + b[k, j]
Case max_plus_product(int64_t m, int64_t n, int64_t k) {
  const Tensor a = input("A", f32, {m, k}), b = input("B", f32, {k, n});
  const Axis i("i", Expr(m)), j("j", Expr(n)), r("k", Expr(k));
  const Tensor y = compute("Y", {i, j}, reduce_max(a(i, r) + b(r, j), {r}));
  return {"max-plus product", {y}, [=](const Inputs& in) {
            Doubles out(m * n, -kInf);
            for (int64_t p = 0; p < m; ++p)
              for (int64_t q = 0; q < n; ++q)
                for (int64_t s = 0; s < k; ++s)
                  out[p * n + q] =
                      std::max(out[p * n + q], in.at("A")[p * k + s] + in.at("B")[s * n + q]);
            return All{out};
          }};
}

/// The transpose, then sums of 7 neighbours along its rows.
Case sliding_sum_of_transpose(int64_t rows, int64_t columns) {
  const int64_t width = 7, left = std::max<int64_t>(0, rows - width + 1);
  const Tensor x = input("X", f32, {rows, columns});
  const Axis p("p", Expr(columns)), q("q", Expr(rows));
  const Tensor t = compute("T", {p, q}, x(q, p));
  const Axis i("i", Expr(columns)), j("j", Expr(left)), w("w", Expr(width));
  const Tensor y = compute("Y", {i, j}, sum(t(i, j + w), w));
  return {"sliding sum", {y}, [=](const Inputs& in) {
            Doubles out(columns * left, 0.0);
            for (int64_t a = 0; a < columns; ++a)
              for (int64_t b = 0; b < left; ++b)
                for (int64_t c = 0; c < width; ++c)
                  out[a * left + b] += in.at("X")[(b + c) * columns + a];
            return All{out};
          }};
}

/// One-dimensional convolution in groups, taps `dilation` apart, zeros outside, then a bias and
/// relu.
Case dilated_convolution(int64_t n, int64_t groups, int64_t per_group, int64_t length) {
  const int64_t taps = 3, dilation = 3, outs = 2, channels = groups * per_group,
                filters = groups * outs;
  const Tensor x = input("X", f32, {n, channels, length}),
               f = constant("F", f32, {filters, per_group, taps});
  const Tensor bias = constant("bias", f32, {filters});
  const Axis b("b", Expr(n)), o("o", Expr(filters)), t("t", Expr(length)), c("c", Expr(per_group)),
      k("k", Expr(taps));
  const Expr place = t + (k - 1) * dilation;
  const Expr value = select(place >= 0 && place < length,
                            x(b, floor_div(o, outs) * per_group + c, place), float_imm(0));
  const Tensor conv = compute("C", {b, o, t}, sum(value * f(o, c, k), {c, k}));
  const Axis d("d", Expr(n)), e("e", Expr(filters)), g("g", Expr(length));
  const Tensor y = compute("Y", {d, e, g}, max(conv(d, e, g) + bias(e), 0.0));
  return {"dilated convolution",
          {y},
          [=](const Inputs& in) {
            Doubles out(n * filters * length);
            for (int64_t p = 0; p < n * filters * length; ++p) {
              const int64_t at = p % length, filter = p / length % filters,
                            batch = p / length / filters;
              double total = in.at("bias")[filter];
              for (int64_t q = 0; q < per_group; ++q)
                for (int64_t r = 0; r < taps; ++r) {
                  const int64_t from = at + (r - 1) * dilation,
                                channel = filter / outs * per_group + q;
                  if (from >= 0 && from < length)
                    total += in.at("X")[(batch * channels + channel) * length + from] *
                             in.at("F")[(filter * per_group + q) * taps + r];
                }
              out[p] = std::max(total, 0.0);
            }
            return All{out};
          },
          kStep * static_cast<double>(taps * per_group + 3)};
}

/// How many elements equal each of the numbers -8 .. 8, and whether any or all do.
Case comparison_counts(int64_t n) {
  const Tensor x = input("X", i8, {n});
  const Axis b("b", Expr(17)), i("i", Expr(n)), c("c", Expr(17)), j("j", Expr(n)), d("d", Expr(17)),
      k("k", Expr(n));
  const Expr bin = cast(i8, b - 8);
  const Tensor y = compute("Y", {b}, sum(cast(i32, x(i) == bin), i));
  const Tensor z = compute("Z", {c}, any(x(j) == cast(i8, c - 8), {j}));
  const Tensor v = compute("V", {d}, all(x(k) <= cast(i8, d - 8), {k}));
  return {"comparison counts",
          {y, z, v},
          [=](const Inputs& in) {
            Doubles counts(17, 0.0), some(17, 0.0), each(17, 1.0);
            for (int64_t p = 0; p < 17; ++p)
              for (double e : in.at("X")) {
                counts[p] += e == static_cast<double>(p - 8);
                if (e == static_cast<double>(p - 8)) some[p] = 1;
                if (e > static_cast<double>(p - 8)) each[p] = 0;
              }
            return All{counts, some, each};
          },
          0};
}

/// The best value of each column and where it stands; small integers, so that there are ties.
Case best_of_columns(int64_t rows, int64_t columns, bool last) {
  const Tensor x = input("X", i32, {rows, columns});
  const Axis j("j", Expr(columns)), k("k", Expr(rows));
  const auto y = compute_tuple("Y", {j}, arg_max(x(k, j), k, last));
  return {"best of columns", y,
          [=](const Inputs& in) {
            Doubles best(columns, -2147483648.0), at(columns, 0.0);
            for (int64_t a = 0; a < rows; ++a)
              for (int64_t b = 0; b < columns; ++b) {
                const double v = in.at("X")[a * columns + b];
                if (v > best[b] || (last && v == best[b]))
                  best[b] = v, at[b] = static_cast<double>(a);
              }
            return All{best, at};
          },
          0};
}

/// A number without axes: the inner product; and its root, scaled back onto a vector.
Case norm(int64_t n) {
  const Tensor x = input("X", f32, {n});
  const Axis i("i", Expr(n)), k("k", Expr(n));
  const Tensor square = compute("S", {}, sum(x(k) * x(k), k));
  const Tensor y = compute("Y", {i}, x(i) / sqrt(square() + 1.0));
  return {"norm",
          {square, y},
          [=](const Inputs& in) {
            double total = 0;
            for (double e : in.at("X")) total += e * e;
            Doubles out = in.at("X");
            for (double& e : out) e /= std::sqrt(total + 1);
            return All{{total}, out};
          },
          kStep * static_cast<double>(n + 4)};
}

/// i8 by u8 into i32 with a start taken from a tensor.
Case quantised_product(int64_t m, int64_t n, int64_t k) {
  const Tensor a = input("A", u8, {m, k}), b = constant("B", i8, {k, n}),
               start = input("S", i32, {n});
  const Axis i("i", Expr(m)), j("j", Expr(n)), r("k", Expr(k));
  const Tensor y = compute(
      "Y", {i, j}, sum(cast(i32, a(i, r)) * cast(i32, b(r, j)), {r}, {.start = {start(j)}}));
  return {"quantised product",
          {y},
          [=](const Inputs& in) {
            Doubles out(m * n);
            for (int64_t p = 0; p < m; ++p)
              for (int64_t q = 0; q < n; ++q) {
                out[p * n + q] = in.at("S")[q];
                for (int64_t s = 0; s < k; ++s)
                  out[p * n + q] += in.at("A")[p * k + s] * in.at("B")[s * n + q];
              }
            return All{out};
          },
          0};
}

/// f16 in and out, sums in f32; a half-size picture enlarged by repeating, read from the far end.
Case enlarged_halves(int64_t h, int64_t w) {
  const Tensor x = input("X", f16, {h, w});
  const Axis i("i", Expr(2 * h)), j("j", Expr(2 * w + 1)), p("p", Expr(h)), q("q", Expr(w));
  const Expr column = min(floor_div(Expr(2 * w) - j, 2), Expr(std::max<int64_t>(w - 1, 0)));
  const Tensor y = compute("Y", {i, j}, x(floor_div(i, 2), column));
  const Tensor z = compute("Z", {p}, cast(f16, sum(cast(f32, x(p, q)), q)));
  return {"enlarged halves",
          {y, z},
          [=](const Inputs& in) {
            Doubles out, sums(h, 0.0);
            for (int64_t a = 0; a < 2 * h; ++a)
              for (int64_t b = 0; b < 2 * w + 1; ++b)
                out.push_back(in.at("X")[a / 2 * w + std::min((2 * w - b) / 2, w - 1)]);
            for (int64_t a = 0; a < h; ++a)
              for (int64_t b = 0; b < w; ++b) sums[a] += in.at("X")[a * w + b];
            return All{out, sums};
          },
          1e-3};
}

/// Two tensors one behind the other along the rows, the second scaled by a product over its
/// columns.
Case stacked(int64_t rows_a, int64_t rows_b, int64_t columns) {
  const Tensor a = input("A", f64, {rows_a, columns}), b = input("B", f64, {rows_b, columns});
  const Axis s("s", Expr(rows_b)), k("k", Expr(columns)), i("i", Expr(rows_a + rows_b)),
      j("j", Expr(columns));
  const Tensor f = compute("F", {s}, prod(b(s, k) + 1.0, {k}));
  const Tensor y =
      compute("Y", {i, j}, select(i < rows_a, a(i, j), b(i - rows_a, j) * f(i - rows_a)));
  return {"stacked",
          {y},
          [=](const Inputs& in) {
            Doubles out = in.at("A");
            for (int64_t p = 0; p < rows_b; ++p) {
              double product = 1;
              for (int64_t q = 0; q < columns; ++q) product *= in.at("B")[p * columns + q] + 1;
              for (int64_t q = 0; q < columns; ++q)
                out.push_back(in.at("B")[p * columns + q] * product);
            }
            return All{out};
          },
          1e-13};
}

}  // namespace

std::vector<Case> user_formulas() {
  std::vector<Case> all = scans_and_scatters();
  const std::vector<Case> others = {five_points(37, 130),
                                    five_points(1, 17),
                                    five_points(17, 1),
                                    outer_product(3, 17, 37),
                                    outer_product(1, 130, 7),
                                    outer_product(2, 7, 0),
                                    causal_product(37, 17),
                                    causal_product(17, 1),
                                    running_sums(130),
                                    running_sums(1),
                                    log_sum_exp(17, 130),
                                    log_sum_exp(1, 7),
                                    wrapping_polynomials(130),
                                    wrapping_polynomials(1),
                                    bag_of_rows(7, 17, 37),
                                    bag_of_rows(17, 0, 7),
                                    max_plus_product(17, 37, 7),
                                    max_plus_product(7, 130, 37),
                                    max_plus_product(7, 17, 0),
                                    sliding_sum_of_transpose(37, 17),
                                    sliding_sum_of_transpose(130, 7),
                                    sliding_sum_of_transpose(7, 37),
                                    sliding_sum_of_transpose(5, 7),
                                    dilated_convolution(1, 3, 4, 37),
                                    dilated_convolution(2, 1, 17, 130),
                                    dilated_convolution(1, 7, 1, 17),
                                    comparison_counts(130),
                                    comparison_counts(0),
                                    comparison_counts(1),
                                    best_of_columns(37, 17, false),
                                    best_of_columns(17, 37, true),
                                    best_of_columns(130, 1, false),
                                    norm(1),
                                    norm(130),
                                    norm(0),
                                    quantised_product(17, 37, 130),
                                    quantised_product(7, 130, 17),
                                    quantised_product(1, 17, 7),
                                    enlarged_halves(7, 17),
                                    enlarged_halves(1, 130),
                                    stacked(7, 17, 37),
                                    stacked(0, 7, 17),
                                    stacked(17, 1, 1)};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

}  // namespace tenon::test
