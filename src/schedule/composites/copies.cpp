#include "schedule/composites/copies.h"

#include <tenon/ir/visit.h>

#include <algorithm>
#include <numeric>

#include "schedule/composites/nests.h"

namespace tenon {
namespace {

/// Elements of a row that are transposed at once, where the row is longer.
constexpr int64_t kLeastSteps = 16, kMostSteps = 48;
constexpr int64_t kPieceBytes = 16;  // a transposition reads each row in pieces of so many

/// Whole trailing dimensions, so that an element's place in the copy changes by as much with each
/// step, in whole pieces.
int64_t steps_of(const std::vector<int64_t>& extents, int64_t piece) {
  int64_t steps = piece, all = 1;
  for (size_t n = extents.size(); n-- > 0;) {
    all *= extents[n];
    if (n > 0 && std::lcm(all, piece) <= kMostSteps) steps = std::lcm(all, piece);
  }
  while (steps < kLeastSteps) steps *= 2;
  return std::min(steps, all);
}

int64_t piece_of(const Schedule& s, const std::string& stage) {
  for (const StagePath& path : stage_paths(s.program().body))
    if (path.stage->name == stage)
      return std::max<int64_t>(1, kPieceBytes / byte_size(path.stage->outputs[0]->dtype));
  return 1;
}

}  // namespace

std::vector<Loop> transpose_copy(Schedule& s, const std::string& copy, std::vector<Loop> loops,
                                 size_t dim, int64_t width) {
  std::vector<int64_t> extents;
  for (size_t n = dim + 1; n < loops.size(); ++n) extents.push_back(loop_extent(s, loops[n]));
  const auto [blocks, lanes] = s[copy].split(loops[dim], width);
  loops[dim] = blocks;
  std::vector<LoopRef> order(loops.begin(), loops.end());
  order.push_back(lanes);
  s[copy].reorder(order);
  Loop row = loops[dim + 1];
  for (size_t n = dim + 2; n < loops.size(); ++n) row = s[copy].fuse(row, loops[n]);
  std::vector<Loop> outer(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(dim) + 1);
  const int64_t steps = steps_of(extents, piece_of(s, copy));
  const auto [rest, step] = s[copy].split(row, steps);
  outer.push_back(rest);
  s[copy].unroll(step);
  s.try_apply(Vectorize{copy, lanes.name, Tail::mask});
  return outer;
}

}  // namespace tenon
