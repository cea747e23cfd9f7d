#pragma once
#include "arith/region.h"
#include "schedule/bounds_under_guards.h"

namespace tenon {

/// One dimension of the box that accesses under a loop touch: [min, min + extent), min over the
/// loops outside.
struct BoxDim {
  Affine min;
  Expr extent;         // constant unless the dimension is symbolic and taken whole
  bool whole = false;  // the whole dimension
};

/// A box of a buffer and the conditions (over the loops outside) under which it is touched at all.
struct LoopBox {
  std::vector<BoxDim> dims;
  std::vector<Expr> conditions;
};

std::vector<Expr> sides(const LoopBox& box);

/// Ranges of all loops that can occur in a stage's bindings.
Simplifier math_for(const StagePath& path);

/// Conjuncts of a guard that hold or fail for whole iterations of the loop before position
/// `first_inside`.
std::vector<Expr> outer_conditions(const Expr& guard, const StagePath& path, size_t first_inside,
                                   Simplifier& math);

/// Indices over the loops instead of the stage's axes.
std::vector<Expr> over_loops(const Stage& stage, std::vector<Expr> indices);

/// Index lists of the stage's loads of `buffer`, over the loops. Without `init` only those of the
/// values.
std::vector<std::vector<Expr>> loads_of(const Stage& stage, const Buffer& buffer, bool with_init);

/// Collects accesses from stages under one loop into the smallest box that is known to hold them
/// all. Dimensions of which too little is known are taken whole.
class BoxBuilder {
 public:
  explicit BoxBuilder(std::vector<Expr> shape) : shape_(std::move(shape)), dims_(shape_.size()) {}

  /// Accesses of a stage; loops of `path` from position `first_inside` on vary, the others are
  /// fixed.
  void add(const StagePath& path, size_t first_inside,
           const std::vector<std::vector<Expr>>& accesses);
  LoopBox finish() const;

 private:
  void add_index(size_t d, const Expr& index, const StagePath& path, size_t first_inside,
                 Simplifier& math, const Guards& guards);
  void join(size_t d, const Affine& min, int64_t extent);
  void take_whole(size_t d);

  std::vector<Expr> shape_;
  std::vector<std::optional<BoxDim>> dims_;
};

/// The box that a stage writes in one iteration of the loop before position `first_inside`, each
/// element of it at least once and nothing else, as far as the box lies inside the shape. Throws
/// Refusal where that cannot be proved.
LoopBox exact_box(const StagePath& path, size_t first_inside);

/// min + loop for each dimension, and the conditions that keep it inside [0, shape) where that is
/// not certain.
struct BoxAccess {
  std::vector<Expr> values;
  Expr guard;
};
BoxAccess access_box(const LoopBox& box, const std::vector<Expr>& loops,
                     const std::vector<Expr>& shape, Simplifier& math);

}  // namespace tenon
