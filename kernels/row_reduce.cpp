#include "kernels/row_reduce.h"

#include <bit>

#include "kernels/axes.h"

namespace tenon {
namespace {

/// Enough for four vectors of accumulators, whose additions then do not wait for each other.
constexpr int64_t kMostLanes = 64, kPieces = 16;
constexpr int64_t kVeryLongRow = 1 << 15, kFewRows = 8;

}  // namespace

Tensor row_reduce(const std::string& name, const std::vector<Axis>& rest,
                  const std::shared_ptr<const Combiner>& combiner, int64_t extent,
                  const std::function<Expr(const Expr& k)>& element,
                  const std::vector<Axis>& further) {
  std::vector<Axis> over = further;
  if (extent <= kMostLanes && further.empty()) {
    const Axis k("k", extent);
    over.push_back(k);
    return compute(name, rest, reduce(combiner, {element(k)}, over));
  }
  const int64_t lanes = extent >= kMostLanes
                            ? kMostLanes
                            : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
  int64_t rows = 1;
  for (const Axis& axis : rest) rows *= as_int(axis.extent).value_or(1);
  const int64_t pieces = rows < kFewRows && extent >= kVeryLongRow ? kPieces : 1;
  const int64_t steps = (extent + lanes * pieces - 1) / (lanes * pieces);
  const Axis p("p", pieces), l("l", lanes), k("k", steps);
  Expr position = Expr(k) * int_imm(lanes) + Expr(l);
  if (pieces > 1) position = Expr(p) * int_imm(steps * lanes) + position;
  std::vector<Axis> part_axes = rest, last = {l};
  if (pieces > 1) {
    part_axes.push_back(p);
    last = {p, l};
  }
  part_axes.push_back(l);
  over.push_back(k);
  const Expr inside = steps * lanes * pieces == extent ? Expr() : position < int_imm(extent);
  const Tensor part =
      compute(name + ".part", part_axes, reduce(combiner, {element(position)}, over, {}, inside));
  return compute(name, rest, reduce(combiner, {part.at(indices_of(part_axes))}, last));
}

}  // namespace tenon
