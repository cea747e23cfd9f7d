#pragma once
#include <tenon/ir/program.h>
#include <tenon/runtime/array.h>
#include <tenon/target/target.h>

#include <string>
#include <vector>

#include "kernels/reference.h"

namespace tenon {

/// Iterations of all stages together.
double program_points(const Program& program);

/// Random inputs in the parameters' order: numbers in [-1, 1) or small integers, the same for a
/// seed.
std::vector<RefArray> random_inputs(const Program& program, uint64_t seed);

/// The first output, by the interpreter in race mode.
RefArray run_interpreted(const Program& program, const std::vector<RefArray>& inputs);
/// The first output, by machine code for `target`, every buffer against a guard page.
RefArray run_compiled(const Program& program, const std::vector<RefArray>& inputs,
                      const Target& target = Target::host());

/// Empty when shapes agree and |a - b| <= bound * (1 + |b|) everywhere (equal NaN and Inf), else
/// what differs first.
std::string difference(const RefArray& a, const RefArray& b, double bound);

}  // namespace tenon
