#include "random_step.h"

#include <tenon/ir/ops.h>

#include <fmt/format.h>
#include <tenon/support/error.h>
#include <tenon/te/te.h>

#include <algorithm>
#include <numeric>

namespace tenon {
namespace {

std::vector<Buffer> loaded_by(const Stage& stage) {
  std::vector<Buffer> out;
  auto look = [&](const Expr& part) {
    if (const Load* l = part.as<Load>()) out.push_back(l->buffer);
    return true;
  };
  for (const std::vector<Expr>* part : {&stage.values, &stage.init, &stage.indices})
    for (const Expr& e : *part) walk(e, look);
  return out;
}

/// Mostly no larger than the loop: rests multiply.
int64_t random_factor(const For& loop, Choices& choices) {
  const int64_t n = as_int(loop.extent).value_or(8);
  return choices.between(1, choices.chance(0.05) ? 9 : std::clamp<int64_t>(n, 1, 9));
}

Primitive split(StepDraw& d) {
  if (d.path.loops.empty()) return Split{d.stage(), "i", 2};
  const For& loop = *d.choices.one_of(d.path.loops);
  Split step{d.stage(), loop.var.name(), random_factor(loop, d.choices)};
  if (d.choices.chance(d.often ? 0.6 : 0.2))
    step.tail = d.choices.chance(0.3) ? Tail::exact : Tail::shift_inward;
  return step;
}
/// A split of a producer whose buffer is rounded up.
Primitive padded_split(StepDraw& d) {
  const StagePath& path =
      d.stages.size() > 1 ? d.stages[static_cast<size_t>(d.choices.below(2))] : d.stages[0];
  return Split{path.stage->name, d.loop_of(path), d.choices.between(2, 6), Tail::pad};
}

Primitive tile(StepDraw& d) {
  const std::vector<const For*>& loops = d.path.loops;
  if (loops.size() < 2) return Tile{d.stage(), d.loop(), d.loop(), 2, 2};
  const auto n = static_cast<size_t>(d.choices.below(static_cast<int64_t>(loops.size()) - 1));
  const bool apart = d.choices.chance(0.2);  // people tile neighbours
  const For &outer = apart ? *d.choices.one_of(loops) : *loops[n],
            &inner = apart ? *d.choices.one_of(loops) : *loops[n + 1];
  return Tile{d.stage(), outer.var.name(), inner.var.name(), random_factor(outer, d.choices),
              random_factor(inner, d.choices)};
}

Primitive fuse(StepDraw& d) {
  if (d.path.loops.size() < 2 || d.choices.chance(0.1)) return Fuse{d.stage(), d.loop(), d.loop()};
  const auto n =
      static_cast<size_t>(d.choices.below(static_cast<int64_t>(d.path.loops.size()) - 1));
  return Fuse{d.stage(), d.path.loops[n]->var.name(), d.path.loops[n + 1]->var.name()};
}

Primitive reorder(StepDraw& d) {
  Reorder step{d.stage(), {}};
  std::vector<std::string> loops;
  for (const For* l : d.path.loops) loops.push_back(l->var.name());
  while (!loops.empty() && (step.loops.size() < 2 || d.choices.chance(0.5))) {
    const int64_t n = d.choices.below(static_cast<int64_t>(loops.size()));
    step.loops.push_back(loops[static_cast<size_t>(n)]);
    loops.erase(loops.begin() + n);
  }
  return step;
}

Primitive parallel(StepDraw& d) { return Parallel{d.stage(), d.loop()}; }
Primitive vectorize(StepDraw& d) {
  return Vectorize{d.stage(), d.loop(), d.choices.chance(0.6) ? Tail::mask : Tail::exact};
}
Primitive unroll(StepDraw& d) { return Unroll{d.stage(), d.loop()}; }
Primitive partition(StepDraw& d) { return Partition{d.stage(), d.loop()}; }

/// A stage and one that reads what it writes; now and then any two.
struct Link {
  const StagePath *from, *to;
};
bool unscheduled(const StagePath& path) {
  bool plain = path.loops.size() == path.stage->axes.size();
  for (size_t n = 0; plain && n < path.loops.size(); ++n)
    plain = path.loops[n]->var.name() == path.stage->axes[n].axis.var.name();
  return plain;
}

/// `back`: the reader is to be moved.
std::optional<Link> random_link(StepDraw& d, bool back) {
  std::vector<Link> links;
  for (const StagePath& a : d.stages)
    for (const StagePath& b : d.stages)
      for (const Buffer& loaded : loaded_by(*b.stage))
        for (const Buffer& stored : a.stage->outputs)
          if (loaded == stored && a.stage != b.stage) links.push_back({&a, &b});
  // Only a stage in its first place moves.
  std::vector<Link> movable;
  for (const Link& l : links)
    if (unscheduled(back ? *l.to : *l.from)) movable.push_back(l);
  if (!movable.empty() && !d.choices.chance(0.1)) links = movable;
  if (d.choices.chance(0.12)) return Link{&d.choices.one_of(d.stages), &d.choices.one_of(d.stages)};
  if (links.empty()) return std::nullopt;
  return d.choices.one_of(links);
}

Primitive compute_at(StepDraw& d) {
  const std::optional<Link> link = random_link(d, false);
  if (!link) return ComputeAt{"P", "C", "i"};
  return ComputeAt{link->from->stage->name, link->to->stage->name, d.loop_of(*link->to)};
}

Primitive reverse_compute_at(StepDraw& d) {
  const std::optional<Link> link = random_link(d, true);
  if (!link) return ReverseComputeAt{"D", "C", "i"};
  return ReverseComputeAt{link->to->stage->name, link->from->stage->name, d.loop_of(*link->from)};
}

Primitive compute_inline(StepDraw& d) { return ComputeInline{d.stage()}; }

std::vector<LayoutDim> random_layout(size_t rank, Choices& choices) {
  const int64_t n = choices.between(2, 5);
  std::vector<LayoutDim> layout;
  if (rank == 1) layout = {{0, n, 0}, {0, 1, n}};
  if (rank == 2) layout = {{1, n, 0}, {0, 1, 0}, {1, 1, n}};
  if (rank == 2 && choices.chance(0.3)) layout = {{1, 1, 0}, {0, 1, 0}};
  if (!layout.empty() && choices.chance(0.1)) layout.pop_back();  // does not hold every element
  return layout;
}

Primitive cache_read(StepDraw& d) {
  const std::vector<Buffer> buffers = loaded_by(*d.path.stage);
  CacheRead step{d.stage(), "X", d.loop()};
  if (d.choices.chance(0.35)) step.at = "root";
  if (buffers.empty()) return step;
  const Buffer& b = d.choices.one_of(buffers);
  step.buffer = b->name;
  if (d.choices.chance(0.05)) step.buffer = d.path.stage->outputs[0]->name;
  if (d.choices.chance(0.3)) step.layout = random_layout(b->shape.size(), d.choices);
  return step;
}

Primitive cache_write(StepDraw& d) { return CacheWrite{d.stage(), d.loop()}; }
Primitive decompose_reduction(StepDraw& d) { return DecomposeReduction{d.stage(), d.loop()}; }
Primitive set_scope(StepDraw& d) { return SetScope{d.path.stage->outputs[0]->name, Scope::reg}; }

/// An intrinsic whose formula is what the stage computes in its innermost loop (and, of a
/// reduction, in the one inside that): each buffer that it reads is an operand.
std::optional<Intrinsic> formula_of(const Stage& stage, int64_t group) {
  const Axis lane("lane", 4), r("r", group);
  std::vector<std::pair<Expr, Tensor>> operands;
  bool fits = true;
  const Expr value = rewrite(stage.values[0], [&](const Expr& e) -> Expr {
    const Load* n = e.as<Load>();
    if (!n) return e;
    for (const auto& [load, tensor] : operands)
      if (structural_equal(load, e)) return stage.combiner ? tensor(lane, r) : tensor(lane);
    std::vector<int64_t> shape = {4};
    if (stage.combiner) shape.push_back(group);
    const Tensor made = input(fmt::format("operand{}", operands.size()), e.dtype(), shape);
    operands.emplace_back(e, made);
    return stage.combiner ? made(lane, r) : made(lane);
  });
  walk(value, [&](const Expr& e) {
    const VarRef* v = e.as<VarRef>();
    fits = fits && (!v || v->var.same_as(lane.var) || v->var.same_as(r.var));
    return true;
  });
  if (!fits || operands.empty()) return std::nullopt;
  try {
    const Expr whole = stage.combiner ? reduce(stage.combiner, {value}, {r}) : value;
    return *declare_intrinsic("drawn", compute("C", {lane}, whole), {});
  } catch (const UserError&) {
    return std::nullopt;  // its combiner is none that is built in
  }
}

Primitive tensorize(StepDraw& d) {
  const Stage& stage = *d.path.stage;
  const std::vector<const For*>& loops = d.path.loops;
  const size_t inside = stage.combiner ? 2 : 1;
  if (loops.size() < inside || stage.values.size() != 1 || d.choices.chance(0.1))
    return Tensorize{stage.name, d.loop(), "dot4_u8i8_i32"};
  const For& loop = *loops[loops.size() - inside];
  const int64_t group = std::clamp<int64_t>(as_int(loops.back()->extent).value_or(1), 1, 64);
  const std::optional<Intrinsic> drawn = formula_of(stage, group);
  if (!drawn) return Tensorize{stage.name, loop.var.name(), "dot4_u8i8_i32"};
  return Tensorize{stage.name, loop.var.name(), *drawn};
}

/// Blocks of a few elements along some dimensions, in any order.
std::vector<LayoutDim> blocked_layout(size_t rank, Choices& rng) {
  std::vector<LayoutDim> out;
  for (int d = 0; d < static_cast<int>(rank); ++d) {
    int64_t divide = 1;
    while (rng.chance(0.4)) {
      const int64_t block = rng.between(2, 5);
      out.push_back({d, divide, block});
      divide *= block;
    }
    out.push_back({d, divide, 0});
  }
  for (size_t n = out.size(); n > 1; --n)
    std::swap(out[n - 1], out[static_cast<size_t>(rng.below(static_cast<int64_t>(n)))]);
  return out;
}

Primitive pack(StepDraw& d) {
  std::vector<Buffer> buffers = loaded_by(*d.path.stage);
  if (buffers.empty() || d.choices.chance(0.2)) buffers = d.path.stage->outputs;
  const Buffer& b = d.choices.one_of(buffers);
  return Pack{b->name, blocked_layout(b->shape.size(), d.choices),
              d.choices.chance(0.5) ? PackWhen::ahead : PackWhen::run_time};
}

/// A loop and a buffer that its body allocates, where there is one.
Primitive double_buffer(StepDraw& d) {
  std::vector<DoubleBuffer> candidates;
  for (const StagePath& p : d.stages)
    for (const For* l : p.loops)
      for (const Allocate* a = l->body.as<Allocate>(); a; a = a->body.as<Allocate>())
        candidates.push_back({p.stage->name, a->buffer->name, l->var.name()});
  return candidates.empty() ? DoubleBuffer{"C", "X", "i"} : d.choices.one_of(candidates);
}

/// Rows of a buffer that one of the stages writes, of two dimensions where there is one.
Primitive storage_align(StepDraw& d) {
  std::vector<Buffer> buffers;
  for (const StagePath& p : d.stages)
    if (p.stage->outputs[0]->shape.size() > 1) buffers.push_back(p.stage->outputs[0]);
  const std::string buffer = buffers.empty() ? "X" : d.choices.one_of(buffers)->name;
  const int64_t factor = d.choices.between(1, 9);
  return StorageAlign{buffer, d.choices.chance(0.2) ? 1 : 0, factor, d.choices.below(factor)};
}

Primitive prefetch(StepDraw& d) {
  const std::vector<Buffer> buffers = loaded_by(*d.path.stage);
  if (buffers.empty()) return Prefetch{d.stage(), "X", d.loop(), 1};
  return Prefetch{d.stage(), d.choices.one_of(buffers)->name, d.loop(), d.choices.between(1, 5),
                  d.choices.chance(0.3) ? d.loop() : ""};
}

Primitive annotate(StepDraw& d) {
  const char* key = d.choices.chance(0.1)   ? "user.n"
                    : d.choices.chance(0.5) ? "stream"
                                            : "no_partition";
  return Annotate{d.stage(), d.loop(), key, 1};
}

/// A loop of a reduction.
Primitive rfactor(StepDraw& d) {
  std::vector<const StagePath*> reductions;
  for (const StagePath& p : d.stages)
    if (p.stage->combiner) reductions.push_back(&p);
  if (reductions.empty()) return RFactor{d.stage(), d.loop()};
  const StagePath& path = *d.choices.one_of(reductions);
  std::vector<std::string> loops;
  for (const For* l : path.loops)
    if (l->kind == AxisKind::reduce || d.choices.chance(0.1)) loops.push_back(l->var.name());
  if (loops.empty()) return RFactor{path.stage->name, "i"};
  return RFactor{path.stage->name, d.choices.one_of(loops), d.choices.between(-1, 2)};
}

Primitive reverse_compute_inline(StepDraw& d) { return ReverseComputeInline{d.stage()}; }

/// Multiples for the axes of a sum.
Primitive pad_einsum(StepDraw& d) {
  std::vector<const StagePath*> sums;
  for (const StagePath& p : d.stages)
    if (p.stage->combiner && p.stage->combiner->name == "sum") sums.push_back(&p);
  const Stage& stage = sums.empty() ? *d.stages[0].stage : *d.choices.one_of(sums)->stage;
  PadEinsum step{stage.name, {}};
  for (size_t n = 0; n < stage.axes.size(); ++n)
    step.paddings.push_back(d.choices.chance(0.3) ? 1 : d.choices.between(2, 5));
  return step;
}

const StepKind& weighted_kind(Choices& choices, bool marks,
                              const std::vector<const StepKind*>& favourites) {
  auto weight = [&](const StepKind& k) {
    const auto times = std::count(favourites.begin(), favourites.end(), &k);
    return marks && k.structural ? 0 : k.weight + 30 * static_cast<int>(times);
  };
  int total = 0;
  for (const StepKind& k : step_kinds()) total += weight(k);
  int64_t left = choices.below(total);
  for (const StepKind& k : step_kinds())
    if ((left -= weight(k)) < 0) return k;
  return step_kinds().back();
}

}  // namespace

std::string StepDraw::loop_of(const StagePath& of) const {
  return of.loops.empty() ? "i" : choices.one_of(of.loops)->var.name();
}

const std::vector<StepKind>& step_kinds() {
  static const std::vector<StepKind> kKinds = {
      {"split", 16, true, split},
      {"tile", 4, true, tile},
      {"fuse", 8, true, fuse},
      {"reorder", 8, true, reorder},
      {"parallel", 4, false, parallel},
      {"vectorize", 3, false, vectorize},
      {"unroll", 2, false, unroll},
      {"partition", 2, false, partition},
      {"compute_at", 7, true, compute_at},
      {"reverse_compute_at", 7, true, reverse_compute_at},
      {"compute_inline", 4, true, compute_inline},
      {"cache_read", 8, true, cache_read},
      {"cache_write", 5, true, cache_write},
      {"decompose_reduction", 4, true, decompose_reduction},
      {"rfactor", 5, true, rfactor},
      {"reverse_compute_inline", 3, true, reverse_compute_inline},
      {"pad_einsum", 3, true, pad_einsum},
      {"split", 3, true, padded_split},
      {"tensorize", 3, false, tensorize},
      {"pack", 4, true, pack},
      {"double_buffer", 3, false, double_buffer},
      {"storage_align", 2, false, storage_align},
      {"prefetch", 2, false, prefetch},
      {"annotate", 2, false, annotate},
      {"set_scope", 2, false, set_scope},
  };
  return kKinds;
}

Primitive random_step(const Schedule& s, Choices& choices, bool marks,
                      const Favourites& favourites) {
  const StepKind& kind = weighted_kind(choices, marks, favourites.steps);
  std::vector<StagePath> stages = stage_paths(s.program().body);
  auto n = static_cast<size_t>(choices.below(static_cast<int64_t>(stages.size())));
  if (choices.chance(0.6))
    for (size_t k = 0; k < stages.size(); ++k)
      if (stages[k].stage->name == favourites.stage) n = k;
  StepDraw draw{s, choices, stages, stages[n],
                std::count(favourites.steps.begin(), favourites.steps.end(), &kind) > 0};
  return kind.make(draw);
}

Primitive random_step(const Schedule& s, Rng& rng) {
  Choices choices(rng.next());
  return random_step(s, choices);
}

bool is_structural(const Primitive& primitive) {
  const auto& kinds = step_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const StepKind& k) {
    return k.primitive == primitive_name(primitive);
  });
  return found != kinds.end() && found->structural;
}

}  // namespace tenon
