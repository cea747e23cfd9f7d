#include "symbolic_formula.h"

#include <algorithm>

namespace tenon {
namespace {

constexpr SymbolRange kRange = {0, 64};

Expr mix(Rng& rng, const Expr& a, const Expr& b) {
  switch (rng.below(4)) {
    case 0:
      return a + b;
    case 1:
      return a * int_imm(rng.between(-3, 3), i32) - b;
    case 2:
      return max(a, b);
    default:
      return select(a > b, a, b * int_imm(2, i32));
  }
}

/// A symbol, or now and then a number.
Expr extent(Rng& rng, const char* name) {
  static constexpr int64_t kSizes[] = {1, 3, 4, 7, 8};
  if (rng.chance(0.75)) return symbol(name, kRange);
  return kSizes[rng.below(std::size(kSizes))];
}

Tensor map_of(Rng& rng, const std::string& name, const Tensor& t) {
  static const char* const kNames[] = {"i", "j", "h"};
  std::vector<Axis> axes;
  std::vector<Expr> at;
  for (size_t d = 0; d < t.shape().size(); ++d) {
    axes.emplace_back(kNames[d], t.shape()[d]);
    at.push_back(axes.back());
  }
  if (rng.chance(0.5)) return compute(name, axes, mix(rng, t.at(at), t.at(at)));
  const auto d = static_cast<size_t>(rng.below(static_cast<int64_t>(axes.size())));
  const Tensor v = input("v_" + name, i32, {t.shape()[d]});
  return compute(name, axes, mix(rng, t.at(at), v(at[d])));
}

Tensor line(Rng& rng) {
  Tensor t = input("X", i32, {symbol("n", kRange)});
  const int64_t stages = rng.between(1, 3);
  for (int64_t k = 0; k < stages; ++k) t = map_of(rng, std::string(1, char('P' + k)), t);
  return t;
}

Tensor plane(Rng& rng) {
  Tensor t = input("X", i32, {symbol("m", kRange), extent(rng, "n")});
  const int64_t stages = rng.between(1, 3);
  for (int64_t k = 0; k < stages; ++k) t = map_of(rng, std::string(1, char('P' + k)), t);
  return t;
}

Tensor matmul(Rng& rng) {
  const Expr m = symbol("m", kRange), n = extent(rng, "n"), depth = extent(rng, "k");
  Tensor a = input("A", i32, {m, depth});
  const Tensor b = input("B", i32, {depth, n});
  if (rng.chance(0.3)) a = map_of(rng, "P", a);
  const Axis i("i", m), j("j", n), k("k", depth);
  Tensor c = compute("C", {i, j}, sum(a(i, k) * b(k, j), k));
  return rng.chance(0.5) ? c : map_of(rng, "D", c);
}

/// What a softmax does to its rows: their greatest, a map, their sum, a map.
Tensor rows(Rng& rng) {
  const Expr m = symbol("m", kRange), n = extent(rng, "n");
  const Tensor x = input("X", i32, {m, n});
  const Axis i("i", m), k("k", n), y("y", m), z("z", n), u("u", m), q("q", n);
  const Tensor r = compute("R", {i}, reduce_max(x(i, k), {k}));
  const Tensor d = compute("D", {y, z}, x(y, z) - select(r(y) > 0, r(y), int_imm(0, i32)));
  if (rng.chance(0.4)) return d;
  const Tensor t = compute("T", {u}, sum(d(u, q) * d(u, q), q));
  if (rng.chance(0.5)) return t;
  const Axis e("e", m), f("f", n);
  return compute("E", {e, f}, d(e, f) + t(e));
}

/// A window over a producer that is longer by its halo.
Tensor stencil(Rng& rng) {
  const Expr n = symbol("n", kRange);
  const int64_t halo = rng.between(1, 3);
  const Tensor x = input("X", i32, {n + halo});
  const Axis a("a", n + halo), i("i", n);
  const Tensor p = compute("P", {a}, mix(rng, x(a), x(a)));
  Tensor c = compute("C", {i}, mix(rng, p(i), p(Expr(i) + halo)));
  return rng.chance(0.5) ? c : map_of(rng, "D", c);
}

/// Symbolic batch, and now and then a symbolic width.
Tensor convolution(Rng& rng) {
  const Expr batch = symbol("b", kRange), w = extent(rng, "w");
  const int64_t taps = rng.between(1, 3);
  const Tensor x = input("X", i32, {batch, w + (taps - 1)}), f = input("F", i32, {taps, 3});
  const Axis b("b", batch), y("y", w), o("o", 3), r("r", taps);
  const Tensor c = compute("C", {b, y, o}, sum(x(b, Expr(y) + r) * f(r, o), r));
  return rng.chance(0.6) ? c : map_of(rng, "D", c);
}

/// Backwards and held at the ends: indices that speak of the extent.
Tensor turned(Rng& rng) {
  const Var n = symbol("n", kRange);
  const Tensor x = input("X", i32, {n});
  const Axis a("a", n), i("i", n);
  const Tensor p = compute("P", {a}, mix(rng, x(a), x(a)));
  const Expr back = p(Expr(n) - 1 - i);
  if (rng.chance(0.5)) return compute("C", {i}, back + cast(i32, n));
  return compute("C", {i}, back + p(min(Expr(i) + 2, Expr(n) - 1)));
}

Tensor transposed(Rng& rng) {
  const Expr m = symbol("m", kRange), n = extent(rng, "n");
  const Tensor x = input("X", i32, {m, n});
  const Axis i("i", n), j("j", m);
  const Tensor t = compute("T", {i, j}, x(j, i));
  return rng.chance(0.5) ? map_of(rng, "D", t) : t;
}

}  // namespace

SymbolicFormula symbolic_formula(Rng& rng) {
  struct Kind {
    const char* name;
    Tensor (*make)(Rng&);
  };
  static constexpr Kind kKinds[] = {{"line", line},       {"plane", plane},
                                    {"matmul", matmul},   {"rows", rows},
                                    {"stencil", stencil}, {"convolution", convolution},
                                    {"turned", turned},   {"transposed", transposed}};
  const Kind& kind = kKinds[rng.below(std::size(kKinds))];
  return {kind.name, make_program(kind.name, {kind.make(rng)})};
}

std::map<std::string, int64_t> random_sizes(const Program& program, Rng& rng) {
  static constexpr int64_t kSizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17};
  std::map<std::string, int64_t> out;
  for (const Var& v : program.symbols) {
    const int64_t size = kSizes[rng.below(std::size(kSizes))];
    out[v.name()] = std::clamp(size, v.range()->low, v.range()->high);
  }
  return out;
}

}  // namespace tenon
