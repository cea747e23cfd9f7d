#include "autotvm/model/stage_loops.h"

#include <tenon/ir/notes.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace tenon {
namespace {

constexpr double kUnrolledChunks = 8;    // vectors of a loop that nothing else unrolls
constexpr double kWorkingRegisters = 2;  // of what is loaded last

}  // namespace

StageLoops::StageLoops(const NestTree& tree, const NestStage& stage, const Target& target)
    : tree_(tree), stage_(stage), target_(target), depth_(stage.path.size()) {
  for (size_t l = 0; l < depth_; ++l) {
    extents_[l] = loop(l).extent;
    partitioned_[l] = (l > 0 && partitioned_[l - 1]) ||
                      loop(l).loop->notes.count(std::string(kPartitionNote)) > 0;
  }
  find_roles();
  find_lanes();
  for (const NestAxis& axis : stage.axes)
    for (size_t l = 0; l < depth_; ++l)
      if (axis.reduce && axis.form.step[l] != 0) reduce_[l] = true;
  for (size_t n = 0; n < stage.accesses.size(); ++n) places_.push_back(place_of(stage.accesses[n]));
  const NestAccess& result = stage.accesses.back();
  apart_ = places_.back().in_registers && stage.stage->combiner &&
           2 * distinct(result, extents_, true) * chunks(extents_) > target.vector_registers;
}

bool StageLoops::moves(const NestAccess& a, size_t l) {
  return std::any_of(a.at.begin(), a.at.end(),
                     [&](const IndexForm& f) { return f.step[l] != 0 || f.data; });
}

bool StageLoops::picks_register(size_t l) const {
  return std::any_of(stage_.accesses.begin(), stage_.accesses.end(), [&](const NestAccess& a) {
    return buffer(a).in_registers() && buffer(a).level <= l && moves(a, l);
  });
}

void StageLoops::find_roles() {
  bool inside = true;
  for (size_t l = depth_; l-- > 0;) {
    const LoopMark mark = loop(l).loop->mark;
    if (makes_lanes(mark) && vector_ < 0) {
      roles_[l] = Role::vector;
      vector_ = static_cast<int>(l);
    } else if (inside && (mark == LoopMark::unroll || makes_lanes(mark) || picks_register(l))) {
      roles_[l] = Role::unrolled;
    } else {
      roles_[l] = Role::serial;
      if (inside) innermost_ = static_cast<int>(l);
      inside = false;
    }
  }
}

void StageLoops::find_lanes() {
  if (vector_ < 0) return;
  const double extent = extents_[static_cast<size_t>(vector_)];
  const auto whole = std::bit_ceil(static_cast<uint64_t>(std::max(extent, 1.0)));
  DType widest = stage_.stage->outputs[0]->dtype;
  for (const Buffer& b : stage_.stage->outputs)
    if (byte_size(b->dtype) > byte_size(widest)) widest = b->dtype;
  lanes_ = std::min(static_cast<double>(target_.lanes(widest)), static_cast<double>(whole));
  bytes_ = byte_size(widest);
  used_lanes_ = extent / std::ceil(extent / lanes_);
  const bool kept = picks_register(static_cast<size_t>(vector_));
  chunks_unrolled_ = kept || std::ceil(extent / lanes_) <= kUnrolledChunks;
}

double StageLoops::stride(const NestAccess& a, size_t l) const {
  double pitch = 1, moved = 0;
  for (size_t d = a.at.size(); d-- > 0;) {
    if (std::abs(a.at[d].step[l]) >= 1) moved += a.at[d].step[l] * pitch;
    pitch *= buffer(a).extents[d];
  }
  return moved;
}

StageLoops::Place StageLoops::place_of(const NestAccess& a) const {
  Place p;
  p.in_registers = buffer(a).in_registers();
  if (vector_ < 0) return p;
  const double along = std::abs(stride(a, static_cast<size_t>(vector_)));
  if (a.data()) {
    p.order = LaneOrder::gathered;
  } else if (along == 1) {
    p.order = LaneOrder::contiguous;
    p.across = share_across(a);
  } else if (along > 1) {
    p.order = LaneOrder::gathered;
    p.stride = along;
    if (along <= 4) p.order = LaneOrder::strided;
    const bool map = stage_.stage->combiner == nullptr;
    for (size_t l = 0; map && along > 4 && l < depth_; ++l)
      if (roles_[l] == Role::unrolled && extents_[l] >= 4 && std::abs(stride(a, l)) == 1)
        p.order = LaneOrder::transposed;
    for (size_t l = 0; map && a.store && l < depth_; ++l)
      if (roles_[l] == Role::unrolled && extents_[l] == along && std::abs(stride(a, l)) == 1)
        p.interleaved = true;
  }
  return p;
}

double StageLoops::share_across(const NestAccess& a) const {
  const double line = target_.cache_line_bytes / buffer(a).element_bytes;
  const double width = std::min(line, lanes_);
  double at = 0, pitch = 1, aligned = 1;
  for (size_t d = a.at.size(); d-- > 0;) {
    at += a.at[d].constant * pitch;
    pitch *= buffer(a).extents[d];
  }
  for (size_t l = 0; l < depth_; ++l) {
    const double rest = std::fmod(std::abs(stride(a, l)), width);
    if (static_cast<int>(l) == vector_ || rest == 0) continue;
    const double places = width / std::gcd(static_cast<int64_t>(rest), static_cast<int64_t>(width));
    aligned /= std::min(extents_[l], std::max(1.0, places));
  }
  if (buffer(a).parameter && std::fmod(at, width) != 0 && aligned == 1) aligned = 0;
  return (1 - aligned) * std::min(1.0, lanes_ * bytes_ / target_.cache_line_bytes);
}

double StageLoops::distinct(const NestAccess& a, const Extent& extents, bool reduce) const {
  double all = 1, box = 1;
  for (size_t l = 0; l < depth_; ++l)
    if (roles_[l] == Role::unrolled && (reduce || !reduce_[l]) && moves(a, l)) all *= extents[l];
  if (all == 1) return 1;
  for (const IndexForm& f : a.at) {
    double width = 1;
    for (size_t l = 0; l < depth_; ++l)
      if (roles_[l] == Role::unrolled && (reduce || !reduce_[l]))
        width += std::abs(f.step[l]) * (extents[l] - 1);
    box *= f.data ? all : std::floor(width);
  }
  return std::min(all, box);
}

double StageLoops::loads_of(const NestAccess& a, const Extent& extents) const {
  if (!apart_) return distinct(a, extents, true);
  double n = distinct(a, extents, false);
  for (size_t l = 0; l < depth_; ++l)
    if (roles_[l] == Role::unrolled && reduce_[l] && moves(a, l)) n *= extents[l];
  return n;
}

double StageLoops::waiting(const NestAccess& a, const Place& p, const Extent& extents) const {
  const double chunks = this->chunks(extents);
  const bool vectors = p.order != LaneOrder::one;
  bool again = !vectors && chunks > 1;  // the chunks of the vector loop are innermost
  double inside = vectors ? chunks : 1, most = again ? 1 : 0;
  for (size_t l = depth_; l-- > 0;) {
    if (roles_[l] != Role::unrolled || reduce_[l] || extents[l] == 1) continue;
    if (moves(a, l))
      inside *= extents[l];
    else
      most = std::max(most, inside);
  }
  return std::min(most, distinct(a, extents, false) * (vectors ? chunks : 1));
}

double StageLoops::read_again(const NestAccess& a, const Place& p, const Extent& extents) const {
  if (apart_ || p.in_registers || !stage_.stage->combiner) return 0;
  const double whole = distinct(a, extents, true);
  double uses = 1;
  for (size_t l = 0; l < depth_; ++l)
    if (roles_[l] == Role::unrolled && moves(a, l)) uses *= extents[l];
  if (uses == whole) return 0;
  const double chunks = p.order == LaneOrder::one ? 1 : this->chunks(extents);
  const double sums = distinct(stage_.accesses.back(), extents, true) * this->chunks(extents);
  const double free = target_.vector_registers - sums - kWorkingRegisters;
  Extent inner = extents;  // of one iteration of the loops looked at so far
  for (size_t l = 0; l < depth_; ++l)
    if (roles_[l] == Role::unrolled) inner[l] = 1;
  double again = 0;
  for (size_t l = depth_; l-- > 0;) {
    if (roles_[l] != Role::unrolled) continue;
    const double once = distinct(a, inner, true);
    inner[l] = extents[l];
    if (!reduce_[l] || extents[l] == 1 || !moves(a, l)) continue;
    const double all = distinct(a, inner, true), shared = once * extents[l] - all;
    if (shared / (extents[l] - 1) * chunks <= free) continue;
    again += shared * chunks * whole / all;
  }
  return again;
}

}  // namespace tenon
