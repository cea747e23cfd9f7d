#pragma once
#include <tenon/ir/expr.h>

#include <vector>

namespace tenon {

/// A linear form: constant + sum of coefficient * atom. An atom is a variable or any term that is
/// not linear (floor division, remainder, min, a product of variables, a load, ...). Atoms stand
/// once each, in order of first appearance, with coefficients that are not 0.
struct Affine {
  struct Term {
    Expr atom;
    int64_t coefficient;
  };

  std::vector<Term> terms;
  int64_t constant = 0;
  /// A coefficient or constant left 64 bits: the form says nothing.
  bool overflow = false;

  static Affine of(int64_t constant);
  static Affine of(const Expr& atom, int64_t coefficient = 1);

  bool is_constant() const { return terms.empty() && !overflow; }
  /// The coefficient of an atom; 0 when it does not occur.
  int64_t coefficient(const Expr& atom) const;

  Affine& add(const Expr& atom, int64_t coefficient);
  Affine& add(const Affine& other, int64_t factor = 1);
  Affine& add(int64_t value);
};

Affine operator+(Affine a, const Affine& b);
Affine operator-(Affine a, const Affine& b);
Affine operator*(const Affine& a, int64_t factor);

/// The expression of a form: positive terms in order, then the rest, the constant last ("io*6 + ii
/// - 3"; "22 - i").
Expr to_expr(const Affine& form);

/// structural_equal with a short cut for variables.
bool same_atom(const Expr& a, const Expr& b);

}  // namespace tenon
