#pragma once
#include <tenon/target/target.h>

#include <array>
#include <cmath>
#include <vector>

#include "autotvm/model/nests.h"

namespace tenon {

/// How the lanes of a vector lie in memory.
enum class LaneOrder : uint8_t {
  one,         ///< all lanes the same element
  contiguous,  ///< neighbours
  strided,     ///< every second .. fourth element
  transposed,  ///< far apart in a map whose unrolled loop runs along neighbours: squares turn
  gathered     ///< one by one
};

/// What code generation makes of the loops round a stage (serial, written out, lanes of vectors),
/// and how the stage's accesses lie to its lanes. What steps (steps.h) are counted from.
class StageLoops {
 public:
  StageLoops(const NestTree& tree, const NestStage& stage, const Target& target);

 protected:
  enum class Role : uint8_t { serial, unrolled, vector };
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
  static bool moves(const NestAccess& a, size_t l);
  bool moves_with_innermost(const NestAccess& a) const {
    return innermost_ < 0 || moves(a, static_cast<size_t>(innermost_));
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
  double stride(const NestAccess& a, size_t l) const;
  /// Different places that the access reads while the unrolled loops run; `reduce`: those of
  /// reductions too.
  double distinct(const NestAccess& a, const Extent& extents, bool reduce) const;
  /// Loads of the access in a step, vectors as one.
  double loads_of(const NestAccess& a, const Extent& extents) const;
  /// Vectors of an operand that wait in registers: those that the unrolled loops come back to run
  /// over in between, in the order of these loops.
  ///   for oc 2, for oh 14: Y[oc, oh, v] += X[oh, v] * W[oc]     ->   X 14, W 1
  double waiting(const NestAccess& a, const Place& p, const Extent& extents) const;

  /// Vectors that steps of a written-out reduction share and that no register keeps until they are
  /// needed again: code generation stores and reloads each.
  ///   for kw 3, for c 16, for ow 4: Y[ow] += X[ow+kw, c] * W[kw, c]   ->   of 64 values a kw
  ///   reads, the next one reads 48 again
  double read_again(const NestAccess& a, const Place& p, const Extent& extents) const;

  const NestTree& tree_;
  const NestStage& stage_;
  const Target& target_;
  size_t depth_;
  Extent extents_{};
  std::array<Role, kMaxDraftLoops> roles_{};
  std::array<bool, kMaxDraftLoops> reduce_{}, partitioned_{};
  std::vector<Place> places_;  // of the stage's accesses
  int vector_ = -1, innermost_ = -1;
  double lanes_ = 1, used_lanes_ = 1, bytes_ = 4;
  bool chunks_unrolled_ = true;
  bool apart_ = false;  // code generation shares no load between steps of the reduction

 private:
  bool picks_register(size_t l) const;
  void find_roles();
  void find_lanes();
  Place place_of(const NestAccess& a) const;
  /// Of the vectors, those that begin within a line and end in the next one: every place that the
  /// loops bring them to is as likely.
  double share_across(const NestAccess& a) const;
};

}  // namespace tenon
