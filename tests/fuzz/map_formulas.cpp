#include "random_formula.h"

// Kinds of formulas without reductions.

namespace tenon {
namespace {

using Outputs = std::vector<Tensor>;

Outputs chain(FormulaDraw& d) {
  std::vector<int64_t> shape;
  const int64_t rank = d.choices.between(0, 3);
  for (int64_t k = 0; k < rank; ++k) shape.push_back(rank == 3 ? d.small() : d.size());
  Tensor t = input("X", d.type, shape);
  const int64_t stages = d.choices.between(1, 3);
  for (int64_t n = 0; n < stages; ++n) t = d.map_of(std::string(1, static_cast<char>('P' + n)), t);
  return {t};
}

/// One-dimensional reads with a stride, a distance or backwards.
Outputs lines(FormulaDraw& d) {
  const int64_t n = d.choices.between(5, 30), stride = d.choices.between(1, 3),
                apart = d.choices.between(0, 3);
  const int64_t length = stride * (n - 1) + apart + 1;
  const Tensor x = input("X", d.type, {length});
  const Axis a("a", length), i("i", n);
  const Tensor p = compute("P", {a}, d.mix(x(a), x(a)));
  const Expr at = d.choices.chance(0.4) ? int_imm(stride * (n - 1)) - Expr(i) * int_imm(stride)
                                        : Expr(i) * int_imm(stride);
  const Tensor c = compute("C", {i}, p(at) + p(at + int_imm(apart)));
  return {d.choices.chance(0.5) ? c : d.map_of("D", c)};
}

/// One producer, two readers with different halos, and a join of the two, or both as outputs.
Outputs diamond(FormulaDraw& d) {
  const int64_t n = d.choices.between(5, 24);
  const Tensor x = input("X", d.type, {n + 2});
  const Axis a("a", n + 2), i("i", n), j("j", n), l("l", n);
  const Tensor p = compute("P", {a}, d.mix(x(a), x(a)));
  const Tensor u = compute("U", {i}, p(i) + p(Expr(i) + int_imm(2)));
  const Tensor v = compute("V", {j}, p(Expr(j) + int_imm(1)) * d.number(3));
  if (d.choices.chance(0.25)) return {u, v};
  const Tensor w = compute("W", {l}, d.mix(u(l), v(l)));
  return d.choices.chance(0.25) ? Outputs{w, p} : Outputs{w};
}

Outputs transposed(FormulaDraw& d) {
  const int64_t m = d.size(), n = d.size();
  const Tensor x = input("X", d.type, {m, n});
  const Axis i("i", n), j("j", m);
  const Tensor t = compute("T", {i, j}, x(j, i));
  return {d.choices.chance(0.6) ? d.map_of("D", t) : t};
}

Outputs gather(FormulaDraw& d) {
  const int64_t rows = d.size(), n = d.small(), count = d.size();
  d.index_limit = rows;
  Tensor x = input("X", d.type, {rows, n});
  const Tensor idx = input("idx", i32, {count});
  if (d.choices.chance(0.5)) x = d.map_of("P", x);
  const Axis i("i", count), j("j", n);
  Tensor g = compute("G", {i, j}, x(cast(i64, idx(i)), j));
  if (d.choices.chance(0.5)) g = d.map_of("D", g);
  return {g};
}

/// Two tensors one behind the other; each part is read only where it is.
Outputs joined(FormulaDraw& d) {
  const int64_t m = d.size(), n = d.size(), w = d.small();
  Tensor x = input("X", d.type, {m, w});
  const Tensor y = input("Y", d.type, {n, w});
  if (d.choices.chance(0.5)) x = d.map_of("P", x);
  const Axis i("i", m + n), j("j", w);
  const Tensor c =
      compute("C", {i, j}, select(Expr(i) < int_imm(m), x(i, j), y(Expr(i) - int_imm(m), j)));
  return {d.choices.chance(0.5) ? c : d.map_of("D", c)};
}

/// Numbers compared, masks joined, and a choice by them.
Outputs masks(FormulaDraw& d) {
  const int64_t m = d.size(), n = d.small();
  const Tensor x = input("X", d.type, {m, n}), b = input("B", boolean, {m, n});
  const Axis i("i", m), j("j", n), k("k", m), l("l", n);
  const Tensor high = compute("M", {i, j}, (x(i, j) > d.number(2)) && !b(i, j));
  if (d.choices.chance(0.3)) return {high};
  return {compute("D", {k, l}, select(high(k, l) || b(k, l), x(k, l), d.number(7)))};
}

/// Types that change from stage to stage.
Outputs casts(FormulaDraw& d) {
  const int64_t n = d.size();
  const DType other = random_type(d.choices);
  const Tensor x = input("X", d.type, {n});
  const Axis i("i", n), j("j", n);
  // Where a float becomes an integer, rounding could decide.
  d.exact = true;
  const Tensor p = compute("P", {i}, cast(other, x(i)));
  return {compute("C", {j}, cast(i32, p(j)) + cast(i32, x(j)))};
}

/// Each stage reads the one before eight times, again and again: inlining all is too much, and so
/// is folding all into the first where they read the same element.
Outputs growing(FormulaDraw& d) {
  const int64_t depth = d.choices.between(2, 7), n = d.small(), apart = d.choices.below(2);
  Tensor t = input("X", d.type, {n + depth});
  for (int64_t k = 0; k < depth; ++k) {
    const Axis i("i", n + depth - (k + 1) * apart);
    const Expr next = Expr(i) + int_imm(apart);
    Expr all = t(i);  // different terms, which cannot be made one
    for (int64_t n = 1; n < 8; ++n) {
      const Expr read = n % 2 == 0 ? t(i) : t(next);
      all = n % 3 == 0 ? min(all, read + d.number(n)) : max(all, d.number(n) - read);
    }
    t = compute("F" + std::to_string(k), {i}, all);
  }
  return {t};
}

/// One long line.
Outputs longer(FormulaDraw& d) {
  const int64_t n = d.choices.between(1000, 1060);
  return {d.map_of("D", d.map_of("P", input("X", d.type, {n})))};
}

/// Two maps of one tensor and a map of both, which may read one of them transposed.
Outputs fan(FormulaDraw& d) {
  const int64_t n = d.size();
  const Tensor x = input("X", d.type, {n, n});
  const Tensor p = d.map_of("P", x);
  const Axis i("i", n), j("j", n);
  if (d.choices.chance(0.4)) return {compute("S", {i, j}, p(i, j) + p(j, i))};
  const Tensor q = d.map_of("Q", p), r = d.map_of("R", p);
  return {compute("S", {i, j}, q(i, j) + (d.choices.chance(0.4) ? r(j, i) : r(i, j)))};
}

/// Quotients by a tensor that has zeros behind the elements in use.
Outputs quotients(FormulaDraw& d) {
  const int64_t n = d.choices.between(5, 20), all = n + d.choices.between(1, 4);
  const Tensor x = input("X", i32, {all}), z = input("Z", i32, {all});
  const Axis c("c", all), q("q", n);
  const Tensor by = compute("B", {c}, select(Expr(c) < int_imm(n), max(z(c), 1), int_imm(0, i32)));
  d.type = i32;
  return {d.map_of("D", compute("Q", {q}, floor_div(x(q), by(q))))};
}

}  // namespace

std::vector<FormulaKind> map_formulas() {
  return {{"chain", 10, chain},          {"lines", 10, lines},   {"diamond", 10, diamond},
          {"transposed", 8, transposed}, {"gather", 10, gather}, {"joined", 5, joined},
          {"masks", 5, masks},           {"casts", 4, casts},    {"growing", 7, growing},
          {"longer", 1, longer},         {"fan", 8, fan},        {"quotients", 4, quotients}};
}

}  // namespace tenon
