#pragma once
#include <unordered_map>
#include <unordered_set>

#include "codegen/llvm/codegen.h"

namespace tenon {

/// Where a global-scope Allocate lives in the workspace: [offset, offset + bytes) of the shared
/// part, or of each worker's part. Offsets are 64-byte aligned; siblings share bytes.
struct WorkspaceSlot {
  int64_t offset = 0;
  int64_t bytes = 0;
  bool per_worker = false;

  bool overlaps(const WorkspaceSlot& o) const {
    return per_worker == o.per_worker && offset < o.offset + o.bytes && o.offset < offset + bytes;
  }
};

/// What is decided on a flat program before the first LLVM value exists. Keys are nodes of that
/// program, which must outlive the plan.
struct CodePlan {
  WorkspaceBytes workspace;
  std::unordered_map<const BufferNode*, WorkspaceSlot> slots;
  std::unordered_map<const BufferNode*, int>
      register_lanes;  ///< width of the parts of a register buffer
  std::unordered_set<const For*> unrolled;
  std::vector<Var> dims;  ///< symbolic extents in the order of the `dims` argument
};

inline constexpr int64_t kMaxUnrolledIterations = 1024;
inline constexpr int64_t kMaxUnrolledInstructions = 6000;

/// UserError when a register buffer needs a loop unrolled that is too long (the message has the
/// numbers) or of unknown length, and for a temporary of unknown size.
CodePlan plan_code(const Program& flat);

/// True for buffers that live in registers on a CPU.
inline bool in_registers(const BufferNode& b) { return b.scope == Scope::reg; }

}  // namespace tenon
