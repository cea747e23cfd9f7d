#pragma once
#include <tenon/ir/expr.h>

namespace tenon {

// What is wrong with a formula, said where it is written. All throw UserError; `where` begins the
// message: compute "C".

/// Refuses extents whose product, empty ones aside, would overflow what is computed from them.
void check_points(const std::string& where, const std::vector<Expr>& extents);

/// Axes have names, extents of 0 or more, and stand once each.
void check_axes(const std::string& where, const std::vector<Axis>& axes);

/// Refuses what has no value whatever the tensors hold: an integer divided by the constant 0, and a
/// shift by a constant that is negative or not below the width.
void check_constants(const std::string& where, const Expr& value);

/// A value over `axes`: it is defined, speaks of nothing unknown, reduces over axes of its own whose
/// extents speak of no axis, has countable points, and neither check_constants nor a read that is outside for certain is against
/// it.
void check_formula(const std::string& where, const std::vector<Axis>& axes, const Expr& value);

}  // namespace tenon
