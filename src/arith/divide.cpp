#include <tenon/ir/ops.h>

#include <algorithm>
#include <numeric>

#include "arith/simplify.h"

// Floor division and remainder of linear forms by a positive constant. With d the divisor, F, G, R
// forms:
//   (d*F + R) // d         ->  F + R//d                    (d*F + R) % d        ->  R % d
//   R // d                 ->  q                           R % d                ->  R - d*q    q*d
//   <= R < q*d + d (g*F + R) // (g*d)     ->  (F + q) // d                q*g <= R < q*g + g (g*F +
//   R) % (g*d)      ->  g*((F + q) % d) + R - q*g (X//c + F) // d        ->  (X + c*F) // (c*d)
//   (X%c) // d             ->  (X//d) % (c//d)             d divides c
//   (k*(X%c) + F) % d      ->  (k*X + F) % d               d divides k*c
//   k*c*(X//c) + k*(X%c)   ->  k*X                         in every sum

namespace tenon {
namespace {

/// The dividend's form and divisor of an atom `X op c` with a positive constant c.
struct Quotient {
  Expr dividend;
  int64_t divisor = 0;
};

std::optional<Quotient> quotient(const Expr& atom, BinaryOp op) {
  const auto* n = atom.as<Binary>();
  if (!n || n->op != op || atom.type() != Type{i64, 1}) return std::nullopt;
  std::optional<int64_t> c = as_int(n->b);
  if (!c || *c <= 0) return std::nullopt;
  return Quotient{n->a, *c};
}

/// Factors that some coefficient shares with the divisor, largest first.
std::vector<int64_t> common_factors(const Affine& form, int64_t divisor) {
  std::vector<int64_t> out;
  for (const Affine::Term& t : form.terms) {
    int64_t g = std::gcd(t.coefficient, divisor);
    if (g > 1) out.push_back(g);
  }
  std::sort(out.begin(), out.end(), std::greater<>());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// form = factor * first + second, where first takes the terms whose coefficient it divides.
std::pair<Affine, Affine> split_by(const Affine& form, int64_t factor) {
  std::pair<Affine, Affine> out;
  for (const Affine::Term& t : form.terms) {
    bool divides = t.coefficient % factor == 0;
    if (divides)
      out.first.terms.push_back({t.atom, t.coefficient / factor});
    else
      out.second.terms.push_back(t);
  }
  out.second.constant = form.constant;
  return out;
}

std::optional<int64_t> common_quotient(const Interval& range, int64_t divisor) {
  return floor_div(range, divisor).single();
}

}  // namespace

bool Simplifier::is_exact(const Affine& form) {
  if (form.overflow) return false;
  bool index = std::all_of(form.terms.begin(), form.terms.end(),
                           [&](const Affine::Term& t) { return fact(t.atom).index; });
  return index || bounds(form).bounded();
}

Affine Simplifier::split_common_factor(const Affine& form, int64_t divisor, bool modulo,
                                       bool* done) {
  *done = false;
  for (int64_t g : common_factors(form, divisor)) {
    auto [multiple, rest] = split_by(form, g);
    std::optional<int64_t> q = common_quotient(bounds(rest), g);
    if (!q) continue;
    *done = true;
    multiple.add(*q);
    if (!modulo) return divide(std::move(multiple), divisor / g);
    rest.add(-*q * g);
    return this->modulo(std::move(multiple), divisor / g) * g + rest;
  }
  return form;
}

Affine Simplifier::divide(Affine form, int64_t d) {
  if (d == 1) return form;
  if (!is_exact(form)) return Affine::of(floor_div(to_expr(form), int_imm(d)));
  auto [whole, rest] = split_by(form, d);
  whole.constant = floor_div(form.constant, d);
  rest.constant = floor_mod(form.constant, d);
  if (std::optional<int64_t> q = common_quotient(bounds(rest), d)) return std::move(whole.add(*q));
  bool done = false;
  Affine reduced = split_common_factor(rest, d, false, &done);
  if (done) return collect(whole + reduced);
  for (const Affine::Term& t : rest.terms) {
    int64_t product;
    std::optional<Quotient> inner = quotient(t.atom, BinaryOp::floor_div);
    if (!inner || t.coefficient != 1 || __builtin_mul_overflow(inner->divisor, d, &product))
      continue;
    Affine others = rest;
    others.add(t.atom, -1);
    return collect(whole + divide(affine(inner->dividend) + others * inner->divisor, product));
  }
  if (rest.terms.size() == 1 && rest.terms[0].coefficient == 1 && rest.constant == 0) {
    std::optional<Quotient> inner = quotient(rest.terms[0].atom, BinaryOp::floor_mod);
    if (inner && inner->divisor % d == 0) {
      return collect(whole + modulo(divide(affine(inner->dividend), d), inner->divisor / d));
    }
  }
  return collect(std::move(whole.add(floor_div(to_expr(rest), int_imm(d)), 1)));
}

Affine Simplifier::modulo(Affine form, int64_t d) {
  if (d == 1) return Affine::of(0);
  if (!is_exact(form)) return Affine::of(floor_mod(to_expr(form), int_imm(d)));
  Affine rest = split_by(form, d).second;
  rest.constant = floor_mod(form.constant, d);
  for (Affine::Term& t : rest.terms) {
    if (t.coefficient >= d || t.coefficient <= -d) t.coefficient = floor_mod(t.coefficient, d);
  }
  for (const Affine::Term& t : rest.terms) {
    int64_t product;
    std::optional<Quotient> inner = quotient(t.atom, BinaryOp::floor_mod);
    if (!inner || __builtin_mul_overflow(inner->divisor, t.coefficient, &product)) continue;
    if (product % d != 0) continue;
    Affine others = rest;
    others.add(t.atom, -t.coefficient);
    return modulo(others + affine(inner->dividend) * t.coefficient, d);
  }
  if (std::optional<int64_t> q = common_quotient(bounds(rest), d))
    return std::move(rest.add(-*q * d));
  bool done = false;
  Affine reduced = split_common_factor(rest, d, true, &done);
  return done ? collect(std::move(reduced)) : Affine::of(floor_mod(to_expr(rest), int_imm(d)));
}

bool Simplifier::collect_once(Affine& form) {
  for (const Affine::Term& t : form.terms) {
    std::optional<Quotient> part = quotient(t.atom, BinaryOp::floor_mod);
    int64_t wanted;
    if (!part || __builtin_mul_overflow(t.coefficient, part->divisor, &wanted)) continue;
    Affine dividend = affine(part->dividend);
    Affine whole = divide(dividend, part->divisor);
    if (whole.terms.size() != 1 || whole.overflow) continue;
    const Affine::Term& q = whole.terms[0];
    if (__builtin_mul_overflow(wanted, q.coefficient, &wanted)) continue;
    if (form.coefficient(q.atom) != wanted) continue;
    // k*(X % c) = k*X - k*c*(X // c)
    Affine whole_part = whole * (t.coefficient * part->divisor);
    Expr remainder = t.atom;
    int64_t k = t.coefficient;
    form.add(remainder, -k).add(dividend, k).add(whole_part, -1);
    return true;
  }
  return false;
}

Affine Simplifier::collect(Affine form) {
  while (!form.overflow && collect_once(form)) {
  }
  return form;
}

}  // namespace tenon
