#pragma once
#include <tenon/ir/stmt.h>

#include "arith/simplify.h"

namespace tenon {

/// What accesses touch of one dimension: `base + low` to `base + high`, where `base` is constant
/// inside the statement.
struct Side {
  Affine base;
  int64_t low = 0, high = 0;
};

/// All accesses of one buffer inside a statement.
struct BufferUse {
  std::vector<std::optional<Side>> sides;  // nothing: not bounded, the dimension stays whole
  std::vector<int> vector_dims;            // dimensions that vectorised loops run along
  bool any = false;
};

/// `simplifier` knows the ranges of the loops in `body`.
BufferUse touched(const Buffer& buffer, const Stmt& body, Simplifier& simplifier);

}  // namespace tenon
