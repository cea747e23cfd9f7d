#pragma once
#include <tenon/autotvm/verify.h>
#include <tenon/runtime/module.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

using InputRanges = std::map<std::string, std::pair<int64_t, int64_t>>;

/// The inputs that a task is measured on: the same numbers in every process for a seed, never all
/// zero (floats in [-1, 1), integers small, or in the range given for the name).
Array task_input(const Parameter& parameter, size_t position, uint64_t seed,
                 const InputRanges& ranges);

/// The task's program at its sample sizes: without symbolic extents. UserError when a symbol has no
/// sample size or one outside of its range.
Program sample_program(const Task& task);

/// Parameters of a program with constant shapes. UserError for a symbolic extent.
std::vector<Parameter> constant_parameters(const Program& program);

/// Its extents. InternalError for a symbolic one.
Shape constant_shape(const Parameter& parameter);

/// Byte offset of each parameter in a memory that holds them all, and the total at the end.
std::vector<int64_t> argument_offsets(const std::vector<Parameter>& parameters);

/// Executed statements of the unscheduled program: points of all stages, reductions included.
double points_of(const Program& program);

/// The factor f of what two right computations of a float output may differ by, element by element:
/// |actual - expected| <= f * max(|expected|, rms of the output).
///
/// f = 32 * eps * sqrt(16 + n), where n is the number of values that reductions join for one output
/// element and eps the rounding unit of the coarsest float type stored. Errors of n roundings grow
/// like sqrt(n) (Higham and Mary 2019, a probabilistic bound, sharp for random inputs); 16 stands
/// for a handful of roundings and the stated error of the polynomials for exp and its like.
double tolerance_factor(const Program& unscheduled);

/// Root of the mean square of the finite elements; 0 for integers and booleans.
double output_rms(const Array& expected);

/// Integers and booleans must be equal; floats as tolerance_factor() says, with rms from
/// output_rms(expected); NaN and infinities must stand where they are expected.
Comparison compare_output(const std::string& name, const Array& expected, const Array& actual,
                          double factor, double rms);
inline Comparison compare_output(const std::string& name, const Array& expected,
                                 const Array& actual, double factor) {
  return compare_output(name, expected, actual, factor, output_rms(expected));
}

}  // namespace tenon
