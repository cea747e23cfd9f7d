#include "random_formula.h"

#include <functional>

namespace tenon {
namespace {

int64_t size(Rng& rng) {
  static constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17};
  return kSizes[rng.below(std::size(kSizes))];
}

int64_t small(Rng& rng) { return rng.between(1, 5); }

/// A few operations on one or two values.
Expr mix(Rng& rng, const Expr& a, const Expr& b) {
  switch (rng.below(6)) {
    case 0:
      return a + b;
    case 1:
      return a * int_imm(rng.between(-3, 3), i32) - b;
    case 2:
      return max(a, b);
    case 3:
      return select(a > b, a, b * int_imm(2, i32));
    case 4:
      return min(a, int_imm(5, i32)) + b;
    default:
      return a - b + int_imm(rng.between(-9, 9), i32);
  }
}

std::vector<Axis> axes_of(const std::vector<int64_t>& shape) {
  static const char* const kNames[] = {"i", "j", "h", "w"};
  std::vector<Axis> out;
  for (size_t d = 0; d < shape.size(); ++d) out.emplace_back(kNames[d], shape[d]);
  return out;
}

std::vector<Expr> indices_of(const std::vector<Axis>& axes) { return {axes.begin(), axes.end()}; }

/// name[axes] = f(its element of t, another input's element)
Tensor map_of(Rng& rng, const std::string& name, const Tensor& t) {
  const std::vector<Axis> axes = axes_of(t.extents());
  const std::vector<Expr> at = indices_of(axes);
  if (axes.empty() || rng.chance(0.4)) return compute(name, axes, mix(rng, t.at(at), t.at(at)));
  const size_t d = static_cast<size_t>(rng.below(static_cast<int64_t>(axes.size())));
  const Tensor v =
      input("v_" + name, i32, {t.extent(static_cast<int>(d))});  // broadcast along the others
  return compute(name, axes, mix(rng, t.at(at), v(at[d])));
}

Tensor chain(Rng& rng) {
  std::vector<int64_t> shape;
  const int64_t rank = rng.between(0, 3);
  for (int64_t d = 0; d < rank; ++d) shape.push_back(rank == 3 ? small(rng) : size(rng));
  Tensor t = input("X", i32, shape);
  const int64_t stages = rng.between(1, 3);
  for (int64_t n = 0; n < stages; ++n)
    t = map_of(rng, std::string(1, static_cast<char>('P' + n)), t);
  return t;
}

/// Zero padding, then a window: a map of its taps or a sum over them.
Tensor stencil(Rng& rng) {
  const int64_t h = rng.between(3, 9), w = rng.between(3, 9), r = rng.between(1, 3);
  const Tensor x = input("X", i32, {h, w});
  const Axis i("i", h + r - 1), j("j", w + r - 1);
  const Expr inside = Expr(i) >= int_imm(1) && Expr(i) < int_imm(h + 1) && Expr(j) >= int_imm(1) &&
                      Expr(j) < int_imm(w + 1);
  const Tensor p = compute(
      "P", {i, j}, select(inside, x(Expr(i) - int_imm(1), Expr(j) - int_imm(1)), int_imm(0, i32)));
  const Axis y("y", h), z("z", w), a("a", r), b("b", r);
  if (rng.chance(0.4)) {
    Expr sum_of = p(y, z);
    for (int64_t n = 1; n < r; ++n)
      sum_of = sum_of + p(Expr(y) + int_imm(n), z) * p(y, Expr(z) + int_imm(n));
    return compute("C", {y, z}, sum_of);
  }
  const Tensor k = constant("K", i32, {r, r});
  return compute("C", {y, z}, sum(p(Expr(y) + a, Expr(z) + b) * k(a, b), {a, b}));
}

/// Products of sums with a map before and after.
Tensor matmul(Rng& rng) {
  const int64_t m = size(rng), n = size(rng), depth = rng.chance(0.03) ? 0 : size(rng);
  Tensor a = input("A", i32, {m, depth});
  const Tensor b = rng.chance(0.5) ? constant("B", i32, {depth, n}) : input("B", i32, {depth, n});
  if (rng.chance(0.3)) a = map_of(rng, "P", a);
  const Axis i("i", m), j("j", n), k("k", depth);
  Tensor c = rng.chance(0.3)
                 ? compute("C", {i, j},
                           sum(a(i, k) * b(k, j), {k}, {.start = {input("I", i32, {m, n})(i, j)}}))
                 : compute("C", {i, j}, sum(a(i, k) * b(k, j), k));
  const int64_t after = rng.below(3);
  for (int64_t e = 0; e < after; ++e) c = map_of(rng, e == 0 ? "D" : "E", c);
  return c;
}

/// A fold whose value tells the order of its points.
std::shared_ptr<const Combiner> ordered(Rng& rng) {
  if (rng.chance(0.5))
    return combiner(
        "keep_later", int_imm(0, i32), [](Expr, Expr later) { return later; }, Commutes::no);
  return combiner(
      "digits", int_imm(0, i32), [](Expr a, Expr b) { return a * int_imm(3, i32) + b; },
      Commutes::no);
}

std::shared_ptr<const Combiner> exclusive_or() {
  return combiner(
      "xor", int_imm(0, i32), [](Expr a, Expr b) { return binary(BinaryOp::bit_xor, a, b); },
      Commutes::yes);
}

Expr any_reduction(Rng& rng, const Expr& e, const std::vector<Axis>& axes,
                   const ReduceOptions& options = {}) {
  switch (rng.below(6)) {
    case 0:
      return reduce_max(e, axes, options);
    case 1:
      return reduce_min(e, axes, options);
    case 2:
      return prod(e, axes, options);
    case 3:
      return reduce(exclusive_or(), e, axes, options);
    default:
      return sum(e, axes, options);
  }
}

/// Several reduced axes, a start from a tensor, points that do not count, folds in order, tuples.
Tensor folds(Rng& rng) {
  const int64_t m = size(rng), n = small(rng), q = size(rng);
  const Tensor x = input("X", i32, {m, n, q});
  const Axis i("i", m), j("j", n), k("k", q);
  const std::vector<Axis> over = {j, k};
  ReduceOptions options;
  if (rng.chance(0.5)) options.start = {input("I", i32, {m})(i)};
  if (rng.chance(0.4)) return compute("F", {i}, reduce(ordered(rng), x(i, j, k), over, options));
  if (rng.chance(0.5)) options.condition = Expr(k) <= Expr(i) + Expr(j);
  if (rng.chance(0.6)) {
    const Tensor f = compute("F", {i}, any_reduction(rng, x(i, j, k), over, options));
    return rng.chance(0.5) ? f : map_of(rng, "D", f);
  }
  options.start.clear();
  const auto extremes = tuple_combiner(
      "extremes", {int_imm(min_int(i32), i32), int_imm(0, i32)},
      [](const std::vector<Expr>& a, const std::vector<Expr>& b) {
        return std::vector<Expr>{max(a[0], b[0]), a[1] + b[1]};
      },
      Commutes::yes);
  const auto f =
      compute_tuple("F", {i}, reduce_tuple(extremes, {x(i, j, k), x(i, j, k)}, over, options));
  const Axis y("y", m);
  return compute("D", {y}, mix(rng, f[0](y), f[1](y)));
}

/// A row reduction that a map or another reduction over the rows reads.
Tensor row_reduction(Rng& rng) {
  const int64_t m = size(rng), n = size(rng);
  const Tensor x = input("X", i32, {m, n});
  const Axis i("i", m), k("k", n);
  Expr value = x(i, k);
  if (rng.chance(0.3)) value = select(Expr(k) <= Expr(i), value, int_imm(1, i32));
  const Tensor r = compute("R", {i}, any_reduction(rng, value, {k}));
  const Axis y("y", m), z("z", n);
  if (rng.chance(0.3)) return r;
  if (rng.chance(0.3)) return compute("S", {}, any_reduction(rng, r(y), {y}));
  const Tensor d = compute("D", {y, z}, x(y, z) - r(y));
  if (rng.chance(0.5)) return d;
  const Axis u("u", m), q("q", n);
  return compute("T", {u}, sum(d(u, q) * d(u, q), q));
}

Tensor gather(Rng& rng) {
  const int64_t rows = size(rng), n = small(rng), count = size(rng);
  Tensor x = input("X", i32, {rows, n});
  const Tensor idx = input("idx", i32, {count});
  if (rng.chance(0.5)) x = map_of(rng, "P", x);
  const Axis i("i", count), j("j", n);
  Tensor g = compute("G", {i, j}, x(cast(i64, idx(i)), j));
  if (rng.chance(0.5)) g = map_of(rng, "D", g);
  return g;
}

/// Parts that go where a tensor says, some of them outside; a start from a tensor or a number;
/// folds that commute and, where no part is dropped, one that does not.
Tensor scattered(Rng& rng) {
  const int64_t rows = size(rng), count = size(rng), n = small(rng);
  const Tensor x = input("X", i32, {count, n});
  Tensor at = input("idx", i32, {count});
  if (rng.chance(0.3)) {
    const Axis a("a", count);
    at = compute("B", {a}, at(a) - int_imm(1, i32));
  }
  const Axis r("r", rows), c("c", n), i("i", count), j("j", n);
  const Expr start = rng.chance(0.5) ? input("I", i32, {rows, n})(r, c) : int_imm(0, i32);
  const Tensor source = rng.chance(0.3) ? map_of(rng, "P", x) : x;
  const Expr value = source(i, j);
  Tensor s;
  if (rng.chance(0.3)) {
    s = scatter("S", {r, c}, start, {i, j}, {floor_mod(at(i), int_imm(rows, i32)), j}, value,
                ordered(rng));
  } else if (rng.chance(0.5)) {
    s = scatter("S", {r, c}, start, {i, j}, {at(i), j}, value,
                rng.chance(0.5) ? exclusive_or() : nullptr);
  } else {
    s = scatter("S", {r, c}, start, {i, j}, {at(i), Expr(c.extent) - Expr(j) - int_imm(1)}, value,
                max_combiner(i32));
  }
  return rng.chance(0.5) ? s : map_of(rng, "D", s);
}

/// Sums, recurrences and pairs of states along one axis of several.
Tensor scanned(Rng& rng) {
  std::vector<int64_t> shape;
  const int64_t rank = rng.between(1, 3);
  for (int64_t d = 0; d < rank; ++d) shape.push_back(rank == 3 ? small(rng) : size(rng));
  Tensor x = input("X", i32, shape);
  if (rng.chance(0.4)) x = map_of(rng, "P", x);
  const std::vector<Axis> axes = axes_of(shape);
  const Axis along = axes[static_cast<size_t>(rng.below(rank))];
  const Expr here = x.at(indices_of(axes));
  Tensor s;
  if (rng.chance(0.3)) {
    const auto pair =
        scan_tuple("S", axes, along, {here, int_imm(1, i32)}, [&](const std::vector<Expr>& before) {
          return std::vector<Expr>{before[1] + here, max(before[0], before[1]) - here};
        });
    const std::vector<Axis> own = axes_of(shape);
    s = compute("Q", own, pair[0].at(indices_of(own)) - pair[1].at(indices_of(own)));
  } else {
    s = scan("S", axes, along, here,
             [&](Expr before) { return mix(rng, before, rng.chance(0.8) ? here : before); });
  }
  return rng.chance(0.4) ? s : map_of(rng, "D", s);
}

/// One-dimensional reads with a stride, a distance or backwards.
Tensor lines(Rng& rng) {
  const int64_t n = rng.between(5, 30), stride = rng.between(1, 3), apart = rng.between(0, 3);
  const int64_t length = stride * (n - 1) + apart + 1;
  const Tensor x = input("X", i32, {length});
  const Axis a("a", length), i("i", n);
  const Tensor p = compute("P", {a}, mix(rng, x(a), x(a)));
  const Expr at = rng.chance(0.4) ? int_imm(stride * (n - 1)) - Expr(i) * int_imm(stride)
                                  : Expr(i) * int_imm(stride);
  const Tensor c = compute("C", {i}, p(at) + p(at + int_imm(apart)));
  return rng.chance(0.5) ? c : map_of(rng, "D", c);
}

/// One producer, two readers with different halos, and a join of the two.
Tensor diamond(Rng& rng) {
  const int64_t n = rng.between(5, 24);
  const Tensor x = input("X", i32, {n + 2});
  const Axis a("a", n + 2), i("i", n), j("j", n), l("l", n);
  const Tensor p = compute("P", {a}, mix(rng, x(a), x(a)));
  const Tensor u = compute("U", {i}, p(i) + p(Expr(i) + int_imm(2)));
  const Tensor v = compute("V", {j}, p(Expr(j) + int_imm(1)) * int_imm(3, i32));
  return compute("W", {l}, mix(rng, u(l), v(l)));
}

Tensor transposed(Rng& rng) {
  const int64_t m = size(rng), n = size(rng);
  const Tensor x = input("X", i32, {m, n});
  const Axis i("i", n), j("j", m);
  const Tensor t = compute("T", {i, j}, x(j, i));
  return rng.chance(0.6) ? map_of(rng, "D", t) : t;
}

}  // namespace

RandomFormula random_formula(Rng& rng) {
  struct Kind {
    const char* name;
    Tensor (*make)(Rng&);
  };
  static constexpr Kind kKinds[] = {
      {"chain", chain},   {"stencil", stencil},   {"matmul", matmul},   {"rows", row_reduction},
      {"gather", gather}, {"lines", lines},       {"diamond", diamond}, {"transposed", transposed},
      {"folds", folds},   {"scatter", scattered}, {"scan", scanned}};
  const Kind& kind = kKinds[rng.below(std::size(kKinds))];
  const Tensor out = kind.make(rng);
  RandomFormula f{kind.name, make_program(kind.name, {out}), 0};
  for (const Param& p : f.program.params)
    if (p.buffer->name == "X" && f.kind == "gather") f.index_limit = *as_int(p.buffer->shape[0]);
  if (f.kind == "scatter") f.index_limit = out.extent(0) + 2;  // some are outside
  return f;
}

}  // namespace tenon
