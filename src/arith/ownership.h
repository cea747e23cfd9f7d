#pragma once
#include "arith/simplify.h"

namespace tenon {

/// Two accesses of one buffer by the threads of a block, side A at one moment and side B at
/// another. `threads` are the variables of the block's axes, the same objects on both sides, but
/// the values of one thread on side A and of another on side B.
struct ThreadAccess {
  std::vector<Expr> index;
};

/// Is an element touched on both sides only by one and the same thread? True only where that is
/// proved; variables of `fixed` have one value on both sides, all others any of their ranges.
///
///     A[tx*4 + i], A[tx*4 + j]  with i, j in 0..4:   true
///     A[tx], A[tx + 1]:                              false
bool same_thread_only(const ThreadAccess& a, const ThreadAccess& b, const std::vector<Var>& threads,
                      const std::vector<Var>& fixed, Simplifier& math);

}  // namespace tenon
