#pragma once
#include <tenon/ir/program.h>

#include <map>
#include <string>
#include <vector>

#include "autotvm/model/forms.h"

namespace tenon {

// A loop tree as numbers: what the draft score looks at, taken down in one walk.

/// A loop of more than one iteration; nest 0 stands for the whole program, run once.
struct NestLoop {
  const For* loop = nullptr;
  double extent = 1;
  int parent = -1;
  size_t level = 0;  ///< loops from the outermost down to this one: 1 for an outermost loop
};

/// Memory with a name. Extents are those of the storage, its layout counted in; of a buffer inside
/// the program only the box that is in use.
struct NestBuffer {
  const BufferNode* node = nullptr;
  std::vector<double> extents;
  double element_bytes = 4;
  size_t level = 0;  ///< loops round its Allocate; 0 for parameters as well
  bool parameter = false;
  bool in_registers() const { return node->scope == Scope::reg; }
  double bytes() const;
};

/// What a point of a stage computes on vectors, beside loads and stores.
struct PointOps {
  double simple = 0;     ///< arithmetic of one instruction
  double functions = 0;  ///< elementary functions, in instructions
  double divisions = 0;  ///< and square roots
  double masks = 0;      ///< choices that depend on data
  bool fused = false;    ///< one of the simple ones is a multiply-add
};

/// A load or store of a stage: where in the storage, over the loops of the stage's path.
struct NestAccess {
  int buffer = 0;
  bool store = false;
  std::vector<IndexForm> at;      ///< one a storage dimension
  std::vector<IndexForm> guards;  ///< what the comparisons speak of that it is read under
  bool guards_cut = false;        ///< lowering cuts loops until they hold, but for those of lanes
  bool data() const;              ///< its place depends on what was loaded
};

/// What bounds a loop: an axis of the stage of which the loops cover more than there is.
struct NestAxis {
  IndexForm form;
  double extent = 1;
  bool reduce = false;
};

/// A stage and the loops round it that have more than one iteration.
struct NestStage {
  const Stage* stage = nullptr;
  std::vector<int> path;  ///< loops from the outside in
  std::vector<NestAxis> axes;
  std::vector<NestAccess> accesses;  ///< loads in order of appearance, then stores
  PointOps ops;
  size_t init_level = 0;  ///< loops outside of its first reduction loop
  bool guarded = false;
};

struct NestTree {
  Program program;  ///< keeps alive what the others point to
  std::vector<NestLoop> loops;
  std::vector<NestBuffer> buffers;
  std::vector<NestStage> stages;  ///< in program order
  bool too_deep = false;          ///< a stage has more than kMaxDraftLoops loops: it is left out
};

/// Symbolic extents count at `sizes` by name, else at their greatest, but no more than 1024.
NestTree nests_of(const Program& program, const std::map<std::string, int64_t>& sizes);

}  // namespace tenon
