#pragma once
#include <tenon/ir/expr.h>

namespace tenon {

// What is wrong with a formula, said where it is written. All throw UserError; `where` begins the
// message: compute "C".

/// Refuses an extent that is no i64 of symbols, or that may be negative.
///   axis i of n - 2, n in [0, 99]   ->   refused: -2 for the least n
void check_extent(const std::string& where, const Expr& extent);

/// Points that take memory, or that are run through only.
enum class Points : uint8_t { memory, iterations };

/// Refuses extents whose product, empty ones aside, would overflow what is computed from them. A
/// symbolic extent counts with its highest value, or not at all where only iterations are counted.
void check_points(const std::string& where, const std::vector<Expr>& extents, Points points_of);

/// "4 x n x 2"
std::string extents_text(const std::vector<Expr>& extents);

/// Axes have names, extents of 0 or more, and stand once each.
void check_axes(const std::string& where, const std::vector<Axis>& axes);

/// Refuses what has no value whatever the tensors hold: an integer divided by the constant 0, and a
/// shift by a constant that is negative or not below the width.
void check_constants(const std::string& where, const Expr& value);

/// A value over `axes`: it is defined, speaks of nothing unknown, reduces over axes of its own
/// whose extents speak of no axis, has countable points, and neither check_constants nor a read
/// that is outside for certain is against it.
void check_formula(const std::string& where, const std::vector<Axis>& axes, const Expr& value);

}  // namespace tenon
