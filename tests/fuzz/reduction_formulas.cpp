#include "random_formula.h"

// Kinds of formulas with reductions.

namespace tenon {
namespace {

using Outputs = std::vector<Tensor>;

/// x with zeros round it.
Tensor padded(FormulaDraw& d, const Tensor& x, int64_t more) {
  const int64_t h = x.extent(0), w = x.extent(1);
  const Axis i("i", h + more), j("j", w + more);
  const Expr inside = Expr(i) >= int_imm(1) && Expr(i) < int_imm(h + 1) && Expr(j) >= int_imm(1) &&
                      Expr(j) < int_imm(w + 1);
  return compute("P", {i, j},
                 select(inside, x(Expr(i) - int_imm(1), Expr(j) - int_imm(1)), d.number(0)));
}

/// Zero padding, then a window: a map of its taps or a sum over them, maybe a map after it.
Outputs stencil(FormulaDraw& d) {
  const int64_t h = d.choices.between(3, 9), w = d.choices.between(3, 9),
                r = d.choices.between(1, 3);
  const Tensor p = padded(d, input("X", d.type, {h, w}), r - 1);
  const Axis y("y", h), z("z", w), a("a", r), b("b", r);
  Tensor c;
  if (d.choices.chance(0.4)) {
    Expr taps = p(y, z);
    for (int64_t n = 1; n < r; ++n)
      taps = taps + p(Expr(y) + int_imm(n), z) * p(y, Expr(z) + int_imm(n));
    c = compute("C", {y, z}, taps);
  } else {
    const Tensor k = constant("K", d.type, {r, r});
    c = compute("C", {y, z}, sum(p(Expr(y) + a, Expr(z) + b) * k(a, b), {a, b}));
  }
  return {d.choices.chance(0.3) ? d.map_of("D", c) : c};
}

/// The largest (or the sum) of windows that are a stride apart.
Outputs pool(FormulaDraw& d) {
  const int64_t h = d.small(), w = d.small(), r = d.choices.between(1, 3),
                stride = d.choices.between(1, 3);
  Tensor x = input("X", d.type, {stride * (h - 1) + r, stride * (w - 1) + r});
  if (d.choices.chance(0.5)) x = d.map_of("P", x);
  const Axis y("y", h), z("z", w), a("a", r), b("b", r);
  const Expr at_y = Expr(y) * int_imm(stride) + a, at_z = Expr(z) * int_imm(stride) + b;
  return {compute("C", {y, z}, d.reduction(x(at_y, at_z), {a, b}))};
}

/// Products of sums with a map before and after.
Outputs matmul(FormulaDraw& d) {
  const int64_t m = d.size(), n = d.size(), depth = d.choices.chance(0.06) ? 0 : d.size();
  Tensor a = input("A", d.type, {m, depth});
  const Tensor b =
      d.choices.chance(0.5) ? constant("B", d.type, {depth, n}) : input("B", d.type, {depth, n});
  if (d.choices.chance(0.3)) a = d.map_of("P", a);
  const Axis i("i", m), j("j", n), k("k", depth);
  ReduceOptions options;
  if (d.choices.chance(0.3)) {
    Tensor first = input("I", d.type, {m, n});
    if (d.choices.chance(0.4)) first = d.map_of("Q", first);
    options.start = {first(i, j)};
  }
  Tensor c = compute("C", {i, j}, sum(a(i, k) * b(k, j), {k}, options));
  const int64_t after = d.choices.below(3);
  for (int64_t e = 0; e < after; ++e) c = d.map_of(e == 0 ? "D" : "E", c);
  return {c};
}

/// A row reduction that a map or another reduction over the rows reads.
Outputs rows(FormulaDraw& d) {
  const int64_t m = d.size(), n = d.size();
  const Tensor x = input("X", d.type, {m, n});
  const Axis i("i", m), k("k", n);
  Expr value = x(i, k);
  if (d.choices.chance(0.3)) value = select(Expr(k) <= Expr(i), value, d.number(1));
  const Tensor r = compute("R", {i}, d.reduction(value, {k}));
  const Axis y("y", m), z("z", n);
  if (d.choices.chance(0.3)) return {r};
  if (d.choices.chance(0.3)) return {compute("S", {}, d.reduction(r(y), {y}))};
  const Tensor e = compute("D", {y, z}, x(y, z) - r(y));
  if (d.choices.chance(0.5)) return {e};
  const Axis u("u", m), q("q", n);
  return {compute("T", {u}, sum(e(u, q), q))};
}

/// The best value of each row and where it is.
Outputs argmax(FormulaDraw& d) {
  const int64_t m = d.size(), n = d.size();
  d.exact = true;  // equal values decide where
  Tensor x = input("X", d.type, {m, n});
  if (d.choices.chance(0.5)) x = d.map_of("P", x);
  const Axis i("i", m), k("k", n);
  const Outputs best =
      compute_tuple("B", {i}, d.choices.chance(0.5) ? arg_max(x(i, k), k) : arg_min(x(i, k), k));
  if (d.choices.chance(0.5)) return best;
  const Axis y("y", m);
  return {compute("D", {y}, best[0](y) + cast(d.type, best[1](y)))};
}

/// A fold whose value tells the order of its points.
std::shared_ptr<const Combiner> ordered(FormulaDraw& d) {
  if (is_float(d.type) || d.choices.chance(0.5)) {  // not continuous
    d.exact = true;
    const Expr zero = d.number(0);
    return combiner(
        "last_above_0", zero, [zero](Expr a, Expr b) { return select(b > zero, b, std::move(a)); },
        Commutes::no);
  }
  const Expr three = d.number(3);
  return combiner(
      "digits", d.number(0), [three](Expr a, Expr b) { return a * three + b; }, Commutes::no);
}

/// A fold that commutes and is none of those built in.
std::shared_ptr<const Combiner> user_combiner(const FormulaDraw& d) {
  if (is_float(d.type))
    return combiner(
        "largest", d.number(-100), [](Expr a, Expr b) { return max(a, b); }, Commutes::yes);
  return combiner(
      "xor", d.number(0), [](Expr a, Expr b) { return binary(BinaryOp::bit_xor, a, b); },
      Commutes::yes);
}

/// Several reduced axes, a start from a tensor, points that do not count, folds in order, tuples.
Outputs folds(FormulaDraw& d) {
  const int64_t m = d.size(), n = d.small(), q = d.size();
  const Tensor x = input("X", d.type, {m, n, q});
  const Axis i("i", m), j("j", n), k("k", q);
  const std::vector<Axis> over = {j, k};
  ReduceOptions options;
  if (d.choices.chance(0.5)) options.start = {input("I", d.type, {m})(i)};
  if (d.choices.chance(0.4))
    return {compute("F", {i}, reduce(ordered(d), x(i, j, k), over, options))};
  if (d.choices.chance(0.5)) options.condition = Expr(k) <= Expr(i) + Expr(j);
  if (d.choices.chance(0.6)) {
    const Expr value = d.choices.chance(0.3) ? reduce(user_combiner(d), x(i, j, k), over, options)
                                             : d.reduction(x(i, j, k), over, options);
    const Tensor f = compute("F", {i}, value);
    return {d.choices.chance(0.5) ? f : d.map_of("D", f)};
  }
  options.start.clear();
  const auto extremes = tuple_combiner(
      "extremes", {max_combiner(d.type)->identity[0], d.number(0)},
      [](const std::vector<Expr>& a, const std::vector<Expr>& b) {
        return std::vector<Expr>{max(a[0], b[0]), a[1] + b[1]};
      },
      Commutes::yes);
  const Outputs f =
      compute_tuple("F", {i}, reduce_tuple(extremes, {x(i, j, k), x(i, j, k)}, over, options));
  const Axis y("y", m);
  return {compute("D", {y}, d.mix(f[0](y), f[1](y)))};
}

/// Parts that go where a tensor says, some of them outside; a start from a tensor or a number;
/// folds that commute and, where no part is dropped, one that does not.
Outputs scattered(FormulaDraw& d) {
  const int64_t rows = d.size(), count = d.size(), n = d.small();
  d.index_limit = rows + 2;
  const Tensor x = input("X", d.type, {count, n});
  Tensor at = input("idx", i32, {count});
  if (d.choices.chance(0.3)) {
    const Axis a("a", count);
    at = compute("B", {a}, at(a) - int_imm(1, i32));
  }
  const Axis r("r", rows), c("c", n), i("i", count), j("j", n);
  const Expr start = d.choices.chance(0.5) ? input("I", d.type, {rows, n})(r, c) : d.number(0);
  const Tensor source = d.choices.chance(0.3) ? d.map_of("P", x) : x;
  const Expr value = source(i, j);
  Tensor s;
  if (d.choices.chance(0.3)) {
    s = scatter("S", {r, c}, start, {i, j}, {floor_mod(at(i), int_imm(rows, i32)), j}, value,
                ordered(d));
  } else if (d.choices.chance(0.5)) {
    s = scatter("S", {r, c}, start, {i, j}, {at(i), j}, value,
                d.choices.chance(0.5) ? user_combiner(d) : nullptr);
  } else {
    s = scatter("S", {r, c}, start, {i, j}, {at(i), Expr(c.extent) - Expr(j) - int_imm(1)}, value,
                max_combiner(d.type));
  }
  return {d.choices.chance(0.5) ? s : d.map_of("D", s)};
}

/// Sums, recurrences and pairs of states along one axis of several.
Outputs scanned(FormulaDraw& d) {
  std::vector<int64_t> shape;
  const int64_t rank = d.choices.between(1, 3);
  for (int64_t k = 0; k < rank; ++k) shape.push_back(rank == 3 ? d.small() : d.size());
  if (is_float(d.type)) d.type = i32;  // recurrences grow beyond what a float holds exactly
  d.exact = true;
  Tensor x = input("X", d.type, shape);
  if (d.choices.chance(0.4)) x = d.map_of("P", x);
  const std::vector<Axis> axes = axes_of(shape);
  const Axis along = axes[static_cast<size_t>(d.choices.below(rank))];
  const Expr here = x.at({axes.begin(), axes.end()});
  Tensor s;
  if (d.choices.chance(0.3)) {
    const Outputs pair =
        scan_tuple("S", axes, along, {here, d.number(1)}, [&](const std::vector<Expr>& before) {
          return std::vector<Expr>{before[1] + here, max(before[0], before[1]) - here};
        });
    const std::vector<Axis> own = axes_of(shape);
    const std::vector<Expr> at(own.begin(), own.end());
    s = compute("Q", own, pair[0].at(at) - pair[1].at(at));
  } else {
    s = scan("S", axes, along, here,
             [&](Expr before) { return d.mix(before, d.choices.chance(0.8) ? here : before); });
  }
  return {d.choices.chance(0.4) ? s : d.map_of("D", s)};
}

/// Rows less their largest value, then shares of their sum (of magnitudes above zero).
Outputs normalised(FormulaDraw& d) {
  const int64_t m = d.size(), n = d.size();
  const Tensor x = input("X", d.type, {m, n});
  const Axis i("i", m), k("k", n), j("j", n), l("l", n), y("y", m), z("z", n);
  const Tensor top = compute("top", {i}, reduce_max(x(i, k), {k}));
  const Tensor e = compute("e", {i, j}, x(i, j) - top(i));
  const Tensor total = compute("total", {i}, sum(e(i, l), l));
  if (is_float(d.type) && !d.exact)
    return {compute("Y", {y, z}, e(y, z) / (total(y) * total(y) + d.number(1)))};
  return {compute("Y", {y, z}, e(y, z) + total(y))};
}

/// Narrow products summed in a wider type.
Outputs widened(FormulaDraw& d) {
  const int64_t m = d.small(), n = d.size(), depth = d.size();
  const Tensor a = input("A", u8, {m, depth}), b = input("B", i8, {depth, n});
  const Axis i("i", m), j("j", n), k("k", depth);
  const Tensor c = compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(k, j)), k));
  const Axis y("y", m), z("z", n);
  if (d.choices.chance(0.5)) return {c};
  return {compute("D", {y, z}, cast(d.type, max(c(y, z), int_imm(0, i32))))};
}

/// A sum of sums: the inner one is a stage of its own.
Outputs nested(FormulaDraw& d) {
  const int64_t m = d.size(), n = d.small(), q = d.small();
  const Tensor x = input("X", d.type, {m, n + q});
  const Axis i("i", m), k("k", n), l("l", q);
  const Expr inner = d.reduction(x(i, Expr(k) + l), {l});
  return {compute("C", {i}, sum(inner + d.number(1), k))};
}

/// A matrix times a vector that another stage computes; both are outputs.
Outputs two_outputs(FormulaDraw& d) {
  const int64_t m = d.size(), n = d.size();
  const Tensor a = input("A", d.type, {m, n}), x = input("X", d.type, {n});
  const Axis i("i", m), k("k", n), p("p", n);
  const Tensor v = compute("V", {p}, d.mix(x(p), x(p)));
  const Tensor c = compute("C", {i}, sum(a(i, k) * v(k), k));
  return {c, v};
}

}  // namespace

std::vector<FormulaKind> reduction_formulas() {
  return {{"rows", 10, rows},        {"matmul", 20, matmul}, {"stencil", 14, stencil},
          {"pool", 5, pool},         {"argmax", 6, argmax},  {"folds", 9, folds},
          {"scatter", 8, scattered}, {"scan", 8, scanned},   {"normalised", 5, normalised},
          {"widened", 4, widened},   {"nested", 4, nested},  {"two_outputs", 4, two_outputs}};
}

}  // namespace tenon
