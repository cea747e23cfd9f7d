#include "autotvm/model/traffic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "target/cost.h"

namespace tenon {
namespace {

constexpr double kWays = 16;   // lines of a set of the second cache
constexpr double kHole = 128;  // bytes from one piece to the next: lines between are not touched

/// The share of the boxes of loops from `level` on that lie inside the stage's axes.
double useful(const NestStage& stage, size_t level) {
  double share = 1;
  for (const NestAxis& a : stage.axes) {
    const double covered = a.form.span[0] + 1.0, width = a.form.span[level] + 1.0;
    share *= std::min(1.0, std::max(a.extent, width) / covered);
  }
  return share;
}

/// Elements that an index reaches while the loops from `level` on run: `pieces` runs of `run`,
/// every `pitch`-th starts one.
///   k*64 + l in k 0..8, l 0..16   ->   8 pieces of 16, 64 apart
struct IndexRuns {
  double run = 1, pieces = 1, pitch = 0;
};

IndexRuns runs_of(const IndexForm& f, size_t level) {
  struct Moves {
    double step, times;
  };
  std::array<Moves, kMaxDraftLoops> moves{};
  size_t count = 0;
  double points = 1;
  for (size_t l = level; l < kMaxDraftLoops && f.span[l] > 0; ++l) {
    const double step = std::abs(f.step[l]), reach = f.span[l] - f.span[l + 1];
    if (step < 1 || reach < step) continue;
    moves[count++] = {step, reach / step + 1};
    points *= moves[count - 1].times;
  }
  IndexRuns out;
  out.run = f.span[level] + 1.0;
  if (points >= out.run) return out;
  std::sort(moves.begin(), moves.begin() + static_cast<std::ptrdiff_t>(count),
            [](const Moves& a, const Moves& b) { return a.step < b.step; });
  out.run = 1;
  for (size_t n = 0; n < count; ++n) {
    const auto [step, times] = moves[n];
    if (out.pieces == 1 && step <= out.run) {
      out.run += step * (times - 1);
    } else if (out.pieces == 1) {
      out.pieces = times;
      out.pitch = step;
    } else {
      out.pieces *= times;
    }
  }
  return out;
}

}  // namespace

Sharing sharing_of(const NestTree& tree, const NestStage& stage, int threads) {
  for (size_t l = 0; l < stage.path.size(); ++l) {
    const NestLoop& loop = tree.loops[static_cast<size_t>(stage.path[l])];
    if (loop.loop->mark != LoopMark::parallel) continue;
    double share = std::ceil(loop.extent / threads) / loop.extent;
    // The last piece is short where the loops overshoot an axis: the whole ones are more of it.
    for (const NestAxis& a : stage.axes)
      if (a.form.step[l] != 0) share *= std::max(1.0, (a.form.span[0] + 1.0) / a.extent);
    return {l, std::min(1.0, share), loop.extent};
  }
  return {};
}

std::array<Keeper, kKeepers> keepers_of(const Target& t) {
  const double line = t.cache_line_bytes;
  std::array<Keeper, kKeepers> out;
  out[first_cache] = {static_cast<double>(t.l1d_bytes), line, 0};
  out[translations] = {1.5 * kOpenPages * kPage, kPage, 0};
  out[second_cache] = {static_cast<double>(t.l2_bytes), line,
                       static_cast<double>(t.l2_bytes) / kWays};
  out[third_cache] = {static_cast<double>(t.l3_bytes), line, 0};
  return out;
}

double Keeper::bytes_of(const MemoryBox& box) const {
  return box.pieces > 1 && box.pitch >= line
             ? box.pieces * std::ceil(box.run / line) * line
             : std::ceil(box.pieces * std::max(box.run, box.pitch) / line) * line;
}

double Keeper::room_for(const MemoryBox& box) const {
  const double all = bytes_of(box);
  if (way == 0 || box.pieces == 1 || std::fmod(box.pitch, line) != 0) return all;
  const double starts = way / std::gcd(static_cast<int64_t>(box.pitch), static_cast<int64_t>(way));
  if (box.pieces <= starts) return all;
  const double run = std::ceil(box.run / line) * line;
  return all / std::min(1.0, starts * run / way);
}

Traffic::Traffic(const NestTree& tree, const Target& target, int threads)
    : tree_(tree), threads_(threads), keepers_(keepers_of(target)), in_use_(tree.loops.size()) {
  for (const NestStage& s : tree.stages) {
    const Sharing sharing = sharing_of(tree, s, threads);
    const double shared =
        s.path.empty() ? 1 : tree.loops[static_cast<size_t>(s.path[sharing.loop])].extent;
    for (const NestAccess& a : s.accesses) {
      if (tree.buffers[static_cast<size_t>(a.buffer)].in_registers()) continue;
      Rooms whole = rooms(box(a, sharing, shared, 0));
      add(0, a.buffer, whole, whole);
      for (size_t l = 0; l < s.path.size(); ++l) {
        const Rooms body = rooms(box(a, sharing, shared, l + 1));
        add(s.path[l], a.buffer, whole, body);
        whole = body;
      }
    }
  }
  for (InUse& node : in_use_)
    for (const Use& use : node.uses)
      for (size_t k = 0; k < kKeepers; ++k) {
        node.whole[k] += use.whole[k];
        node.body[k] += use.body[k];
      }
}

Traffic::Rooms Traffic::rooms(const MemoryBox& box) const {
  Rooms out;
  for (size_t k = 0; k < kKeepers; ++k) out[k] = keepers_[k].room_for(box);
  return out;
}

MemoryBox Traffic::box(const NestAccess& access, const Sharing& sharing, double loop_extent,
                       size_t level) const {
  const NestBuffer& b = tree_.buffers[static_cast<size_t>(access.buffer)];
  MemoryBox e;
  e.run = b.element_bytes;
  double pitch = b.element_bytes;
  bool together = true;
  for (size_t d = access.at.size(); d-- > 0;) {
    const IndexForm& f = access.at[d];
    double width = f.data ? b.extents[d] : f.span[level] + 1.0;
    if (sharing.share < 1 && level <= sharing.loop)
      width -= std::floor(std::abs(f.step[sharing.loop]) * loop_extent * (1 - sharing.share));
    width = std::clamp(width, 1.0, std::max(1.0, b.extents[d]));
    const bool has_room = together && !f.data && width * pitch >= 2 * kHole;
    const IndexRuns runs = has_room ? runs_of(f, level) : IndexRuns();
    if (runs.pieces > 1 && runs.pitch * pitch >= kHole && width == f.span[level] + 1.0) {
      e.run *= runs.run;
      e.pieces = runs.pieces;
      e.pitch = runs.pitch * pitch;
      width = runs.run;
    } else if (together) {
      e.run *= width;
    } else if (width > 1) {
      if (e.pieces == 1) e.pitch = pitch;
      e.pieces *= width;
    }
    together = together && width == b.extents[d];
    pitch *= b.extents[d];
  }
  return e;
}

void Traffic::add(int loop, int buffer, const Rooms& whole, const Rooms& body) {
  InUse& node = in_use_[static_cast<size_t>(loop)];
  for (Use& use : node.uses)
    if (use.buffer == buffer) {
      for (size_t k = 0; k < kKeepers; ++k) {
        use.whole[k] = std::max(use.whole[k], whole[k]);
        use.body[k] = std::max(use.body[k], body[k]);
      }
      return;
    }
  node.uses.push_back({buffer, whole, body});
}

/// How often the bytes go to or from the cache: what was read and is written too goes back; a line
/// that is only written is fetched first. The way back to the second cache costs nothing beside.
double Traffic::ways(int loop, bool body, const NestAccess& access, size_t keeper) {
  for (Paid& p : paid_) {
    if (p.loop != loop || p.body != body || p.buffer != access.buffer || p.keeper != keeper)
      continue;
    const bool known = access.store ? p.stored : p.loaded || p.stored;
    (access.store ? p.stored : p.loaded) = true;
    return known || keeper == first_cache ? 0 : 1;
  }
  paid_.push_back({loop, access.buffer, keeper, body, !access.store, access.store});
  return access.store && keeper != first_cache ? 2 : 1;
}

double Traffic::kept(double room, size_t keeper) const {
  const double all = keepers_[keeper].bytes;
  if (all == 0) return 0;
  // Pages lie at random in a second cache: the sets that are crowded, by Poisson's distribution, as
  // a straight line.
  if (keeper == second_cache) return std::clamp((1.45 - room / all) / 0.9, 0.0, 1.0);
  return std::clamp(2 - 2 * room / all, 0.0, 1.0);
}

double Traffic::reached(const NestStage& stage, const NestAccess& access) const {
  const Sharing sharing = sharing_of(tree_, stage, threads_);
  const double extent =
      stage.path.empty() ? 1 : tree_.loops[static_cast<size_t>(stage.path[sharing.loop])].extent;
  return keepers_[first_cache].bytes_of(box(access, sharing, extent, 0));
}

Moved Traffic::beyond(const NestStage& stage, const NestAccess& access, size_t keeper) {
  double open = 1 - kept(body_room(0, keeper), keeper);  // the part that nothing keeps so far
  if (open == 0) return {};
  const Sharing sharing = sharing_of(tree_, stage, threads_);
  const double extent =
      stage.path.empty() ? 1 : tree_.loops[static_cast<size_t>(stage.path[sharing.loop])].extent;
  Moved out;
  double times = 1;
  const auto take = [&](size_t level, bool body, double room) {
    const double part = open * kept(room, keeper);
    if (part == 0) return;
    open -= part;
    const double ways = this->ways(stage.path[level], body, access, keeper);
    if (ways == 0) return;
    const MemoryBox all = box(access, sharing, extent, level);
    out.bytes += part * times * useful(stage, level) * ways * keepers_[keeper].bytes_of(all);
    out.box = body ? box(access, sharing, extent, level + 1) : all;
  };
  for (size_t l = 0; l < stage.path.size() && open > 0; ++l) {
    take(l, false, whole_room(stage.path[l], keeper));
    take(l, true, body_room(stage.path[l], keeper));
    times *= tree_.loops[static_cast<size_t>(stage.path[l])].extent *
             (l == sharing.loop ? sharing.share : 1);
  }
  if (open == 0) return out;
  const size_t depth = stage.path.size();
  out.box = box(access, sharing, extent, depth);
  out.bytes += open * times * useful(stage, depth) * keepers_[keeper].bytes_of(out.box);
  return out;
}

}  // namespace tenon
