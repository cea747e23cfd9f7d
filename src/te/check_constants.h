#pragma once
#include <tenon/ir/expr.h>

namespace tenon {

/// Refuses what has no value whatever the tensors hold: an integer divided by the constant 0, and a
/// shift by a constant that is negative or not below the width. `where` begins the message.
void check_constants(const std::string& where, const Expr& value);

}  // namespace tenon
