#include <tenon/schedule/loop_primitives.h>

#include "schedule/mark.h"
#include "schedule/split_tails.h"

namespace tenon {
namespace {

/// Adds the condition to the guard that the loop concerns: reduce_guard of stages whose reduction
/// it runs, else spatial_guard (also of a scan, which has no init to run where the guard fails).
Stmt add_guard(const Stmt& body, const std::vector<Var>& loops, const Expr& condition) {
  return map_stages(body, [&](const Stage& stage) {
    Stage out = stage;
    bool reduce = false;
    for (const Var& v : loops) reduce = reduce || (stage.combiner && binds_reduce(stage, v));
    Expr& guard = reduce ? out.reduce_guard : out.spatial_guard;
    guard = both(guard, condition);
    return out;
  });
}

}  // namespace

/// for x in 0..n: S(x)   ->   for x.o in 0..ceil(n/f): for x.i in 0..f: S(x.o*f + x.i)  if x.o*f +
/// x.i < n; with tail shift_inward: S(min(x.o*f, n - f) + x.i)
Program Split::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  const For& old = *path.loops[at];
  const std::string mark = full_name(path, at);
  if (factor < 1)
    refuse(Rule::split_factor,
           fmt::format("the factor is {}; a split needs a factor of at least 1", factor), {}, mark);
  if (tail == Tail::mask)
    refuse(Rule::split_tail_word,
           "tail mask is for vectorize; a split guards its rest (guard), has none (exact), shifts "
           "its last tile (shift_inward) or rounds buffers up (pad)",
           {}, mark);
  if (const std::string marked = mark_text(old); !marked.empty())
    refuse(Rule::split_marked,
           fmt::format("loop \"{}\" is marked {}; marks come after the splits", loop, marked),
           "split first, then mark one of the new loops", mark);

  const std::optional<int64_t> n = extent_of(old);
  const bool exact = n && *n % factor == 0;
  if (tail == Tail::exact && !exact)
    refuse(Rule::split_exact,
           fmt::format("loop \"{}\" has extent {}, which {} does not divide", loop,
                       print(old.extent), factor),
           "choose a divisor, or leave the tail to a guard with {.tail = Tail::guard}", mark);
  BufferMap padded;
  if (tail == Tail::shift_inward && !exact) check_shift(program, path, at, factor);
  if (tail == Tail::pad && !exact) {
    if (!n)
      refuse(Rule::split_pad_symbolic,
             fmt::format("loop \"{}\" has the symbolic extent {}; what is padded needs a constant",
                         loop, print(old.extent)),
             "use {.tail = Tail::guard}", mark);
    padded = padded_buffers(program, path, at, (*n / factor + 1) * factor);
  }
  const Expr outer_extent = n ? int_imm(*n / factor + (*n % factor != 0))
                              : floor_div(old.extent + int_imm(factor - 1), int_imm(factor));
  const Var outer(loop + ".o"), inner(loop + ".i");
  Expr first = Expr(outer) * int_imm(factor);
  if (tail == Tail::shift_inward && !exact) first = min(first, old.extent - int_imm(factor));
  const Expr value = first + inner;

  Program out = program;
  out.body = replace_loop(program.body, old.var, [&](const For& l) {
    VarMap values;
    values.emplace(l.var, value);
    Stmt body = substitute_loops(l.body, values);
    if (tail == Tail::guard && !exact) body = add_guard(body, {outer, inner}, value < l.extent);
    For in = make_loop(inner, int_imm(factor), l.kind, body);
    For round = make_loop(outer, outer_extent, l.kind, make_stmt(std::move(in)));
    round.notes = l.notes;
    return make_stmt(std::move(round));
  });
  if (!padded.empty()) out.body = with_padded_buffers(out.body, padded);
  return out;
}

}  // namespace tenon
