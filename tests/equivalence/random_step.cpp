#include "random_step.h"

#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>

namespace tenon {
namespace {

template <class T>
const T& one_of(const std::vector<T>& all, Rng& rng) {
  return all[static_cast<size_t>(rng.below(static_cast<int64_t>(all.size())))];
}

std::string random_loop(const StagePath& path, Rng& rng) {
  return path.loops.empty() ? "i" : one_of(path.loops, rng)->var.name();
}

std::vector<Buffer> loaded_by(const Stage& stage) {
  std::vector<Buffer> out;
  std::vector<Expr> all = stage.values;
  all.insert(all.end(), stage.indices.begin(), stage.indices.end());
  for (const Expr& e : all)
    walk(e, [&](const Expr& part) {
      if (const Load* l = part.as<Load>()) out.push_back(l->buffer);
      return true;
    });
  return out;
}

Primitive random_reorder(const StagePath& path, Rng& rng) {
  Reorder step{path.stage->name, {}};
  std::vector<std::string> loops;
  for (const For* l : path.loops) loops.push_back(l->var.name());
  while (!loops.empty() && (step.loops.size() < 2 || rng.chance(0.5))) {
    const auto n = rng.below(static_cast<int64_t>(loops.size()));
    step.loops.push_back(loops[static_cast<size_t>(n)]);
    loops.erase(loops.begin() + n);
  }
  return step;
}

Primitive random_fuse(const StagePath& path, Rng& rng) {
  if (path.loops.size() < 2) return Fuse{path.stage->name, "i", "j"};
  const auto n = static_cast<size_t>(rng.below(static_cast<int64_t>(path.loops.size()) - 1));
  return Fuse{path.stage->name, path.loops[n]->var.name(), path.loops[n + 1]->var.name()};
}

Primitive random_cache_read(const StagePath& path, Rng& rng) {
  const std::vector<Buffer> buffers = loaded_by(*path.stage);
  CacheRead step{path.stage->name, buffers.empty() ? "X" : one_of(buffers, rng)->name,
                 random_loop(path, rng)};
  if (rng.chance(0.2)) step.at = "root";
  if (!buffers.empty() && one_of(buffers, rng)->shape.size() == 2 && rng.chance(0.3))
    step.layout = {{1, 4, 0}, {0, 1, 0}, {1, 1, 4}};
  return step;
}

/// A stage to a loop of one that it reads from or is read by.
Primitive random_move(const std::vector<StagePath>& stages, Rng& rng) {
  struct Link {
    const StagePath *from, *to;
  };
  std::vector<Link> links;
  for (const StagePath& a : stages)
    for (const StagePath& b : stages)
      for (const Buffer& loaded : loaded_by(*b.stage))
        for (const Buffer& stored : a.stage->outputs)
          if (loaded == stored && a.stage != b.stage) links.push_back({&a, &b});
  if (links.empty()) return ComputeAt{"P", "C", "i"};
  const Link& l = one_of(links, rng);
  if (rng.chance(0.5))
    return ComputeAt{l.from->stage->name, l.to->stage->name, random_loop(*l.to, rng)};
  return ReverseComputeAt{l.to->stage->name, l.from->stage->name, random_loop(*l.from, rng)};
}

Primitive random_mark(const StagePath& path, Rng& rng) {
  const std::string& stage = path.stage->name;
  const std::string loop = random_loop(path, rng);
  switch (rng.below(5)) {
    case 0:
    case 1:
      return Parallel{stage, loop};
    case 2:
      return Vectorize{stage, loop, rng.chance(0.6) ? Tail::mask : Tail::exact};
    case 3:
      return Unroll{stage, loop};
    default:
      return Partition{stage, loop};
  }
}

/// A loop of a reduction, preferably an inner one.
Primitive random_rfactor(const std::vector<StagePath>& stages, Rng& rng) {
  std::vector<StagePath> reductions;
  for (const StagePath& p : stages)
    if (p.stage->combiner) reductions.push_back(p);
  if (reductions.empty()) return RFactor{stages[0].stage->name, "i"};
  const StagePath& path = one_of(reductions, rng);
  std::vector<std::string> loops;
  for (const For* l : path.loops)
    if (l->kind == AxisKind::reduce || rng.chance(0.1)) loops.push_back(l->var.name());
  if (loops.empty()) return RFactor{path.stage->name, "i"};
  return RFactor{path.stage->name, one_of(loops, rng), rng.between(-1, 2)};
}

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

Primitive random_tensorize(const StagePath& path, Rng& rng) {
  const Stage& stage = *path.stage;
  const size_t inside = stage.combiner ? 2 : 1;
  if (path.loops.size() < inside || stage.values.size() != 1 || rng.chance(0.1))
    return Tensorize{stage.name, random_loop(path, rng), "dot4_u8i8_i32"};
  const For& loop = *path.loops[path.loops.size() - inside];
  const int64_t group = std::clamp<int64_t>(as_int(path.loops.back()->extent).value_or(1), 1, 64);
  const std::optional<Intrinsic> drawn = formula_of(stage, group);
  if (!drawn) return Tensorize{stage.name, loop.var.name(), "dot4_u8i8_i32"};
  return Tensorize{stage.name, loop.var.name(), *drawn};
}

/// Blocks of a few elements along some dimensions, in any order.
std::vector<LayoutDim> random_layout(size_t rank, Rng& rng) {
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

Primitive random_pack(const StagePath& path, Rng& rng) {
  std::vector<Buffer> buffers = loaded_by(*path.stage);
  if (buffers.empty() || rng.chance(0.2)) buffers = path.stage->outputs;
  const Buffer& b = one_of(buffers, rng);
  return Pack{b->name, random_layout(b->shape.size(), rng),
              rng.chance(0.5) ? PackWhen::ahead : PackWhen::run_time};
}

/// A loop and a buffer that its body allocates, where there is one.
Primitive random_double_buffer(const std::vector<StagePath>& stages, Rng& rng) {
  std::vector<DoubleBuffer> candidates;
  for (const StagePath& p : stages)
    for (const For* l : p.loops)
      for (const Allocate* a = l->body.as<Allocate>(); a; a = a->body.as<Allocate>())
        candidates.push_back({p.stage->name, a->buffer->name, l->var.name()});
  return candidates.empty() ? DoubleBuffer{"C", "X", "i"} : one_of(candidates, rng);
}

/// Rows of a buffer that one of the stages writes, of two dimensions where there is one.
Primitive random_align(const std::vector<StagePath>& stages, Rng& rng) {
  std::vector<Buffer> buffers;
  for (const StagePath& p : stages)
    if (p.stage->outputs[0]->shape.size() > 1) buffers.push_back(p.stage->outputs[0]);
  const std::string buffer = buffers.empty() ? "X" : one_of(buffers, rng)->name;
  const int64_t factor = rng.between(1, 9);
  return StorageAlign{buffer, rng.chance(0.8) ? 0 : 1, factor, rng.below(factor)};
}

Primitive random_note(const std::vector<StagePath>& stages, const StagePath& path, Rng& rng) {
  const std::string& stage = path.stage->name;
  const std::vector<Buffer> buffers = loaded_by(*path.stage);
  switch (rng.below(4)) {
    case 0:
      return random_align(stages, rng);
    case 1:
      if (buffers.empty()) return Prefetch{stage, "X", random_loop(path, rng), 1};
      return Prefetch{stage, one_of(buffers, rng)->name, random_loop(path, rng), rng.between(1, 5)};
    case 2:
      return Annotate{stage, random_loop(path, rng), rng.chance(0.7) ? "no_partition" : "user.n",
                      1};
    default:
      return random_double_buffer(stages, rng);
  }
}

}  // namespace

Primitive random_step(const Schedule& s, Rng& rng) {
  const std::vector<StagePath> stages = stage_paths(s.program().body);
  const StagePath& path = one_of(stages, rng);
  const std::string& stage = path.stage->name;
  switch (rng.below(26)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return Split{stage, random_loop(path, rng), rng.between(1, 9),
                   rng.chance(0.9) ? Tail::guard : Tail::exact};
    case 4:
      return Tile{stage, random_loop(path, rng), random_loop(path, rng), rng.between(2, 5),
                  rng.between(2, 5)};
    case 5:
    case 6:
      return random_fuse(path, rng);
    case 7:
    case 8:
      return random_reorder(path, rng);
    case 9:
    case 10:
      return random_mark(path, rng);
    case 11:
    case 12:
    case 13:
      return random_move(stages, rng);
    case 14:
      return ComputeInline{stage};
    case 15:
    case 16:
      return random_cache_read(path, rng);
    case 17:
      return CacheWrite{stage, random_loop(path, rng)};
    case 18:
      return DecomposeReduction{stage, random_loop(path, rng)};
    case 19:
    case 20:
      return random_rfactor(stages, rng);
    case 21:
      return random_tensorize(path, rng);
    case 22:
    case 23:
      return random_note(stages, path, rng);
    case 24:
      return random_pack(path, rng);
    default:
      return SetScope{path.stage->outputs[0]->name, Scope::reg};
  }
}

}  // namespace tenon
