#pragma once
#include <tenon/ir/program.h>
#include <tenon/target/target.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Numbers of a scheduled loop tree in closed form, before it is lowered. Cycles and bytes are
/// those of the busiest core. "Main" is the stage that takes most cycles.
struct DraftFeatures {
  double instructions = 0;    ///< vector instructions of arithmetic
  double compute_cycles = 0;  ///< steps of all stages, as if all memory were the first cache
  double end_cycles = 0;      ///< to start and end innermost loops and accumulators
  double copy_cycles = 0;     ///< of stages that only copy: packing, padding
  double near_cycles = 0;     ///< to bring in what comes from beyond the first cache,
  double far_cycles = 0;      ///< from beyond the second,
  double memory_cycles = 0;   ///< and from beyond the third
  double turn_cycles = 0;     ///< to look up pages again
  double near_bytes = 0, far_bytes = 0, memory_bytes = 0;
  double fork_cycles = 0;    ///< to hand loops to the other cores
  double serial_cycles = 0;  ///< outside of parallel loops
  double balance = 1;        ///< mean over busiest core's work, by cycles
  double pieces = 0;         ///< iterations of the main stage's parallel loop; 0: none
  double vector_share = 0;   ///< of the points, those on vectors of more than one lane
  double tail_share = 0;     ///< of the main stage's lanes, those that do nothing useful
  double steps = 0;          ///< of the main stage
  double step_instructions = 0, step_ops = 0, step_loads = 0, step_stores = 0;  ///< main stage
  double loads_per_op = 0;                                                      ///< main stage
  double broadcasts = 0, contiguous = 0, strided = 0, transposed = 0, gathered = 0, split = 0;
  double accumulators = 0, registers = 0, spilled = 0, chain = 0;  ///< of the main stage
  double workspace_bytes = 0;                                      ///< of all threads
  double allocations = 0;  ///< buffers made inside loops, each time
  double stages = 0;

  /// Values in the order of names(); sizes as log2(1 + x).
  std::vector<float> vector() const;
  static std::vector<std::string_view> names();
};

/// What a schedule is expected to cost.
struct Draft {
  double cycles = 0;  ///< of the busiest core; only the order of drafts counts
  DraftFeatures features;
  /// Why the schedule cannot be good; a short text, the same for all of a kind, to be counted.
  std::optional<std::string> hopeless;
};

/// Scores a scheduled loop tree for so many threads, in a few microseconds a stage. Symbolic
/// extents count at `sizes` by name.
///
/// For each stage: the steps of its innermost loop by what bounds them (arithmetic, loads, stores,
/// latency), beside what comes from each cache by footprints of the loops round it; stages follow
/// one another.
Draft draft(const Program& scheduled, const Target& target, int threads,
            const std::map<std::string, int64_t>& sizes = {});

}  // namespace tenon
