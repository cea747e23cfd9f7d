#pragma once
#include <tenon/ir/program.h>
#include <tenon/ir/visit.h>

#include <optional>
#include <string>
#include <vector>

#include "schedule/composites/unscheduled.h"

namespace tenon {

/// One dimension of a buffer that the anchor reads.
struct OperandDim {
  std::vector<size_t> axes;    ///< of the anchor, that move the index
  std::vector<int64_t> steps;  ///< what a step of each adds; 0: no constant
  int64_t extent = 0;          ///< of the buffer; 0: symbolic
};

/// A buffer that the anchor reads.
struct Operand {
  std::string buffer;
  DType dtype = DType::f32;
  bool constant = false;         ///< its contents are known ahead of the call
  bool computed = false;         ///< by another stage
  bool one_element = true;       ///< all loads of it are of the same element
  std::vector<OperandDim> dims;  ///< of all loads together
  double bytes() const;
  bool moves(size_t axis) const;
  /// The dimension along which the axis, of so many elements, goes from neighbour to neighbour, and
  /// all others that move it in whole multiples of that: it can be cut along the axis. Nothing
  /// where there is none, or the axis moves more than one.
  std::optional<size_t> dim_of(size_t axis, int64_t extent) const;
  /// Elements in memory that a step along the axis goes on by, where it moves the last dimension
  /// alone; else 0.
  int64_t step_in_rows(size_t axis) const;
  /// A step along the axis goes to the next element in memory.
  bool neighbours_along(size_t axis) const { return step_in_rows(axis) == 1; }
};

/// An unscheduled reduction of constant extents, as a sketch sees it. Axes are numbered as the
/// stage has them: the spatial ones, then the reductions.
struct AnchorNest {
  std::string stage, output;
  DType dtype = DType::f32;
  std::vector<LoopExtent> axes;
  size_t spatial = 0;  ///< so many of them
  std::vector<Operand> operands;

  bool is_reduction(size_t axis) const { return axis >= spatial; }
  std::optional<size_t> dim_of(const Operand& operand, size_t axis) const {
    return operand.dim_of(axis, axes[axis].extent);
  }
  /// Some operand does not move with it, and so is used again along it; or its windows overlap.
  bool reuses_along(size_t axis) const;
  size_t longest_reduction() const;
};

/// Nothing for a stage that is no reduction of a single value, or has no spatial axis, or has a
/// symbolic or empty extent, or combines in an order that may not be changed.
std::optional<AnchorNest> find_anchor_nest(const Program& program, const std::string& stage);

}  // namespace tenon
