#pragma once
#include "arith/simplify.h"
#include "schedule/tree.h"

namespace tenon {

/// The condition form <= 0.
using Guards = std::vector<Affine>;

/// Ranges of loops of constant extent; other loops are only known to be at least 0.
VarRanges loop_ranges(const std::vector<const For*>& loops);

/// Each conjunct of the guards that is an affine comparison, as forms <= 0; the rest says nothing.
Guards affine_guards(const std::vector<Expr>& guards, Simplifier& math);

/// Values of `form` at points where all guards hold. A guard helps where its terms occur in the
/// form with one common factor: 16*a + 5*b + c under 5*b + c <= 15 is 16*a + [0, 15].
Interval bounds(const Affine& form, Simplifier& math, const Guards& guards);

/// Loops of `path` from position `first` on.
std::vector<const For*> loops_from(const StagePath& path, size_t first);

}  // namespace tenon
