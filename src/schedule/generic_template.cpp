#include <tenon/ir/visit.h>
#include <tenon/schedule/roles.h>
#include <tenon/schedule/work.h>

#include <algorithm>

#include "schedule/gpu_template.h"
#include "schedule/tree.h"

namespace tenon {
namespace {

constexpr int64_t kCheapNodes = 40;

/// Nodes of the values, and whether a mathematical function occurs.
struct Cost {
  int64_t nodes = 0;
  bool calls = false;
};

Cost cost_of(const Stage& stage) {
  Cost out;
  for (const Expr& e : stage.values)
    walk(e, [&](const Expr& part) {
      ++out.nodes;
      out.calls = out.calls || part.as<Call>();
      return true;
    });
  return out;
}

/// How often the reader loads from the producer for each of the producer's points, at least.
int64_t loads_per_point(const Program& program, const Stage& producer, const Stage& reader) {
  int64_t loads = 0;
  std::vector<Expr> all = reader.values;
  all.insert(all.end(), reader.indices.begin(), reader.indices.end());
  for (const Expr& e : all)
    walk(e, [&](const Expr& part) {
      const Load* l = part.as<Load>();
      loads += l && writes(producer, l->buffer) ? 1 : 0;
      return true;
    });
  const int64_t made = std::max<int64_t>(stage_points(program, producer.name), 1);
  const int64_t used = stage_points(program, reader.name);
  return loads * ((used + made - 1) / made);
}

/// Inlining repeats work for every further load: free for one load a point, worth it for a few
/// cheap nodes.
bool worth_inlining(const Program& program, const Stage& stage) {
  if (stage.combiner) return false;
  const Cost cost = cost_of(stage);
  int64_t loads = 0;
  for (const StagePath& p : stage_paths(program.body))
    loads += loads_per_point(program, stage, *p.stage);
  return loads <= 1 ||
         (cost.nodes <= kCheapNodes && !cost.calls && loads * cost.nodes <= 16 * kCheapNodes);
}

void inline_maps(Schedule& s) {
  for (const std::string& name : s.stages()) {
    const StagePath path = find_stage(s.program(), name);
    if (worth_inlining(s.program(), *path.stage)) s.try_apply(ComputeInline{name});
  }
}

bool has_loop(const Schedule& s, const std::string& stage, const std::string& loop) {
  const StagePath path = find_stage(s.program(), stage);
  return std::any_of(path.loops.begin(), path.loops.end(),
                     [&](const For* l) { return l->var.name() == loop; });
}

/// What the knobs say about one nest.
struct NestPlan {
  std::string stage;
  int64_t vectors = 1;  // vectors side by side along the innermost spatial axis
  int64_t rows = 1;     // rows of a reduction's register tile
  Tail rows_tail = Tail::exact;
};

/// One nest:  for spatial...: for reduce...: S   ->   for outer (parallel): for tiles: for reduce:
/// rows (unroll), vector
class NestScheduler {
 public:
  NestScheduler(Schedule& s, const NestPlan& plan) : s_(s), plan_(plan), stage_(plan.stage) {}

  void run() {
    const StagePath path = find_stage(s_.program(), stage_);
    reduction_ = path.stage->combiner != nullptr;
    for (const For* l : path.loops) {
      const int64_t n = most_iterations(*l);
      if (n == 0) return;  // nothing runs
      (binds_reduce(*path.stage, l->var) ? reduce_ : spatial_).push_back({l->var.name(), n});
    }
    for (const Buffer& b : path.stage->outputs)
      lanes_ = std::min<int64_t>(lanes_, s_.target().lanes(b->dtype));
    if (!spatial_.empty()) {
      split_rows();
      split_vector();
      order();
      if (reduction_) keep_in_registers();
      mark_inner(stage_);
    }
    run_in_parallel();
  }

 private:
  struct Named {
    std::string name;
    int64_t extent;
  };

  void split_rows() {
    if (!reduction_ || spatial_.size() < 2 || plan_.rows < 2) return;
    Named& r = spatial_[spatial_.size() - 2];
    if (s_.try_apply(Split{stage_, r.name, plan_.rows, plan_.rows_tail})) return;
    row_ = r.name + ".i";
    r = {r.name + ".o", (r.extent + plan_.rows - 1) / plan_.rows};
  }

  void split_vector() {
    Named& v = spatial_.back();
    vector_ = v.name;
    const int64_t width = lanes_ * plan_.vectors;
    if (v.extent <= width || s_.try_apply(Split{stage_, v.name, width, Tail::guard})) {
      outer_.assign(spatial_.begin(), spatial_.end() - 1);
      return;
    }
    vector_ = v.name + ".i";
    v = {v.name + ".o", (v.extent + width - 1) / width};
    outer_ = spatial_;
  }

  void order() {
    Reorder step{stage_, {}};
    for (const Named& l : outer_) step.loops.push_back(l.name);
    for (const Named& l : reduce_) step.loops.push_back(l.name);
    if (!row_.empty()) step.loops.push_back(row_);
    step.loops.push_back(vector_);
    s_.try_apply(step);
  }

  /// The tile of a reduction accumulates in registers and is stored once.
  void keep_in_registers() {
    if (outer_.empty()) return;
    const std::string store = fresh_name(s_.program(), stage_ + ".store");
    if (s_.try_apply(CacheWrite{stage_, outer_.back().name, Scope::reg})) return;
    mark_inner(store);
  }

  /// Vectorizes the innermost spatial loop of the stage and unrolls what is over the rest of the
  /// tile.
  void mark_inner(const std::string& stage) {
    const StagePath path = find_stage(s_.program(), stage);
    std::vector<std::string> own;
    bool below = outer_.empty();
    for (const For* l : path.loops) {
      if (below && !binds_reduce(*path.stage, l->var)) own.push_back(l->var.name());
      below = below || l->var.name() == outer_.back().name;
    }
    if (own.empty()) return;
    s_.try_apply(Vectorize{stage, own.back(), Tail::mask});
    own.pop_back();
    for (const std::string& loop : own)
      if (reduction_) s_.try_apply(Unroll{stage, loop});
  }

  void run_in_parallel() {
    if (outer_.empty()) return;
    std::string whole = outer_[0].name;
    int64_t iterations = outer_[0].extent;
    for (size_t n = 1; n < outer_.size() && iterations < 8 * s_.target().cores; ++n) {
      if (s_.try_apply(Fuse{stage_, whole, outer_[n].name})) break;
      whole += "_" + outer_[n].name;
      iterations = std::min(iterations, int64_t{1} << 20) * outer_[n].extent;
    }
    if (has_loop(s_, stage_, whole) && worth_threads(s_.program(), stage_, iterations, s_.target()))
      s_.try_apply(Parallel{stage_, whole});
  }

  Schedule& s_;
  const NestPlan& plan_;
  const std::string stage_;
  bool reduction_ = false;
  int64_t lanes_ = INT64_MAX;
  std::vector<Named> spatial_, reduce_, outer_;  // outer_: the spatial loops outside the tile
  std::string row_, vector_;
};

void spread_over_blocks(Schedule& s, Knobs& knobs) {
  const std::vector<std::string> stages = s.stages();
  std::vector<int64_t> threads;
  for (const std::string& name : stages)
    threads.push_back(knobs.pick(name + ".threads", {16, 32, 64, 128, 256}, 64));
  for (size_t n = 0; n < stages.size(); ++n) bind_nest(s, stages[n], threads[n]);
}

}  // namespace

void generic_template(Schedule& s, Knobs& knobs) {
  inline_maps(s);
  if (s.target().is_gpu()) return spread_over_blocks(s, knobs);
  std::vector<NestPlan> plans;
  for (const std::string& name : s.stages()) {
    const StagePath path = find_stage(s.program(), name);
    NestPlan plan{name, 1, 1};
    int64_t spatial = 0;
    Expr row_extent = int_imm(1);
    for (const AxisBinding& b : path.stage->axes) {
      if (b.kind != AxisKind::spatial) continue;
      ++spatial;
      if (spatial == static_cast<int64_t>(path.stage->indices.size()) - 1)
        row_extent = b.axis.extent;
    }
    plan.vectors = knobs.pick(name + ".vectors", {1, 2, 4}, 2);
    if (path.stage->combiner && spatial >= 2) {
      if (const auto rows = as_int(row_extent)) {
        plan.rows = knobs.divisor(name + ".rows", *rows, {.max = 8, .standard = 4});
      } else {
        plan.rows = knobs.pick(name + ".rows", {1, 2, 4, 8}, 4);
        plan.rows_tail = Tail::guard;
      }
    }
    plans.push_back(plan);
  }
  for (const NestPlan& plan : plans) NestScheduler(s, plan).run();
}

}  // namespace tenon
