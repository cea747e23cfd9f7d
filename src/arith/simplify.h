#pragma once
#include "arith/affine.h"
#include "arith/interval.h"

namespace tenon {

/// An equal expression, simpler or the same pointer. Idempotent. Index arithmetic (i64 of
/// variables, constants and terms of known bounds) is assumed not to overflow; other integers wrap;
/// floats are never touched.
Expr simplify(const Expr& e, const VarRanges& ranges = {});

/// True only if `condition` holds for all values of the variables in their ranges; an undefined
/// condition holds.
bool prove(const Expr& condition, const VarRanges& ranges = {});

/// The same with one memory for many expressions of a program: results are kept per node.
class Simplifier {
 public:
  explicit Simplifier(VarRanges ranges = {}) : ranges_(std::move(ranges)) {}

  /// A loop is entered. A new range for a variable that had another one forgets all results.
  void set_range(const Var& v, const Interval& range);
  const VarRanges& ranges() const { return ranges_; }

  Expr simplify(const Expr& e);
  bool prove(const Expr& condition);
  Interval bounds(const Expr& e);
  Interval bounds(const Affine& form) { return bounds(form, 0); }

  /// The simplified linear form of a scalar i64 expression.
  Affine affine(const Expr& e);
  /// floor(form / divisor), simplified; divisor > 0.
  Affine divide(Affine form, int64_t divisor);
  /// form - divisor * floor(form / divisor), simplified; divisor > 0.
  Affine modulo(Affine form, int64_t divisor);
  /// Whether evaluating the form in 64 bits gives its mathematical value: no atom is data of
  /// unknown size.
  bool is_exact(const Affine& form);

 private:
  struct Fact {
    Expr key;  // keeps the node alive
    Interval bounds;
    bool index = false;
  };

  void forget();
  Affine compute_affine(const Expr& e);
  Affine atom_or_form(const Expr& e);
  Affine collect(Affine form);
  bool collect_once(Affine& form);
  Affine split_common_factor(const Affine& form, int64_t divisor, bool modulo, bool* done);

  Expr simplify_general(const Expr& e);
  Expr simplify_let(const Expr& e, const Let& let);
  Expr local(const Expr& e);
  Expr compare(const Expr& e, const Binary& n);
  Expr compare_forms(const Expr& e, BinaryOp op, const Affine& a, const Affine& b);
  Expr pick_extreme(const Expr& e, const Binary& n);
  bool lane_forms(const Expr& a, const Expr& b, Affine* fa, Affine* fb);
  bool lane_form(const Expr& e, Affine* form);

  const Fact& fact(const Expr& atom);
  Fact compute_fact(const Expr& e);
  Interval compute_bounds(const Expr& e);
  Interval bounds(const Affine& form, int depth);

  VarRanges ranges_;
  VarRanges let_ranges_;  // derived from ranges_
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> simplified_;
  std::unordered_map<const ExprNode*, std::pair<Expr, Affine>> forms_;
  std::unordered_map<const ExprNode*, Fact> facts_;
  std::unordered_map<const VarNode*, bool> data_vars_;  // Lets of data: they may overflow
  std::unordered_map<const VarNode*, bool> seen_vars_;  // facts depend on their ranges
  std::map<int, Var> lanes_;                            // the lane number of vectors, by width
};

}  // namespace tenon
