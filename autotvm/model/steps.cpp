#include "autotvm/model/steps.h"

#include <tenon/ir/notes.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "autotvm/model/unit_work.h"

namespace tenon {
namespace {

constexpr double kLatency = 4;             // cycles of a multiply-add or an addition
constexpr double kEndCycles = 20;          // a loop's last branch is mispredicted
constexpr double kPredicted = 24;          // up to so many iterations it is not
constexpr double kUnrolledChunks = 8;      // vectors of a loop that nothing else unrolls
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

enum class Role : uint8_t { serial, unrolled, vector };

class StageModel {
 public:
  StageModel(const NestTree& tree, const NestStage& stage, const Target& target)
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
    for (size_t n = 0; n < stage.accesses.size(); ++n)
      places_.push_back(place_of(stage.accesses[n]));
    const NestAccess& result = stage.accesses.back();
    apart_ = places_.back().in_registers && stage.stage->combiner &&
             2 * distinct(result, extents_, true) * chunks(extents_) > target.vector_registers;
  }

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
  using Extent = std::array<double, kMaxDraftLoops>;
  struct Place {
    LaneOrder order = LaneOrder::one;
    bool in_registers = false;
    double across = 0;         ///< share of its vectors that lie across two lines
    bool interleaved = false;  ///< stores whose gaps an unrolled loop fills
    double stride = 1;         ///< of strided lanes
  };

  const NestLoop& loop(size_t l) const { return tree_.loops[static_cast<size_t>(stage_.path[l])]; }
  const NestBuffer& buffer(const NestAccess& a) const {
    return tree_.buffers[static_cast<size_t>(a.buffer)];
  }

  static bool moves(const NestAccess& a, size_t l) {
    return std::any_of(a.at.begin(), a.at.end(),
                       [&](const IndexForm& f) { return f.step[l] != 0 || f.data; });
  }
  bool picks_register(size_t l) const {
    return std::any_of(stage_.accesses.begin(), stage_.accesses.end(), [&](const NestAccess& a) {
      return buffer(a).in_registers() && buffer(a).level <= l && moves(a, l);
    });
  }

  void find_roles() {
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

  void find_lanes() {
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

  double chunks(const Extent& extents) const {
    if (vector_ < 0 || !chunks_unrolled_) return 1;
    return std::ceil(extents[static_cast<size_t>(vector_)] / lanes_);
  }
  /// Steps that the chunks of the vector loop take where they are a loop of their own.
  double chunk_loop(const Extent& extents) const {
    if (vector_ < 0 || chunks_unrolled_) return 1;
    return std::ceil(extents[static_cast<size_t>(vector_)] / lanes_);
  }

  /// Elements of memory that the access moves by when the loop goes on by one.
  double stride(const NestAccess& a, size_t l) const {
    double pitch = 1, moved = 0;
    for (size_t d = a.at.size(); d-- > 0;) {
      if (std::abs(a.at[d].step[l]) >= 1) moved += a.at[d].step[l] * pitch;
      pitch *= buffer(a).extents[d];
    }
    return moved;
  }

  Place place_of(const NestAccess& a) const {
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

  /// Of the vectors, those that begin within a line and end in the next one: every place that the
  /// loops bring them to is as likely.
  double share_across(const NestAccess& a) const {
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
      const double places =
          width / std::gcd(static_cast<int64_t>(rest), static_cast<int64_t>(width));
      aligned /= std::min(extents_[l], std::max(1.0, places));
    }
    if (buffer(a).parameter && std::fmod(at, width) != 0 && aligned == 1) aligned = 0;
    return (1 - aligned) * std::min(1.0, lanes_ * bytes_ / target_.cache_line_bytes);
  }

  /// Different places that the access reads while the unrolled loops run; `reduce`: those of
  /// reductions too.
  double distinct(const NestAccess& a, const Extent& extents, bool reduce) const {
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

  bool moves_with_innermost(const NestAccess& a) const {
    return innermost_ < 0 || moves(a, static_cast<size_t>(innermost_));
  }

  void add_load(Step& s, const NestAccess& a, const Place& p, const Extent& extents) const {
    if (p.in_registers) return;
    add_guard(s, a, p, extents);
    double n = loads_of(a, extents);
    if (!moves_with_innermost(a)) n /= extents_[static_cast<size_t>(innermost_)];
    const double vectors = n * chunks(extents);
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

  /// Loads of the access in a step, vectors as one.
  double loads_of(const NestAccess& a, const Extent& extents) const {
    if (!apart_) return distinct(a, extents, true);
    double n = distinct(a, extents, false);
    for (size_t l = 0; l < depth_; ++l)
      if (roles_[l] == Role::unrolled && reduce_[l] && moves(a, l)) n *= extents[l];
    return n;
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

  /// Vectors of an operand that wait in registers: those that the unrolled loops come back to run
  /// over in between, in the order of these loops.
  ///   for oc 2, for oh 14: Y[oc, oh, v] += X[oh, v] * W[oc]     ->   X 14, W 1
  double waiting(const NestAccess& a, const Place& p, const Extent& extents) const {
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

  const NestTree& tree_;
  const NestStage& stage_;
  const Target& target_;
  size_t depth_;
  Extent extents_{};
  std::array<Role, kMaxDraftLoops> roles_{};
  std::array<bool, kMaxDraftLoops> reduce_{}, partitioned_{};
  std::vector<Place> places_;
  int vector_ = -1, innermost_ = -1;
  double lanes_ = 1, used_lanes_ = 1, bytes_ = 4;
  bool chunks_unrolled_ = true;
  bool apart_ = false;  // code generation shares no load between steps of the reduction
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
