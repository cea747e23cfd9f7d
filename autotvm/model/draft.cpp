#include "autotvm/model/draft.h"

#include <tenon/ir/notes.h>
#include <tenon/ir/stmt.h>
#include <tenon/schedule/work.h>

#include <algorithm>
#include <cmath>

#include "autotvm/model/steps.h"
#include "autotvm/model/unit_work.h"
#include "target/cost.h"

namespace tenon {
namespace {

constexpr double kStreamBytes = 7;     // a cycle, of stores past the caches
constexpr double kBeside = 0.95;       // of them, those that go on beside other work
constexpr double kStoreBuffer = 4096;  // bytes of stores past the caches that wait their turn
constexpr double kTurnCycles = 4;      // to go on to a page whose translation is elsewhere
constexpr double kHidden = 0.5;        // of what comes from far away beside other work
constexpr double kMostInstructions = 4000;
constexpr double kMostWorkspace = 1 << 30;

/// Bytes a cycle from the second cache.
double near_rate(const MemoryBox& box, const MemoryRates& rates) {
  if (box.pieces <= 2 || box.run >= 4096) return rates.near;
  const double sets = std::fmod(box.pitch, 4096);
  return sets == 0 || sets == 2048 ? rates.conflict : rates.piece;
}

/// Bytes a cycle from beyond the second cache: of single lines a page apart no prefetcher knows.
double far_rate(const MemoryBox& box, const MemoryRates& rates) {
  const double pages = box.pieces * std::min(1.0, box.pitch / kPage);
  if (box.run >= kPage || pages <= kOpenPages / 2) return rates.far;
  return box.run < 2 * 64 ? rates.line : rates.miss;
}

struct StageCost {
  StageWork work;
  double near = 0, turns = 0, far = 0, memory = 0;  // cycles
  double stream = 0;                                // of stores past the caches
  double total = 0;
  Sharing sharing;
};

/// All of the stage, where stores past the caches take so many cycles.
double total_of(const StageCost& c, double stream) {
  const double compute = c.work.cycles + c.work.ends + c.work.init;
  const double near = std::max(compute, c.near) + c.turns;
  const double far = std::max(c.far + stream, c.memory);
  return std::max(near, far) + kHidden * std::min(near, far);
}

bool copies(const NestStage& s) {
  return !s.stage->combiner && s.ops.simple + s.ops.functions + s.ops.divisions == 0;
}

class Drafter {
 public:
  Drafter(const NestTree& tree, const Target& target, int threads)
      : tree_(tree),
        target_(target),
        threads_(threads),
        traffic_(tree, target, threads),
        rates_(memory_rates(target)) {}

  Draft result() {
    if (tree_.too_deep) out_.hopeless = "more than 32 loops round a stage";
    StageCost main;
    double all_points = 0, vector_points = 0;
    std::vector<StageCost> costs;
    for (const NestStage& s : tree_.stages) costs.push_back(cost_of(s));
    hide_streams(costs);
    for (size_t n = 0; n < costs.size(); ++n) {
      const StageCost& c = costs[n];
      add(tree_.stages[n], c);
      all_points += c.work.points;
      if (c.work.lanes > 1) vector_points += c.work.points;
      if (c.total >= main.total) main = c;
      judge(c);
    }
    f_.vector_share = all_points > 0 ? vector_points / all_points : 1;
    describe_main(main);
    add_forks();
    add_buffers();
    out_.cycles = cycles_ + f_.fork_cycles;
    f_.balance = busiest_ > 0 ? mean_ / busiest_ : 1;
    f_.stages = static_cast<double>(tree_.stages.size());
    judge_whole();
    return std::move(out_);
  }

 private:
  bool streams(const NestStage& s) const {
    return std::any_of(s.path.begin(), s.path.end(), [&](int l) {
      return tree_.loops[static_cast<size_t>(l)].loop->notes.count(std::string(kStreamNote)) > 0;
    });
  }

  StageCost cost_of(const NestStage& s) {
    StageCost c;
    c.sharing = sharing_of(tree_, s, threads_);
    c.work = work_of(tree_, s, c.sharing, target_);
    for (const NestAccess& a : s.accesses) {
      if (tree_.buffers[static_cast<size_t>(a.buffer)].in_registers()) continue;
      if (a.store && streams(s)) {
        c.stream += traffic_.reached(s, a) / kStreamBytes;
        continue;
      }
      const Moved near = traffic_.beyond(s, a, first_cache);
      const Moved turns = traffic_.beyond(s, a, translations);
      const Moved far = traffic_.beyond(s, a, second_cache);
      c.near += near.bytes / near_rate(near.box, rates_);
      c.turns += turns.bytes / kPage * kTurnCycles;
      c.far += far.bytes / far_rate(far.box, rates_);
      f_.near_bytes += near.bytes;
      f_.far_bytes += far.bytes;
      if (target_.l3_bytes == 0) continue;
      const Moved memory = traffic_.beyond(s, a, third_cache);
      c.memory += memory.bytes / rates_.memory;
      f_.memory_bytes += memory.bytes;
    }
    c.total = total_of(c, c.stream);
    return c;
  }

  /// Stores past the caches go on beside what other stages compute in the same loop, as far as they
  /// wait in the store buffer. Where they take longer than the rest it stays full, and the rest
  /// waits for them.
  void hide_streams(std::vector<StageCost>& costs) const {
    for (size_t n = 0; n < costs.size(); ++n) {
      if (costs[n].stream == 0) continue;
      const std::vector<int>& path = tree_.stages[n].path;
      for (size_t l = path.size(); l-- > 0;) {
        double others = 0, turns = costs[n].sharing.loop <= l ? costs[n].sharing.share : 1;
        for (size_t m = 0; m < costs.size(); ++m) {
          const std::vector<int>& other = tree_.stages[m].path;
          if (m != n && other.size() > l && other[l] == path[l]) others += costs[m].total;
        }
        if (others == 0) continue;
        for (size_t k = 0; k <= l; ++k) turns *= tree_.loops[static_cast<size_t>(path[k])].extent;
        const double each = costs[n].stream * kStreamBytes / turns;
        const double more = costs[n].total - total_of(costs[n], 0);
        if (costs[n].stream < others)
          costs[n].total -= kBeside * more * std::min(1.0, kStoreBuffer / each);
        break;
      }
    }
  }

  void add(const NestStage& s, const StageCost& c) {
    cycles_ += c.total;
    f_.instructions += c.work.instructions;
    f_.compute_cycles += c.work.cycles;
    f_.end_cycles += c.work.ends + c.work.init;
    f_.near_cycles += c.near;
    f_.turn_cycles += c.turns;
    f_.far_cycles += c.far + c.stream;
    f_.memory_cycles += c.memory;
    if (copies(s)) f_.copy_cycles += c.total;
    if (c.sharing.share == 1) f_.serial_cycles += c.total;
    busiest_ += c.total;
    mean_ += c.sharing.share < 1 ? c.total / (c.sharing.share * threads_) : c.total / threads_;
  }

  void describe_main(const StageCost& c) {
    const Step& s = c.work.full;
    f_.tail_share = c.work.wasted;
    f_.steps = c.work.steps;
    f_.step_instructions = s.instructions();
    f_.step_ops = s.ops;
    f_.step_loads = s.loads();
    f_.step_stores = s.stores + s.scattered;
    f_.loads_per_op = s.loads() / std::max(s.ops, 1.0);
    f_.broadcasts = s.broadcasts;
    f_.contiguous = s.contiguous;
    f_.strided = s.strided;
    f_.transposed = s.transposed;
    f_.gathered = s.gathered;
    f_.split = s.split;
    f_.accumulators = s.accumulators;
    f_.registers = s.registers;
    f_.spilled = s.spilled;
    f_.chain = s.chain;
    f_.pieces = c.sharing.pieces;
  }

  void add_forks() {
    if (threads_ < 2) return;
    for (const NestLoop& l : tree_.loops) {
      if (!l.loop || l.loop->mark != LoopMark::parallel) continue;
      double times = 1;
      bool outermost = true;
      for (int p = l.parent; p > 0; p = tree_.loops[static_cast<size_t>(p)].parent) {
        const NestLoop& outer = tree_.loops[static_cast<size_t>(p)];
        times *= outer.extent;
        outermost = outermost && outer.loop->mark != LoopMark::parallel;
      }
      if (outermost) f_.fork_cycles += times * kForkCycles;
    }
  }

  void add_buffers() {
    for (const NestBuffer& b : tree_.buffers) {
      if (b.parameter || b.in_registers()) continue;
      f_.workspace_bytes += b.bytes() * (b.level > 0 ? threads_ : 1);
      if (b.level > 0) f_.allocations += 1;
    }
  }

  void judge(const StageCost& c) {
    const Step& s = c.work.full;
    if (s.accumulators > target_.vector_registers)
      out_.hopeless = "more accumulators than vector registers";
    else if (s.instructions() > kMostInstructions)
      out_.hopeless = "more than 4000 instructions a step";
  }

  void judge_whole() {
    if (f_.workspace_bytes > kMostWorkspace) out_.hopeless = "more than 1 GiB of workspace";
    if (threads_ > 1 && f_.serial_cycles > 0.5 * out_.cycles && f_.serial_cycles > 8 * kForkCycles)
      out_.hopeless = "most of the work on one core";
  }

  const NestTree& tree_;
  const Target& target_;
  int threads_;
  Traffic traffic_;
  MemoryRates rates_;
  Draft out_;
  DraftFeatures& f_ = out_.features;
  double cycles_ = 0, busiest_ = 0, mean_ = 0;
};

struct FeatureName {
  std::string_view name;
  double DraftFeatures::*value;
  bool size;  // given as a logarithm
};

constexpr FeatureName kFeatures[] = {
    {"instructions", &DraftFeatures::instructions, true},
    {"compute_cycles", &DraftFeatures::compute_cycles, true},
    {"end_cycles", &DraftFeatures::end_cycles, true},
    {"copy_cycles", &DraftFeatures::copy_cycles, true},
    {"near_cycles", &DraftFeatures::near_cycles, true},
    {"far_cycles", &DraftFeatures::far_cycles, true},
    {"memory_cycles", &DraftFeatures::memory_cycles, true},
    {"turn_cycles", &DraftFeatures::turn_cycles, true},
    {"near_bytes", &DraftFeatures::near_bytes, true},
    {"far_bytes", &DraftFeatures::far_bytes, true},
    {"memory_bytes", &DraftFeatures::memory_bytes, true},
    {"fork_cycles", &DraftFeatures::fork_cycles, true},
    {"serial_cycles", &DraftFeatures::serial_cycles, true},
    {"balance", &DraftFeatures::balance, false},
    {"pieces", &DraftFeatures::pieces, true},
    {"vector_share", &DraftFeatures::vector_share, false},
    {"tail_share", &DraftFeatures::tail_share, false},
    {"steps", &DraftFeatures::steps, true},
    {"step_instructions", &DraftFeatures::step_instructions, true},
    {"step_ops", &DraftFeatures::step_ops, true},
    {"step_loads", &DraftFeatures::step_loads, true},
    {"step_stores", &DraftFeatures::step_stores, true},
    {"loads_per_op", &DraftFeatures::loads_per_op, false},
    {"broadcasts", &DraftFeatures::broadcasts, true},
    {"contiguous", &DraftFeatures::contiguous, true},
    {"strided", &DraftFeatures::strided, true},
    {"transposed", &DraftFeatures::transposed, true},
    {"gathered", &DraftFeatures::gathered, true},
    {"split", &DraftFeatures::split, true},
    {"accumulators", &DraftFeatures::accumulators, false},
    {"registers", &DraftFeatures::registers, false},
    {"spilled", &DraftFeatures::spilled, false},
    {"chain", &DraftFeatures::chain, true},
    {"workspace_bytes", &DraftFeatures::workspace_bytes, true},
    {"allocations", &DraftFeatures::allocations, false},
    {"stages", &DraftFeatures::stages, false},
};

}  // namespace

std::vector<float> DraftFeatures::vector() const {
  std::vector<float> out;
  out.reserve(std::size(kFeatures));
  for (const FeatureName& f : kFeatures) {
    const double value = this->*f.value;
    out.push_back(static_cast<float>(f.size ? std::log2(1 + value) : value));
  }
  return out;
}

std::vector<std::string_view> DraftFeatures::names() {
  std::vector<std::string_view> out;
  for (const FeatureName& f : kFeatures) out.push_back(f.name);
  return out;
}

Draft draft(const Program& scheduled, const Target& target, int threads,
            const std::map<std::string, int64_t>& sizes) {
  const NestTree tree = nests_of(tiles_inside_sums(scheduled), sizes);
  return Drafter(tree, target, std::max(threads, 1)).result();
}

}  // namespace tenon
