#include "lower/lane_plan.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "lower/util.h"

namespace tenon {
namespace {

/// Lanes that are combined into one: whole vectors first, so several of them at once.
constexpr int kCombinedVectors = 4;

struct LoopFacts {
  Var var;
  int lanes = 1;
  int64_t min = 0;     // INT_MAX when symbolic
  int64_t extent = 0;  // INT_MAX when symbolic
  std::vector<Buffer> registers;
};

/// The most lanes, up to `most`, that the target can run the intrinsic on; `most` when none.
int intrinsic_lanes(const Intrinsic& intrinsic, const Target& target, int most) {
  int best = 0;
  for (const IntrinsicImplementation& code : intrinsic.implementations)
    if (code.lanes <= most && runs_on(code, target)) best = std::max(best, code.lanes);
  return best > 0 ? best : most;
}

LoopFacts facts_of(const For& loop, const Target& target) {
  LoopFacts out;
  out.var = loop.var;
  out.min = as_int(loop.min).value_or(INT32_MAX);
  out.extent = as_int(loop.extent).value_or(INT32_MAX);
  int bytes = 1;
  DType widest = DType::i8;
  walk(
      loop.body,
      [&](const Stmt& s) {
        const Store* n = s.as<Store>();
        if (n && byte_size(n->buffer->dtype) >= bytes) {
          widest = n->buffer->dtype;
          bytes = byte_size(widest);
        }
        return true;
      },
      nullptr);
  out.lanes = target.lanes(widest);
  const bool combines = loop.kind == AxisKind::reduce && !loop.intrinsic;
  if (combines) out.lanes *= kCombinedVectors;
  if (loop.intrinsic) out.lanes = intrinsic_lanes(*loop.intrinsic, target, out.lanes);
  for_each_access(loop.body, [&](const Buffer& b, const std::vector<Expr>& indices) {
    if (b->scope != Scope::reg) return;
    for (const Expr& index : indices) {
      if (uses_var(index, loop.var)) out.registers.push_back(b);
    }
  });
  return out;
}

std::set<const BufferNode*> uneven_buffers(const std::vector<LoopFacts>& loops) {
  std::set<const BufferNode*> out;
  std::unordered_map<Buffer, std::pair<int64_t, int64_t>, BufferHash> ranges;
  for (const LoopFacts& l : loops)
    for (const Buffer& b : l.registers)
      if (ranges.emplace(b, std::pair(l.min, l.extent)).first->second != std::pair(l.min, l.extent))
        out.insert(b.get());
  return out;
}

// Groups of loops connected by register buffers: group[k] is the smallest index of k's group.
std::vector<size_t> groups_of(const std::vector<LoopFacts>& loops) {
  std::vector<size_t> group(loops.size());
  std::iota(group.begin(), group.end(), size_t{0});
  std::unordered_map<Buffer, size_t, BufferHash> first;
  const auto root = [&](size_t k) {
    while (group[k] != k) k = group[k];
    return k;
  };
  for (size_t k = 0; k < loops.size(); ++k) {
    for (const Buffer& b : loops[k].registers) {
      const size_t other = root(first.emplace(b, k).first->second), own = root(k);
      group[std::max(other, own)] = std::min(other, own);
    }
  }
  for (size_t& k : group) k = root(k);
  return group;
}

}  // namespace

bool runs_on(const IntrinsicImplementation& code, const Target& target) {
  return std::all_of(code.features.begin(), code.features.end(),
                     [&](const std::string& f) { return target.has_feature(f); });
}

LanePlan plan_lanes(const Stmt& body, const Target& target) {
  std::vector<LoopFacts> loops;
  walk(
      body,
      [&](const Stmt& s) {
        const For* n = s.as<For>();
        const bool tile = n && n->intrinsic && parts_of(*n->intrinsic).is_tile();
        if (n && makes_lanes(n->mark) && !tile) loops.push_back(facts_of(*n, target));
        return true;
      },
      nullptr);
  const std::vector<size_t> group = groups_of(loops);
  std::vector<int> lanes(loops.size(), INT32_MAX);
  std::vector<int64_t> extent(loops.size(), 1);
  for (size_t k = 0; k < loops.size(); ++k) {
    lanes[group[k]] = std::min(lanes[group[k]], loops[k].lanes);
    extent[group[k]] = std::max(extent[group[k]], loops[k].extent);
  }
  LanePlan plan;
  plan.uneven = uneven_buffers(loops);
  for (size_t k = 0; k < loops.size(); ++k) {
    const auto cap = std::bit_ceil(static_cast<uint64_t>(extent[group[k]]));
    plan.lanes[loops[k].var.get()] =
        static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(lanes[group[k]]), cap));
    plan.in_registers[loops[k].var.get()] = !loops[k].registers.empty();
  }
  return plan;
}

}  // namespace tenon
