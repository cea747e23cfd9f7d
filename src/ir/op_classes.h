#pragma once
#include <tenon/ir/expr.h>

namespace tenon {

/// Quotients and remainders of integers: a divisor of 0 has no value.
inline bool divides_integers(BinaryOp op) {
  return op >= BinaryOp::floor_div && op <= BinaryOp::trunc_mod;
}

}  // namespace tenon
