#include "arith/affine.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>

namespace tenon {
namespace {

Expr scaled(const Expr& atom, int64_t coefficient) {
  return coefficient == 1 ? atom : binary(BinaryOp::mul, atom, int_imm(coefficient));
}

}  // namespace

bool same_atom(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  const auto *x = a.as<VarRef>(), *y = b.as<VarRef>();
  if (x || y) return x && y && x->var.same_as(y->var);
  return structural_equal(a, b);
}

Affine Affine::of(int64_t constant) {
  Affine out;
  out.constant = constant;
  return out;
}

Affine Affine::of(const Expr& atom, int64_t coefficient) {
  Affine out;
  out.add(atom, coefficient);
  return out;
}

int64_t Affine::coefficient(const Expr& atom) const {
  for (const Term& t : terms) {
    if (same_atom(t.atom, atom)) return t.coefficient;
  }
  return 0;
}

Affine& Affine::add(const Expr& atom, int64_t coefficient) {
  if (coefficient == 0) return *this;
  for (size_t k = 0; k < terms.size(); ++k) {
    if (!same_atom(terms[k].atom, atom)) continue;
    overflow |= __builtin_add_overflow(terms[k].coefficient, coefficient, &terms[k].coefficient);
    if (terms[k].coefficient == 0) terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(k));
    return *this;
  }
  if (terms.empty()) terms.reserve(4);
  terms.push_back({atom, coefficient});
  return *this;
}

Affine& Affine::add(int64_t value) {
  overflow |= __builtin_add_overflow(constant, value, &constant);
  return *this;
}

Affine& Affine::add(const Affine& other, int64_t factor) {
  overflow |= other.overflow;
  int64_t product;
  for (const Term& t : other.terms) {
    overflow |= __builtin_mul_overflow(t.coefficient, factor, &product);
    add(t.atom, product);
  }
  overflow |= __builtin_mul_overflow(other.constant, factor, &product);
  return add(product);
}

Affine operator+(Affine a, const Affine& b) { return std::move(a.add(b)); }
Affine operator-(Affine a, const Affine& b) { return std::move(a.add(b, -1)); }
Affine operator*(const Affine& a, int64_t factor) { return std::move(Affine().add(a, factor)); }

Expr to_expr(const Affine& form) {
  std::vector<Affine::Term> terms = form.terms;
  int64_t constant = form.constant;
  auto positive = std::find_if(terms.begin(), terms.end(),
                               [](const Affine::Term& t) { return t.coefficient > 0; });
  if (positive != terms.end()) std::rotate(terms.begin(), positive, positive + 1);
  Expr out;
  if (terms.empty() || (positive == terms.end() && constant != 0)) {
    out = int_imm(constant);
    constant = 0;
  }
  for (const Affine::Term& t : terms) {
    if (!out.defined()) {
      out = t.coefficient == -1 ? unary(UnaryOp::neg, t.atom) : scaled(t.atom, t.coefficient);
    } else if (t.coefficient > 0 || t.coefficient == INT64_MIN) {
      out = binary(BinaryOp::add, out, scaled(t.atom, t.coefficient));
    } else {
      out = binary(BinaryOp::sub, out, scaled(t.atom, -t.coefficient));
    }
  }
  if (constant > 0 || constant == INT64_MIN)
    out = binary(BinaryOp::add, out, int_imm(constant));
  else if (constant < 0)
    out = binary(BinaryOp::sub, out, int_imm(-constant));
  return out;
}

}  // namespace tenon
