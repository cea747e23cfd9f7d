#include <tenon/schedule/stage_primitives.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "schedule/kernel_rules.h"
#include "schedule/place.h"

namespace tenon {
namespace {

/// Loops outside the first one inside `at` that run a reduction of the stage.
std::vector<const For*> enclosing_reductions(const StagePath& path, size_t first) {
  std::vector<const For*> out;
  for (size_t n = 0; n < first; ++n)
    if (binds_reduce(*path.stage, path.loops[n]->var)) out.push_back(path.loops[n]);
  return out;
}

void check_alone(const Program& program, const StagePath& path, const For* place,
                 const std::string& mark) {
  for (const Buffer& b : path.stage->outputs)
    for (const StagePath& other : stage_paths(program.body)) {
      if (other.stage == path.stage || !is_under(other, place)) continue;
      if (reads(*other.stage, b) || writes(*other.stage, b))
        refuse(Rule::cache_write_shared_box,
               fmt::format("stage \"{}\" also touches {} under loop \"{}\"", other.stage->name,
                           b->name, place->var.name()),
               "use cache_write before other stages are placed there", mark);
    }
}

/// A map over the box of the stage's output: outputs[indices] = values, over the axes that index
/// it.
Stage box_stage(const Stage& stage, const std::string& name, std::vector<Buffer> outputs,
                std::vector<Expr> values) {
  Stage out;
  out.name = name;
  TENON_CHECK(stage.indices.size() <= stage.axes.size(), "{} has too few axes", stage.name);
  out.axes.assign(stage.axes.begin(),
                  stage.axes.begin() + static_cast<std::ptrdiff_t>(stage.indices.size()));
  out.outputs = std::move(outputs);
  out.indices = stage.indices;
  out.values = std::move(values);
  return out;
}

/// C.load: the cache starts from the partial results, or from the init in the first iteration of
/// the reductions outside.
Stmt load_nest(const Stage& stage, const std::string& name, const std::vector<Buffer>& caches,
               const LoopBox& box, const std::vector<const For*>& reductions, Simplifier& math) {
  std::vector<AxisBinding> outside;
  Expr first;
  for (const For* l : reductions) {
    const Axis axis(l->var.name(), l->extent);
    outside.push_back({axis, AxisKind::spatial, l->var});
    first = both(first, Expr(axis) == int_imm(0));
  }
  std::vector<Expr> values;
  for (size_t n = 0; n < caches.size(); ++n) {
    const Expr partial = load(stage.outputs[n], stage.indices);
    values.push_back(stage.init.empty() ? partial : select(first, stage.init[n], partial));
  }
  Stmt nest = nest_over_box(box_stage(stage, name, caches, std::move(values)), box, math);
  if (stage.init.empty()) return nest;
  return map_stages(nest, [&](const Stage& s) {
    Stage out = s;
    out.axes.insert(out.axes.end(), outside.begin(), outside.end());
    return out;
  });
}

/// Where a guard on the reduction fails for a whole iteration, nothing happens to the elements; but
/// the first iteration starts them.
void add_reduce_conditions(const StagePath& path, size_t first,
                           const std::vector<const For*>& reductions, LoopBox& box,
                           Simplifier& math) {
  VarMap start;
  for (const For* l : reductions) start.emplace(l->var, int_imm(0));
  for (const Expr& c : outer_conditions(path.stage->reduce_guard, path, first, math))
    if (path.stage->init.empty() || math.prove(substitute(c, start))) box.conditions.push_back(c);
}

}  // namespace

/// for k.o: for x: for k.i: C += ...   ->   for k.o: for x: { C.load; for k.i: C.cache += ...;
/// C.store }
Program CacheWrite::apply(const Program& program, const Target& target) const {
  const StagePath path = find_stage(program, stage);
  const size_t first = find_loop(path, at) + 1;
  const For* place = path.loops[first - 1];
  const Stage& old = *path.stage;
  const std::string mark = full_name(path, first - 1);
  check_not_vectorized(path, first - 1, "a copy");
  check_alone(program, path, place, mark);
  if (!indexed_by_axes(old)) refuse(Rule::own_indices, why_not_indexed(old), {}, mark);
  check_scope(target, scope, mark);
  LoopBox box = exact_box(path, first);
  check_scope_size(old.outputs[0]->name, scope, sides(box), mark);
  Simplifier math = math_for(path);
  const std::vector<const For*> reductions = enclosing_reductions(path, first);
  add_reduce_conditions(path, first, reductions, box, math);
  for (const For* l : reductions)
    if (!old.init.empty() && may_be_empty(*l))
      refuse(Rule::cache_write_empty,
             fmt::format(
                 "the reduction loop \"{}\" outside may be empty, and then nothing would write {}",
                 l->var.name(), old.outputs[0]->name),
             "decompose_reduction first", mark);

  Stage work = old;
  for (Buffer& b : work.outputs)
    b = Buffer(fresh_name(program, b->name + ".cache"), b->dtype, b->shape, scope);
  const bool partial = old.combiner && (old.init.empty() || !reductions.empty());
  Stmt load_in;
  if (partial) {
    load_in =
        load_nest(old, fresh_name(program, stage + ".load"), work.outputs, box, reductions, math);
    work.init.clear();
  }
  std::vector<Expr> copies;
  for (const Buffer& b : work.outputs) copies.push_back(load(b, old.indices));
  const Stmt store_out = nest_over_box(
      box_stage(old, fresh_name(program, stage + ".store"), old.outputs, std::move(copies)), box,
      math);

  Program out = program;
  out.body =
      replace_stage(program.body, stage, [&](const Stage&) { return make_stmt(Stage(work)); });
  out.body = surround_body(out.body, place->var, work.outputs, load_in, store_out);
  return out;
}

}  // namespace tenon
