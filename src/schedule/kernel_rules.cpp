#include "schedule/kernel_rules.h"

#include <algorithm>
#include <array>

#include "arith/ownership.h"
#include "schedule/region.h"

namespace tenon {
namespace {

constexpr size_t kAxes = 3;

size_t axis_of(LoopMark m) {
  return static_cast<size_t>(m) -
         static_cast<size_t>(is_thread(m) ? LoopMark::thread_x : LoopMark::block_x);
}

/// The nests at the root, each a kernel, and the buffers allocated outside all of them.
void collect_nests(const Stmt& s, std::vector<Stmt>& nests, std::vector<Buffer>& outside) {
  if (const Allocate* n = s.as<Allocate>()) {
    outside.push_back(n->buffer);
    collect_nests(n->body, nests, outside);
  } else if (const Seq* n = s.as<Seq>()) {
    for (const Stmt& part : n->stmts) collect_nests(part, nests, outside);
  } else if (s.defined()) {
    nests.push_back(s);
  }
}

/// Rules that a path of loops keeps by itself.
class PathRules {
 public:
  explicit PathRules(const StagePath& path) : path_(path) {}

  void check() const {
    for (size_t n = 0; n < path_.loops.size(); ++n) {
      const LoopMark mark = path_.loops[n]->mark;
      if (mark == LoopMark::parallel)
        refuse(
            Rule::gpu_parallel,
            fmt::format("loop \"{}\" is parallel, which is for the threads of a CPU", name_of(n)),
            "bind it to a block or thread axis", full_name(path_, n));
      if (is_block(mark)) check_block(n);
      if (is_thread(mark)) check_thread(n);
    }
  }

 private:
  const std::string& name_of(size_t n) const { return path_.loops[n]->var.name(); }

  void check_twice(size_t at) const {
    for (size_t n = 0; n < at; ++n)
      if (path_.loops[n]->mark == path_.loops[at]->mark)
        refuse(Rule::gpu_axis_twice,
               fmt::format("loops \"{}\" and \"{}\" are both bound to {}; an axis is bound once on "
                           "a path",
                           name_of(n), name_of(at), name(path_.loops[at]->mark)),
               "bind one of them to another axis, or fuse them", full_name(path_, at));
  }

  /// Outermost: only block loops outside, each with nothing but the next in its body.
  void check_block(size_t at) const {
    check_twice(at);
    for (size_t n = 0; n < at; ++n) {
      const For& outer = *path_.loops[n];
      if (!is_block(outer.mark))
        refuse(Rule::gpu_block_outermost,
               fmt::format("loop \"{}\" stands outside loop \"{}\" and is bound to no block axis; "
                           "blocks run apart, so their loops are outermost",
                           name_of(n), name_of(at)),
               fmt::format("bind \"{}\" to a block axis first, or reorder it inside", name_of(n)),
               full_name(path_, at));
      if (outer.body.as<For>() != path_.loops[n + 1])
        refuse(Rule::gpu_block_beside,
               fmt::format("something stands between the block loops \"{}\" and \"{}\"", name_of(n),
                           name_of(n + 1)),
               "place other stages and buffers inside the innermost block loop",
               full_name(path_, at));
    }
  }

  void check_thread(size_t at) const {
    check_twice(at);
    if (!extent_of(*path_.loops[at]))
      refuse(
          Rule::gpu_thread_symbolic,
          fmt::format("thread loop \"{}\" has the symbolic extent {}; the threads of a block are "
                      "a constant number",
                      name_of(at), print(path_.loops[at]->extent)),
          "split it by a constant and bind the inner part", full_name(path_, at));
    for (size_t n = 0; n < at; ++n)
      if (makes_lanes(path_.loops[n]->mark))
        refuse(Rule::gpu_thread_vectorized,
               fmt::format("thread loop \"{}\" is inside the vectorized loop \"{}\"", name_of(at),
                           name_of(n)),
               {}, full_name(path_, at));
  }

  const StagePath& path_;
};

/// One access of a buffer; `threads` says which axes' loops it is under.
struct Access {
  const StagePath* path;
  std::vector<Expr> index;
  bool write;
};

/// A nest with its stages, and the variables that stand for its threads.
class Kernel {
 public:
  Kernel(const Stmt& nest, const Target& target)
      : nest_(nest), target_(target), paths_(stage_paths(nest)) {
    for (const StagePath& p : paths_) PathRules(p).check();
    for (const StagePath& p : paths_)
      for (size_t n = 0; n < p.loops.size(); ++n)
        if (is_bound(p.loops[n]->mark)) note_extent(p, n);
    for (size_t a = 0; a < kAxes; ++a) threads_[a] = Var(fmt::format("thread_{}", "xyz"[a]));
  }

  void check() {
    check_limits();
    std::vector<const For*> loops;
    walk_allocations(nest_, loops);
  }

 private:
  void note_extent(const StagePath& p, size_t n) {
    const LoopMark mark = p.loops[n]->mark;
    const auto extent = extent_of(*p.loops[n]);
    auto& all = is_thread(mark) ? block_ : grid_;
    if (!extent || *extent <= all[axis_of(mark)]) return;
    all[axis_of(mark)] = *extent;
    if (is_thread(mark)) widest_ = full_name(p, n);
    where_[static_cast<size_t>(mark)] = full_name(p, n);
  }

  void check_limits() const {
    const DeviceLimits& limit = target_.limits;
    for (size_t a = 0; a < kAxes; ++a) {
      const size_t block = static_cast<size_t>(LoopMark::block_x) + a,
                   thread = static_cast<size_t>(LoopMark::thread_x) + a;
      if (a < limit.grid.size() && grid_[a] > limit.grid[a])
        refuse(Rule::gpu_grid_limit,
               fmt::format("{} blocks along {}; {} allows {}", grid_[a],
                           name(static_cast<LoopMark>(block)), target_.cpu, limit.grid[a]),
               "bind it to block_x, or split it and let each block do several", where_[block]);
      if (a < limit.block.size() && block_[a] > limit.block[a])
        refuse(Rule::gpu_axis_limit,
               fmt::format("{} threads along {}; {} allows {}", block_[a],
                           name(static_cast<LoopMark>(thread)), target_.cpu, limit.block[a]),
               "split the loop and bind the inner part", where_[thread]);
    }
    const int64_t threads = block_[0] * block_[1] * block_[2];
    if (threads > limit.threads_per_block)
      refuse(Rule::gpu_threads_limit,
             fmt::format("{} threads per block ({} x {} x {}); {} allows {}", threads, block_[0],
                         block_[1], block_[2], target_.cpu, limit.threads_per_block),
             "bind smaller loops to the thread axes", widest_);
  }

  void walk_allocations(const Stmt& s, std::vector<const For*>& loops) {
    if (const For* n = s.as<For>()) {
      loops.push_back(n);
      walk_allocations(n->body, loops);
      loops.pop_back();
    } else if (const Allocate* n = s.as<Allocate>()) {
      check_allocation(n->buffer, n->body, loops);
      walk_allocations(n->body, loops);
    } else if (const Seq* n = s.as<Seq>()) {
      for (const Stmt& part : n->stmts) walk_allocations(part, loops);
    }
  }

  static const For* first_thread_loop(const std::vector<const For*>& loops) {
    for (const For* l : loops)
      if (is_thread(l->mark)) return l;
    return nullptr;
  }

  void check_allocation(const Buffer& b, const Stmt& body, const std::vector<const For*>& loops) {
    const For* outside = first_thread_loop(loops);
    const For* inside = nullptr;
    for (const StagePath& p : stage_paths(body))
      if (!inside) inside = first_thread_loop(p.loops);
    if (outside && inside)
      refuse(Rule::gpu_between_threads,
             fmt::format("buffer {} is allocated inside thread loop \"{}\" and outside thread loop "
                         "\"{}\"; it must belong to the block or to one thread",
                         b->name, outside->var.name(), inside->var.name()),
             "allocate it outside all thread loops, or inside the innermost");
    if (outside && b->scope == Scope::shared)
      refuse(Rule::gpu_shared_in_thread,
             fmt::format("buffer {} is shared and allocated inside thread loop \"{}\"; each thread "
                         "would have its own",
                         b->name, outside->var.name()),
             "allocate it outside the thread loops, or use Scope::local");
    if (!outside && inside && (b->scope == Scope::local || b->scope == Scope::reg))
      check_private(b, loops);
  }

  /// Index over the loops, thread loops replaced by the axes' variables.
  std::vector<Expr> canonical(const StagePath& p, std::vector<Expr> index) const {
    VarMap values;
    for (const For* l : p.loops)
      if (is_thread(l->mark)) values.emplace(l->var, threads_[axis_of(l->mark)]);
    for (Expr& e : index) e = substitute(e, values);
    return index;
  }

  std::vector<Access> accesses_of(const Buffer& b) const {
    std::vector<Access> out;
    for (const StagePath& p : paths_) {
      if (writes(*p.stage, b))
        out.push_back({&p, canonical(p, over_loops(*p.stage, p.stage->indices)), true});
      for (const std::vector<Expr>& at : loads_of(*p.stage, b, true))
        out.push_back({&p, canonical(p, at), false});
    }
    return out;
  }

  /// The axes whose loops the stage is under.
  std::array<bool, kAxes> axes_of(const StagePath& p) const {
    std::array<bool, kAxes> out{};
    for (const For* l : p.loops)
      if (is_thread(l->mark)) out[axis_of(l->mark)] = extent_of(*l).value_or(2) > 1;
    return out;
  }

  void check_private(const Buffer& b, const std::vector<const For*>& loops) const {
    std::vector<Var> fixed;
    for (const For* l : loops) fixed.push_back(l->var);
    const std::vector<Access> all = accesses_of(b);
    for (const Access& w : all)
      for (const Access& other : all) {
        if (!w.write) continue;
        VarRanges ranges = loop_ranges(w.path->loops);
        for (const auto& [var, range] : loop_ranges(other.path->loops)) ranges[var] = range;
        std::vector<Var> used;
        for (size_t a = 0; a < kAxes; ++a) {
          if (block_[a] < 2) continue;
          used.push_back(threads_[a]);
          ranges[threads_[a]] = Interval::extent(block_[a]);
        }
        Simplifier math(std::move(ranges));
        std::vector<Var> under;
        const std::array<bool, kAxes> x = axes_of(*w.path), y = axes_of(*other.path);
        for (size_t a = 0; a < kAxes; ++a)
          if (x[a]) under.push_back(threads_[a]);
        if (x == y && same_thread_only({w.index}, {other.index}, under, fixed, math)) continue;
        refuse(Rule::gpu_not_private,
               fmt::format("buffer {} is {} memory, a thread's own, and it cannot be proved that "
                           "stage \"{}\" {} only what the same thread of stage \"{}\" writes",
                           b->name, name(b->scope), other.path->stage->name,
                           other.write ? "writes" : "reads", w.path->stage->name),
               "bind the same loops in both stages, or use Scope::shared");
      }
  }

  const Stmt& nest_;
  const Target& target_;
  std::vector<StagePath> paths_;
  std::array<int64_t, kAxes> block_{1, 1, 1}, grid_{1, 1, 1};
  std::array<Var, kAxes> threads_;
  std::array<std::string, 11> where_;  // by mark
  std::string widest_;
};

}  // namespace

void check_kernels(const Program& program, const Target& target) {
  std::vector<Stmt> nests;
  std::vector<Buffer> outside;
  collect_nests(program.body, nests, outside);
  for (const Buffer& b : outside)
    if (b->scope != Scope::global)
      refuse(Rule::gpu_scope_outside,
             fmt::format("buffer {} is {} memory, but it is allocated outside all loops; each nest "
                         "is a kernel, and kernels share global memory only",
                         b->name, name(b->scope)),
             "allocate it inside a loop of the nest that uses it");
  for (const Stmt& nest : nests) Kernel(nest, target).check();
}

void check_scope(const Target& target, Scope scope, const std::string& loop) {
  if (target.is_gpu() || scope == Scope::global || scope == Scope::reg) return;
  refuse(Rule::scope_missing, fmt::format("target {} has no {} memory", target.name, name(scope)),
         "use Scope::global or Scope::reg", loop);
}

}  // namespace tenon
