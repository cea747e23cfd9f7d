#pragma once
#include <tenon/ir/intrinsic.h>

#include "kernels/blocked_conv.h"
#include "kernels/contraction.h"

namespace tenon {

/// A product of narrow numbers with wide sums, of which one instruction adds up `group` terms for
/// each lane: C[m, n] += wide(W[m, k]) * wide(X[k, n]).
struct DotProduct {
  IntrinsicRef intrinsic;
  int64_t group = 1;         ///< terms that one lane adds at a time
  double cost = 1;           ///< multiply-adds of a vector that take as long
  int k_of_x = 0;            ///< X's dimension of the reduction
  std::string w_buffer;      ///< W
  std::vector<int> w_order;  ///< its dimensions with that of the reduction last
  bool w_in_order = false;   ///< it lies so: neighbours along the reduction
};

/// What adds the terms up: a lane of a vector, or the element of a tile.
enum class DotUnit : uint8_t { lanes, tiles };

/// How the plain product `c` of the program runs on such an instruction of the target, or nothing
/// when it has none of this formula.
std::optional<DotProduct> find_dot_product(const Program& program, const Contraction& c,
                                           const Target& target, DotUnit unit);

/// The instruction for a convolution in blocks of channels whose sum ends with the channels of a
/// block, neighbours in X, in whole groups (tiles: in whole steps, and lanes in whole tiles).
std::optional<IntrinsicRef> find_conv_dots(const Program& program, const BlockedConv& c,
                                           const Target& target, DotUnit unit);

/// W of such a convolution as the instruction takes it: groups of `group` channels in each lane,
/// panels of `width` lanes.
std::vector<LayoutDim> grouped_weights(const BlockedConv& c, int64_t group, int64_t width);

/// Whether its copy of X in groups costs less than what it saves. `ahead`: X comes packed.
bool prefers_dots(const Contraction& c, const DotProduct& dots, const Target& target, bool ahead);

/// The product of groups as the blocking model sees it: a group is one element of four bytes.
Contraction in_groups(const Contraction& c, int64_t group, double cost = 1);

/// How many multiply-adds of a vector take as long as the instruction does on that target: what was
/// measured for bf16, 1 for bytes.
double dot_cost(const Intrinsic& intrinsic, const Target& target);

}  // namespace tenon
