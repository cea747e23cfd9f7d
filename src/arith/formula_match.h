#pragma once
#include <tenon/ir/intrinsic.h>

#include "arith/simplify.h"

namespace tenon {

/// How an expression is the value of an intrinsic's formula: the load that stands for each input.
struct FormulaMatch {
  std::vector<Expr> loads;  // in the order of IntrinsicParts::inputs
  std::string difference;   // not empty: it is not the formula; the first difference, in words
};

/// Compares structure; names of variables and buffers and the order of commuting operands do not
/// count. Where the two differ as they stand, they are compared once more in simplified form.
FormulaMatch match_formula(const IntrinsicParts& parts, const Expr& value);

/// The number of an element in memory as base + lane_stride*lane + group_stride*group.
struct ElementForm {
  Affine base;
  int64_t lane_stride = 0, group_stride = 0;
};
/// Nothing when the index is not of that form. Either variable may be undefined.
std::optional<ElementForm> element_form(const Expr& index, const Var& lane, const Var& group,
                                        Simplifier& simplifier);

/// Where the elements of an operand lie: each lane's group next to that of the lane before; one
/// group for all lanes; one element for all; or elsewhere, which no vector load gives.
enum class OperandForm : uint8_t { contiguous, repeated, scalar, scattered };
OperandForm operand_form(const ElementForm& form, int64_t group);

}  // namespace tenon
