#pragma once
#include <tenon/ir/intrinsic.h>
#include <tenon/target/target.h>

#include <set>
#include <unordered_map>

namespace tenon {

/// Lanes that each vectorised loop in `body` runs on, by its variable: those of the widest element
/// type stored inside it, no more than the next power of two of its extent; loops that share a
/// register buffer agree.
struct LanePlan {
  std::unordered_map<const VarNode*, int> lanes;
  /// Loops whose variable picks elements of a register buffer: their chunks must start at whole
  /// vectors.
  std::unordered_map<const VarNode*, bool> in_registers;
  /// Register buffers along which vectorised loops run over different ranges: what is past the end
  /// of one loop is not padding for all. Asked for membership only.
  std::set<const BufferNode*> uneven;
};
/// Whether the target has all that the implementation needs.
bool runs_on(const IntrinsicImplementation& code, const Target& target);

LanePlan plan_lanes(const Stmt& body, const Target& target);

}  // namespace tenon
