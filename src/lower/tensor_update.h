#pragma once
#include <tenon/target/target.h>

#include <functional>

#include "lower/lane_expr.h"

namespace tenon {

/// An intrinsic's formula found in flat code, on the lanes of `LaneContext`:
///
///     for r in 0..4  unroll                               C[ramp(at, 1, 16)] =
///       C[at+lane] += i32(A[a+r])*i32(B[b+4*lane+r])  ->    dot4.x16(C[ramp(at, 1, 16)],
///                                                             shuffle(A[ramp(a, 1, 4)], ..),
///                                                             B[ramp(b, 1, 64)])
///
/// Elements that a guard or a trimmed loop leaves out are masked. Where the target lacks the
/// intrinsic the value is the formula itself on the same vectors.
struct TensorUpdate {
  enum class Kind {
    none,   // `why` says why it is not the formula
    plain,  // it is, but must run as the loops say
    found
  };
  Kind kind = Kind::none;
  std::string why;
  Store store;         // its value is the variable ...
  Var variable;        // ... that stands for
  Expr value;          // this vector
  Expr uniform, mask;  // conditions on all lanes alike, and on each; undefined: true
};

using MakeLaneExpr = std::function<LaneExpr(const LaneContext&)>;

/// `s` under the loop of c, whose intrinsic is looked for. Its lane variable has replaced the
/// loop's.
TensorUpdate find_tensor_update(const Stmt& s, const LaneContext& c, const MakeLaneExpr& lane_expr,
                                Simplifier& simplifier, const Target& target);

}  // namespace tenon
