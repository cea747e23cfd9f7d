#pragma once
#include <tenon/ir/program.h>

#include <vector>

namespace tenon {

/// Positions of two parameters.
struct InPlacePair {
  size_t input = 0, output = 0;
};

/// Inputs and outputs that may be one array at a call, because each element of the input is read
/// only where the same element of the output is written, once, and nothing reads the output:
///   for i: out[i] = x[i] + b[0]          ->   {x, out}
///   for i: out[i] = x[i] + x[i - 1]      ->   nothing: an earlier iteration has replaced x[i - 1]
/// Proved on the scheduled tree; what is not proved is left out, and the call is refused.
std::vector<InPlacePair> in_place_pairs(const Program& loop_tree);

}  // namespace tenon
