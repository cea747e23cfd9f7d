#pragma once
#include <tenon/schedule/schedule.h>

#include <string>
#include <vector>

namespace tenon {

/// A copy of an operand in vectors of `width` along its dimension `dim`, which is not its last: the
/// rows are read in order, some elements of each at a time, and transposed in registers. `loops`
/// are those of the dimensions. Returns the loops outside of the transpositions.
///   for d: for k: for l: C(d, k, l) = x(d, k, l)   ->
///   for d.o: for k_l.o: for k_l.i unroll: for d.i vectorize: C(d.o * width + d.i, ..) = x(..)
std::vector<Loop> transpose_copy(Schedule& s, const std::string& copy, std::vector<Loop> loops,
                                 size_t dim, int64_t width);

}  // namespace tenon
