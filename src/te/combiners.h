#pragma once
#include <tenon/ir/ops.h>

namespace tenon {

/// A literal in another type; UserError when that does not keep its value.
Expr literal_as(const Expr& literal, DType t);

/// Whether join(x, identity) is known not to be x for some x: points that do not count could not be
/// joined as the identity.
bool changes_by_identity(const Combiner& c);

}  // namespace tenon
