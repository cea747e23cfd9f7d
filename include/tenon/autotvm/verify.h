#pragma once
#include <tenon/compile/task.h>
#include <tenon/runtime/array.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tenon {

/// The arguments that a task is measured on: inputs that are the same numbers in every process for
/// a seed and never all zero (floats in [-1, 1), integers small or in the task's range), outputs
/// filled with the byte 0xff (NaN in every float type). UserError for symbolic extents without
/// sample sizes.
std::vector<Array> sample_arguments(const Task& task, uint64_t seed);

struct Comparison {
  bool passed = true;
  double error = 0;    ///< the largest difference as a share of the one allowed; NaN: not a number
  std::string reason;  ///< the worst element, in words
};

/// Compares the outputs among two lists of the task's arguments; the worst output counts. Integers
/// and booleans must be equal, NaN and infinities must stand where they are expected, other floats
/// may differ by what rounding explains (tolerance_factor in autotvm/measure/check.h).
Comparison compare_arguments(const Task& task, std::span<const Array> expected,
                             std::span<const Array> actual);

}  // namespace tenon
