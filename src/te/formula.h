#pragma once
#include <tenon/te/te.h>

namespace tenon {

/// The tensors that a finished formula computes, one per value.
std::vector<Tensor> tensors_of(Formula definition);

/// Whether the index of a scatter is proved to lie in [0, extent) at all points of the sources.
bool stays_inside(const Expr& index, const Expr& extent, const std::vector<Axis>& sources);

}  // namespace tenon
