#pragma once
#include <tenon/ir/visit.h>

#include <set>

#include "arith/simplify.h"

namespace tenon {

// Conditions on lanes; undefined: true.
Expr both_lanes(const Expr& a, const Expr& b);
Expr to_lanes(const Expr& e, int lanes);
Expr any_lane(const Expr& mask);

/// What holds where a statement or an expression is evaluated. Conditions are scalars or vectors;
/// undefined: true.
struct LaneContext {
  const For* loop = nullptr;  // the vectorised loop around, null outside
  Var lane;                   // stands for the lane number until an expression becomes a vector
  int lanes = 1;
  bool combines = false;  // the loop runs a reduction: lanes that meet in an element are combined
  Expr tail;              // lanes that exist: a vector, never all off
  Expr guard;             // lanes whose guards hold: a vector
  Expr first;             // whether they hold in lane 0: a scalar over the loops
  Expr chosen;            // the side of a select
  std::shared_ptr<const Intrinsic> intrinsic;  // of the loop, while its update is looked for
};

/// Register buffers with a store that leaves lanes of a vector out: only those hold lanes that were
/// never written beside lanes that were. Asked for membership only.
using PartialBuffers = std::set<const BufferNode*>;

/// The loops round a statement from the outside in, each with its first value, and of each buffer
/// that starts unwritten the number of them that are outside it.
struct LaneScope {
  std::vector<std::pair<Var, Expr>> loops;
  std::unordered_map<const BufferNode*, size_t> outside;
};

/// One expression of a statement, from scalars over the lane variable to vectors. Uniform parts
/// stay scalar.
class LaneExpr {
 public:
  LaneExpr(LaneContext context, Simplifier& simplifier, VarMap& lets, const BufferMap& per_lane,
           const PartialBuffers& partial, const LaneScope& scope)
      : c_(std::move(context)),
        simplifier_(simplifier),
        lets_(lets),
        per_lane_(per_lane),
        partial_(partial),
        scope_(scope) {}

  Expr operator()(const Expr& e);
  /// An i64 index: a scalar, a ramp or a vector.
  Expr index(const Expr& e) { return (*this)(simplifier_.simplify(e)); }
  /// The index of an access, for buffers that each lane has of its own as well.
  Expr access_index(const Buffer& buffer, const Expr& e);
  Buffer access_buffer(const Buffer& buffer) const;

 private:
  Expr convert(const Expr& e);
  Expr as_ramp(const Expr& e);
  Expr safe_divisor(const Expr& divisor) const;
  bool in_bounds(const Buffer& buffer, const Expr& index);
  bool may_be_unwritten(const Buffer& buffer, const Expr& index);
  Expr convert_load(const Load& n);
  Expr convert_select(const Select& n);
  Expr side(const Expr& e, const Expr& condition);

  LaneContext c_;
  Simplifier& simplifier_;
  VarMap& lets_;
  const BufferMap& per_lane_;
  const PartialBuffers& partial_;
  const LaneScope& scope_;
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> memo_;  // the first keeps the node
};

}  // namespace tenon
