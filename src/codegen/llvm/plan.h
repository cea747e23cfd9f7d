#pragma once
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "codegen/llvm/codegen.h"

namespace tenon {

/// Where a global-scope Allocate lives in the workspace: [offset, offset + bytes) of the shared
/// part, or of each worker's part. Offsets are 64-byte aligned; siblings share bytes. Both are
/// numbers, or expressions of the symbolic extents.
struct WorkspaceSlot {
  Expr offset, bytes;
  bool per_worker = false;
  std::set<const BufferNode*> around;  // buffers it lies inside: their bytes are others
};

/// What is decided on a flat program before the first LLVM value exists. Keys are nodes of that
/// program, which must outlive the plan.
struct CodePlan {
  Expr shared_bytes, bytes_per_worker;  ///< of the workspace
  std::unordered_map<const BufferNode*, WorkspaceSlot> slots;
  std::unordered_map<const BufferNode*, int>
      register_lanes;  ///< width of the parts of a register buffer
  std::unordered_set<const For*> unrolled;
  std::vector<Var> dims;  ///< symbolic extents in the order of the `dims` argument

  /// Whether the workspace depends on the symbolic extents.
  bool symbolic_workspace() const;
  /// Whether two buffers may have bytes in common; false where one is no workspace buffer.
  bool may_overlap(const BufferNode* a, const BufferNode* b) const;
};

inline constexpr int64_t kMaxUnrolledIterations = 1024;
inline constexpr int64_t kMaxUnrolledInstructions = 6000;

/// UserError when a register buffer needs a loop unrolled that is too long (the message has the
/// numbers) or of unknown length. `reuse_workspace` false: no two temporaries share memory.
CodePlan plan_code(const Program& flat, bool reuse_workspace = true);

/// True for buffers that live in registers on a CPU.
inline bool in_registers(const BufferNode& b) { return b.scope == Scope::reg; }

}  // namespace tenon
