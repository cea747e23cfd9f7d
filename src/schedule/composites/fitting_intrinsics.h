#pragma once
#include <tenon/ir/intrinsic.h>
#include <tenon/target/target.h>

#include <vector>

#include "arith/formula_match.h"

namespace tenon {

/// An instruction of the target, and how a stage's value is its formula.
struct FittingIntrinsic {
  IntrinsicRef intrinsic;
  IntrinsicParts parts;
  FormulaMatch match;
};

/// The instructions that the target has for what the reduction `stage` adds up (null: none), group
/// by group of terms: on the lanes of a vector, or (`tiles`) on a matrix unit's tiles.
std::vector<FittingIntrinsic> fitting_intrinsics(const Stage* stage, const Target& target,
                                                 bool tiles);

}  // namespace tenon
