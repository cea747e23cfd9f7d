#pragma once
#include "arith/simplify.h"

namespace tenon {

// Which elements of a buffer one iteration of the outer loops touches: a box whose lower corner is
// an expression in the outer variables and whose sides are constants.

/// [min, min + extent) of one dimension; `min` speaks of outer variables only.
struct DimRegion {
  Expr min;
  int64_t extent = 1;
};
using Box = std::vector<DimRegion>;

/// All values of `index` while the variables of `inner` run over their ranges and all others stand
/// still. Never too small; exact for a linear index whose steps leave no gaps. Nothing when no
/// constant extent is known: the index depends on data or on an inner variable without range.
///   i.o*8 + i.i + 2, i.i in [0,8)            ->  min i.o*8 + 2, extent 8
///   (f.o*4 + f.i) // 6, f.i in [0,4)         ->  min f.o*2 // 3, extent 2
/// `facts` knows the ranges of the outer variables and learns those of the inner ones.
std::optional<DimRegion> region_of(const Expr& index, const VarRanges& inner, Simplifier& facts);

/// region_of each dimension; nothing when one of them has none.
std::optional<Box> box_of(const std::vector<Expr>& indices, const VarRanges& inner,
                          Simplifier& facts);

/// The smallest known region that holds both; nothing when no constant extent is known.
std::optional<DimRegion> unite(const DimRegion& a, const DimRegion& b, Simplifier& facts);
std::optional<Box> unite(const Box& a, const Box& b, Simplifier& facts);

/// What a statement does to one buffer.
struct Touched {
  bool any = false;
  /// Holds all elements touched; nothing when some dimension has no known region. A dimension of
  /// constant shape always has one: in doubt all of it.
  std::optional<Box> box;
};

/// All elements of `buffer` that `s` loads, or writes, while the loops inside `s` run and
/// everything outside stands still. In a stage, axes are replaced by their bindings; its guards are
/// ignored (the box may reach beyond the buffer where only a guard or a select keeps the access
/// inside). A reduction's own output counts as written.
Touched reads_of(const Stmt& s, const Buffer& buffer, Simplifier& facts);
Touched writes_of(const Stmt& s, const Buffer& buffer, Simplifier& facts);

}  // namespace tenon
