#include "autotvm/model/steps.h"

#include <algorithm>
#include <cmath>

#include "autotvm/model/unit_work.h"

namespace tenon {
namespace {

constexpr double kLatency = 4;             // cycles of a multiply-add or an addition
constexpr double kEndCycles = 20;          // a loop's last branch is mispredicted
constexpr double kPredicted = 24;          // up to so many iterations it is not
constexpr double kTurnShuffles = 5;        // for a vector of a square that is turned
constexpr double kLaneCycles = 1;          // to put one lane into, or take it out of a vector
constexpr double kHorizontalLatency = 4;   // for each halving of the lanes
constexpr double kFunctionRegisters = 16;  // constants and steps of an elementary function
constexpr double kHorizontalOps = 8;       // to combine the lanes of a vector

constexpr double kConditionScalars = 4;  // to work out whether a load is inside
constexpr double kChoiceScalars = 5;     // to choose a load's address by a flag
constexpr double kSpillCost = 2;         // stores and loads for each register there is not
// What does not go on beside the rest: of loads of vectors, of elements for all lanes, of vectors
// across two lines, and of the shorter of arithmetic and stores.
constexpr double kVectorLoad = 0.13, kElementLoad = 0.05, kSplitLoad = 0.4, kStoreShare = 0.5;

class StageModel : private StageLoops {
 public:
  StageModel(const NestTree& tree, const NestStage& stage, const Target& target)
      : StageLoops(tree, stage, target) {}

  StageWork work(const Sharing& sharing) {
    StageWork w;
    w.lanes = static_cast<int>(lanes_);
    double serial = 1, points = 1;
    for (size_t l = 0; l < depth_; ++l) {
      const double share = l == sharing.loop ? sharing.share : 1;
      points *= extents_[l] * share;
      if (roles_[l] == Role::serial) serial *= extents_[l] * share;
    }
    w.full = step(extents_);
    const double full = cycles_of(w.full);
    double useful = 1, lanes_used = 0;
    each_tail(0, 1, extents_, [&](double share, const Extent& extents) {
      const Step s = step(extents);
      const double cycles = share * serial * cycles_of(s) * chunk_loop(extents);
      w.cycles += cycles;
      w.instructions += share * serial * s.ops * chunk_loop(extents);
      lanes_used += share * serial * s.vectors * lanes_ * chunk_loop(extents);
    });
    for (const NestAxis& a : stage_.axes)
      if (a.form.span[0] + 1 > a.extent) useful *= a.extent / (a.form.span[0] + 1.0);
    w.steps = full > 0 ? w.cycles / full : 0;
    w.points = points * useful;
    w.wasted = std::clamp(1 - w.points / std::max(lanes_used, 1.0), 0.0, 1.0);
    add_ends(w, serial);
    add_horizontal(w, serial);
    add_init(w, sharing);
    return w;
  }

 private:
  void add_load(Step& s, const NestAccess& a, const Place& p, const Extent& extents) const {
    if (p.in_registers) return;
    add_guard(s, a, p, extents);
    double n = loads_of(a, extents);
    if (!moves_with_innermost(a)) n /= extents_[static_cast<size_t>(innermost_)];
    const double vectors = n * chunks(extents), again = read_again(a, p, extents);
    s.contiguous += again;
    s.stores += again;
    if (p.order != LaneOrder::one) s.ops += n * masked_chunks(extents);
    switch (p.order) {
      case LaneOrder::one:
        s.broadcasts += n;
        break;
      case LaneOrder::contiguous:
        s.contiguous += vectors;
        s.split += vectors * p.across;
        break;
      case LaneOrder::strided:
        s.strided += vectors * p.stride;
        s.shuffles += vectors * (p.stride - 1);
        break;
      case LaneOrder::transposed:
        s.transposed += vectors;
        s.shuffles += vectors * kTurnShuffles;
        break;
      case LaneOrder::gathered:
        s.gathered += vectors * used_lanes_;
        s.shuffles += vectors * used_lanes_ * kLaneCycles;
        break;
    }
  }

  /// Of the vectors of the vector loop those of which some lanes lie outside: they are loaded and
  /// blended with zeros, in two instructions.
  double masked_chunks(const Extent& extents) const {
    return std::fmod(extents[static_cast<size_t>(vector_)], lanes_) != 0 ? 1 : 0;
  }

  /// A comparison is worked out for each step that it differs in, and for each copy of the body in
  /// which it may hold or not: all where lanes differ, else those at the ends of what the unrolled
  /// loops run over. Lanes that differ take a mask to each load; where they are alike, each load
  /// chooses its address and makes its mask of a flag. Where a loop is cut at its ends, the rest
  /// has no guard.
  void add_guard(Step& s, const NestAccess& a, const Place& p, const Extent& extents) const {
    bool masked = false, chosen = false;
    for (const IndexForm& guard : a.guards) {
      double copies = 1, serial_span = 0;
      bool varies = false, cut = a.guards_cut;
      for (size_t l = 0; l < depth_; ++l) {
        if (guard.step[l] == 0) continue;
        cut = cut || partitioned_[l];
        if (roles_[l] == Role::unrolled) copies *= extents[l];
        if (roles_[l] == Role::serial) serial_span += std::abs(guard.step[l]) * (extents[l] - 1);
        varies = varies || roles_[l] != Role::serial || static_cast<int>(l) == innermost_;
      }
      const bool lanes = vector_ >= 0 && guard.step[static_cast<size_t>(vector_)] != 0;
      if (!varies || (cut && !lanes)) continue;
      const double open = lanes ? copies : std::min(copies, std::max(serial_span, 1.0));
      double comparisons = open * (lanes ? chunks(extents) : 1);
      if (innermost_ >= 0 && guard.step[static_cast<size_t>(innermost_)] == 0)
        comparisons /= extents_[static_cast<size_t>(innermost_)];
      if (lanes) {  // indices are of eight lanes each
        const double eights = std::ceil(lanes_ / 8);
        s.ops += (2 * eights + 2) * comparisons;
        s.shuffles += (eights + 2) * comparisons;
      } else {
        s.scalars += kConditionScalars * comparisons;
      }
      masked = masked || lanes;
      chosen = chosen || !lanes;
    }
    const double loads = loads_of(a, extents);
    if (masked) s.ops += loads * chunks(extents);
    if (!chosen || masked) return;
    const bool element = p.order == LaneOrder::one;
    const double vectors = element ? loads : loads * chunks(extents);
    s.scalars += kChoiceScalars * vectors;
    s.ops += vectors;
    s.shuffles += vectors * (element ? 2 : 1);  // the flag becomes a mask; element to all lanes
  }

  /// The result of a map, or of a reduction that is not kept in registers while the innermost loop
  /// runs: then it is read as well.
  void add_store(Step& s, const NestAccess& a, const Place& p, const Extent& extents) const {
    const bool sums = stage_.stage->combiner != nullptr;
    const bool kept = sums && (p.in_registers || !moves_with_innermost(a));
    const double n = distinct(a, extents, true);
    const bool lanes_combined = vector_ >= 0 && reduce_[static_cast<size_t>(vector_)];
    const double vectors = n * (lanes_combined ? 1 : chunks(extents));
    if (kept) s.accumulators += vectors;
    if (p.in_registers) return;
    const double often =
        kept && innermost_ >= 0 ? 1 / extents_[static_cast<size_t>(innermost_)] : 1;
    if (p.order == LaneOrder::one || p.order == LaneOrder::contiguous) {
      s.stores += vectors * often * (1 + p.across);
      if (!sums) return;
      (p.order == LaneOrder::one ? s.broadcasts : s.contiguous) += vectors * often;
      s.split += vectors * often * p.across;
    } else if (p.interleaved) {
      s.stores += vectors;
      s.shuffles += vectors * std::log2(p.stride);
    } else {
      s.scattered += vectors * used_lanes_ * often * (sums ? 2 : 1);
      s.shuffles += vectors * used_lanes_ * often * kLaneCycles;
    }
  }

  void add_registers(Step& s, const Extent& extents) const {
    if (s.accumulators == 0) return;
    s.registers = s.accumulators;
    for (size_t n = 0; n < places_.size(); ++n) {
      const NestAccess& a = stage_.accesses[n];
      if (!a.store && !places_[n].in_registers) s.registers += waiting(a, places_[n], extents);
    }
    const double more = stage_.ops.functions > 0 ? kFunctionRegisters : 0;
    const double over = s.registers + more - target_.vector_registers;
    s.contiguous += std::clamp(over, 0.0, more) * s.vectors;  // constants, read by each vector
    s.spilled = std::max(0.0, s.registers - target_.vector_registers);
    if (s.spilled == 0) return;
    double reduce = 1;
    for (size_t l = 0; l < depth_; ++l)
      if (roles_[l] == Role::unrolled && reduce_[l]) reduce *= extents[l];
    s.contiguous += kSpillCost * s.spilled * reduce;
    s.stores += kSpillCost * s.spilled * reduce;
  }

  Step step(const Extent& extents) const {
    Step s;
    const double chunks = this->chunks(extents);
    double unrolled = 1, reduce = 1;
    for (size_t l = 0; l < depth_; ++l) {
      if (roles_[l] != Role::unrolled) continue;
      unrolled *= extents[l];
      if (reduce_[l]) reduce *= extents[l];
    }
    s.vectors = unrolled * chunks;
    const PointOps& ops = stage_.ops;
    s.ops = s.vectors * (ops.simple + ops.functions + ops.masks);
    const double width = lanes_ * bytes_ / 64;
    s.divide_cycles = s.vectors * ops.divisions * std::max(4.0, 16 * width);
    for (size_t n = 0; n < places_.size(); ++n) {
      const NestAccess& a = stage_.accesses[n];
      if (!a.store) add_load(s, a, places_[n], extents);
    }
    for (size_t n = 0; n < places_.size(); ++n)
      if (stage_.accesses[n].store) add_store(s, stage_.accesses[n], places_[n], extents);
    if (stage_.stage->combiner) {
      s.chain = reduce;
      if (vector_ >= 0 && reduce_[static_cast<size_t>(vector_)]) {
        s.shuffles += s.vectors * kHorizontalOps / 2;
        s.ops += s.vectors * kHorizontalOps / 2;
        s.chain *= chunks;
      }
    }
    add_registers(s, extents);
    return s;
  }

  /// Calls f(share of the steps, extents) for whole tiles and each rest of an axis that its loops
  /// overshoot.
  template <class F>
  void each_tail(size_t axis, double share, const Extent& extents, const F& f) const {
    while (axis < stage_.axes.size() &&
           stage_.axes[axis].form.span[0] + 1 <= stage_.axes[axis].extent)
      ++axis;
    if (axis == stage_.axes.size()) return f(share, extents);
    const NestAxis& a = stage_.axes[axis];
    const double covered = a.form.span[0] + 1.0;
    double width = 1;  // of the axis in a step
    for (size_t l = 0; l < depth_; ++l)
      if (roles_[l] != Role::serial) width += std::abs(a.form.step[l]) * (extents[l] - 1);
    const double tiles = std::max(1.0, std::floor(covered / width + 0.5)),
                 full = std::floor(a.extent / width), rest = a.extent - full * width;
    if (full > 0) each_tail(axis + 1, share * std::min(1.0, full / tiles), extents, f);
    if (rest <= 0 || full >= tiles) return;
    Extent small = extents;
    double left = rest;
    for (size_t l = 0; l < depth_; ++l) {  // outer loops of the tile run less often
      const double step = std::abs(a.form.step[l]);
      if (roles_[l] == Role::serial || step == 0) continue;
      const double most = std::clamp(std::ceil(left / step), 1.0, extents[l]);
      small[l] = most;
      left = std::min(left, most * step);
    }
    each_tail(axis + 1, share / tiles, small, f);
  }

  void add_ends(StageWork& w, double serial) const {
    if (innermost_ < 0) return;
    const double runs = extents_[static_cast<size_t>(innermost_)] * chunk_loop(extents_);
    w.ends =
        serial / extents_[static_cast<size_t>(innermost_)] * (runs > kPredicted ? kEndCycles : 2);
  }

  /// Who needs one number of all lanes, alone in an iteration of a loop, waits for all halvings.
  void add_horizontal(StageWork& w, double serial) const {
    if (vector_ < 0 || !reduce_[static_cast<size_t>(vector_)]) return;
    const size_t level = buffer(stage_.accesses.back()).level;
    for (size_t l = level; l < depth_; ++l)
      if (!reduce_[l]) return;
    if (level > 0) w.ends += serial * kHorizontalLatency * std::log2(lanes_);
  }

  /// The nest that starts the elements stands above the outermost reduction loop.
  void add_init(StageWork& w, const Sharing& sharing) const {
    if (stage_.stage->init.empty() || !stage_.stage->combiner) return;
    double vectors = 1;
    for (size_t l = 0; l < depth_; ++l) {
      if (reduce_[l] && l >= stage_.init_level) continue;
      const double n = roles_[l] == Role::vector ? std::ceil(extents_[l] / lanes_) : extents_[l];
      vectors *= n * (l == sharing.loop ? sharing.share : 1);
    }
    w.init = vectors * (places_.back().in_registers ? 0.5 : 1);
  }
};

}  // namespace

double cycles_of(const Step& s) {
  const double elements = s.broadcasts + s.gathered, vectors = s.loads() - elements;
  const double arithmetic = std::max(s.ops / 2 + s.divide_cycles, s.shuffles);
  const double loads = s.loads() + s.split;
  const double stores = s.stores + s.scattered;
  return std::max({arithmetic, loads / 2, stores, s.instructions() / 5, s.chain * kLatency, 1.0}) +
         kVectorLoad * vectors + kElementLoad * elements + kSplitLoad * s.split +
         kStoreShare * std::min(arithmetic, stores);
}

StageWork work_of(const NestTree& tree, const NestStage& stage, const Sharing& sharing,
                  const Target& target) {
  if (const auto on_tiles = unit_work_of(tree, stage, sharing)) return *on_tiles;
  return StageModel(tree, stage, target).work(sharing);
}

}  // namespace tenon
