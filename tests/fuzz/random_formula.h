#pragma once
#include <tenon/te/te.h>

#include <string>
#include <vector>

#include "choices.h"

namespace tenon {

/// A small computation, odd sizes on purpose.
struct RandomFormula {
  std::string kind;
  Program program;
  int64_t index_limit = 1;  // inputs named "idx" hold numbers in [0, index_limit)
  /// All data are small integers, also in floats, and no step of the computation rounds: every
  /// order of it gives the same bits. Otherwise floats are real numbers, compared by a bound.
  bool exact = true;
};

/// What a kind of formula draws from.
struct FormulaDraw {
  Choices& choices;
  DType type = DType::i32;  // of most tensors
  bool exact = true;
  int64_t index_limit = 1;

  int64_t size();   // 1 to 17, odd ones likely
  int64_t small();  // 1 to 5
  bool has_negative() const { return is_float(type) || is_signed_int(type); }
  /// A literal of the type; negative ones only where it has them.
  Expr number(int64_t value) const;
  /// A few operations on one or two values of the type.
  Expr mix(const Expr& a, const Expr& b);
  /// sum, max, min or prod over the axes.
  Expr reduction(const Expr& value, const std::vector<Axis>& axes,
                 const ReduceOptions& options = {});
  /// name[axes] = mix of an element of t, maybe with a new input that is broadcast.
  Tensor map_of(const std::string& name, const Tensor& t);
};

struct FormulaKind {
  const char* name;
  int weight;
  std::vector<Tensor> (*make)(FormulaDraw&);
};
/// Simple ones first. One line adds a kind.
const std::vector<FormulaKind>& formula_kinds();

std::vector<FormulaKind> map_formulas();
std::vector<FormulaKind> reduction_formulas();

RandomFormula random_formula(Choices& choices);
RandomFormula random_formula(Rng& rng);

/// Axes i, j, h, w over the shape.
std::vector<Axis> axes_of(const std::vector<int64_t>& shape);

/// The type that a formula's data have, most often i32.
DType random_type(Choices& choices);

}  // namespace tenon
