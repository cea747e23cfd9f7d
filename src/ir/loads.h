#pragma once
#include <tenon/ir/expr.h>

namespace tenon {

/// Whether an element of a buffer is read anywhere in the expression.
bool has_load(const Expr& e);

}  // namespace tenon
