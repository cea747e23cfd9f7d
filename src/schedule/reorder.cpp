#include <tenon/schedule/loop_primitives.h>

#include <algorithm>

#include "schedule/dependence.h"

namespace tenon {
namespace {

/// Places of the named loops in the path, in the order named; refuses a loop named twice.
std::vector<size_t> places_of(const StagePath& path, const std::vector<std::string>& loops) {
  std::vector<size_t> out;
  for (const std::string& loop : loops) {
    out.push_back(find_loop(path, loop));
    if (std::count(out.begin(), out.end(), out.back()) > 1)
      refuse(Rule::reorder_twice, fmt::format("loop \"{}\" is named twice", loop), {},
             full_name(path, out.back()));
  }
  return out;
}

void check_nest(const StagePath& path, size_t first, size_t last) {
  for (size_t n = first; n < last; ++n)
    if (path.loops[n]->body.as<For>() != path.loops[n + 1])
      refuse(Rule::reorder_between,
             fmt::format("something stands between loops \"{}\" and \"{}\"",
                         path.loops[n]->var.name(), path.loops[n + 1]->var.name()),
             "reorder before other stages or buffers are placed between them",
             full_name(path, n + 1));
}

/// The loops that run a reduction with an ordered combiner, or a scan, keep their order.
void check_ordered(const StagePath& path, const std::vector<const For*>& before,
                   const std::vector<const For*>& after) {
  for (const StagePath& p : stage_paths(before.back()->body)) {
    if (p.stage->combiner && p.stage->combiner->commutative) continue;
    std::vector<const For*> reduce_before, reduce_after;
    for (const For* l : before)
      if (binds_reduce(*p.stage, l->var)) reduce_before.push_back(l);
    for (const For* l : after)
      if (binds_reduce(*p.stage, l->var)) reduce_after.push_back(l);
    if (reduce_before != reduce_after)
      refuse(Rule::reorder_ordered,
             p.stage->combiner
                 ? fmt::format("combiner \"{}\" of stage \"{}\" does not commute; its reduction "
                               "loops keep their order",
                               p.stage->combiner->name, p.stage->name)
                 : fmt::format("stage \"{}\" is a scan; the loops along it keep their order",
                               p.stage->name),
             {}, path.stage->name + ":" + reduce_before[0]->var.name());
  }
}

/// An ordered combiner's own accumulation was dealt with by check_ordered.
void check_independent(const StagePath& path, size_t first, size_t last) {
  if (const auto conflict = conflict_in_nest(path, first, last, Accumulation::allowed))
    refuse(Rule::reorder_dependent,
           conflict->why + "; reorder needs iterations that can change places", {},
           full_name(path, conflict->loop));
}

}  // namespace

/// reorder({z, x}):  for x: for y: for z: S   ->   for z: for y: for x: S
Program Reorder::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const std::vector<size_t> named = places_of(path, loops);
  if (named.size() < 2) return program;
  const auto [first, last] = std::minmax_element(named.begin(), named.end());
  check_nest(path, *first, *last);

  std::vector<size_t> free = named;
  std::sort(free.begin(), free.end());
  std::vector<const For*> before(path.loops.begin() + static_cast<std::ptrdiff_t>(*first),
                                 path.loops.begin() + static_cast<std::ptrdiff_t>(*last + 1));
  std::vector<const For*> after = before;
  for (size_t n = 0; n < named.size(); ++n) after[free[n] - *first] = path.loops[named[n]];
  if (after == before) return program;
  check_ordered(path, before, after);
  check_independent(path, *first, *last);

  Program out = program;
  out.body = replace_loop(program.body, before[0]->var, [&](const For&) {
    Stmt body = before.back()->body;
    for (size_t n = after.size(); n-- > 0;) {
      For loop = *after[n];
      loop.body = body;
      body = make_stmt(std::move(loop));
    }
    return body;
  });
  return out;
}

}  // namespace tenon
