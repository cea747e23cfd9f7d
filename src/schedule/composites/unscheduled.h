#pragma once
#include <tenon/ir/program.h>
#include <tenon/ir/visit.h>
#include <tenon/target/target.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon {

// What a program says before any step: the loops of a stage, what its elements read. Templates and
// sketches plan by it.

/// A loop of an unscheduled stage.
struct LoopExtent {
  std::string loop;
  int64_t extent = 0;
};

/// 1 where there is no such loop.
inline int64_t extent_of(const std::optional<LoopExtent>& loop) { return loop ? loop->extent : 1; }

/// The axes of an unscheduled stage and their loops, in the order they are written.
struct ConstantNest {
  std::vector<Var> vars;
  std::vector<LoopExtent> loops;
};

/// Nothing where the stage has other loops than its axes, or an extent is symbolic or 0.
std::optional<ConstantNest> constant_nest(const StagePath& path);

/// What is inside of all casts.
const Expr& without_casts(const Expr& e);

/// Is it a parameter that the program declares constant, and so may be packed ahead of time?
bool is_constant(const Program& program, const std::string& buffer);

/// Bytes of its elements; 0 where an extent is symbolic.
int64_t bytes_of(const BufferNode& b);

/// How far e moves when v grows by 1, for e = v or v * constant plus something that does not move;
/// else 0.
int64_t step_along(const Expr& e, const Var& v);

struct ReductionCount {
  int count = 0;
  bool chained = false;  ///< one reads what another gave, or what was computed from that
};
ReductionCount count_reductions(const Program& program);

/// Scans and scatters: what they do may not be done in another order.
bool keeps_order(const Program& program);

/// Vector registers that may be kept busy without spills.
int64_t registers_free(const Target& target);

}  // namespace tenon
