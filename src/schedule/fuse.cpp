#include <tenon/schedule/loop_primitives.h>

#include "schedule/mark.h"

namespace tenon {
namespace {

void check_kinds(const For& outer, const For& inner, const std::string& mark) {
  bool same = outer.kind == inner.kind;
  for (const StagePath& p : stage_paths(inner.body))
    same = same && binds_reduce(*p.stage, outer.var) == binds_reduce(*p.stage, inner.var);
  if (!same)
    refuse(Rule::fuse_kinds,
           fmt::format("loops \"{}\" and \"{}\" are of different kinds: one is a reduction loop",
                       outer.var.name(), inner.var.name()),
           "fuse spatial loops with spatial ones and reduction loops with reduction ones", mark);
}

}  // namespace

/// for x in 0..n: for y in 0..m: S(x, y)   ->   for x_y in 0..n*m: S(x_y // m, x_y % m)
Program Fuse::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, outer), in = find_loop(path, inner);
  const For &a = *path.loops[at], &b = *path.loops[in];
  const std::string mark = full_name(path, at);
  if (at == in)
    refuse(Rule::fuse_twice, fmt::format("loop \"{}\" is given twice", outer), {}, mark);
  if (!a.body.as<For>() || a.body.as<For>() != &b)
    refuse(Rule::fuse_adjacent,
           fmt::format("loop \"{}\" does not stand directly inside \"{}\"", inner, outer),
           "reorder first, or fuse before other stages are placed between the loops", mark);
  for (const For* l : {&a, &b})
    if (const std::string marked = mark_text(*l); !marked.empty())
      refuse(Rule::fuse_marked,
             fmt::format("loop \"{}\" is marked {}; marks come after fuse", l->var.name(), marked),
             "fuse first, then mark the new loop", full_name(path, l == &a ? at : in));
  check_kinds(a, b, mark);
  const std::optional<int64_t> m = extent_of(b), n = extent_of(a);
  if (!m)
    refuse(Rule::fuse_symbolic,
           fmt::format("the inner loop \"{}\" has the symbolic extent {}; fuse needs a constant",
                       inner, print(b.extent)),
           {}, full_name(path, in));

  const Var fused(outer + "_" + inner);
  VarMap values;
  values.emplace(a.var, *m == 1   ? Expr(fused)
                        : *m == 0 ? int_imm(0)
                                  : floor_div(fused, int_imm(*m)));
  // The loop stays in the bindings when it runs no iteration: the init of a reduction runs above
  // it.
  values.emplace(b.var, *m == 1                     ? int_imm(0)
                        : *m == 0 || (n && *n == 1) ? Expr(fused)
                                                    : floor_mod(fused, int_imm(*m)));
  if (n && *n == 1) values[a.var] = int_imm(0);
  Program out = program;
  out.body = replace_loop(program.body, a.var, [&](const For& l) {
    const Stmt body = substitute_loops(b.body, values);
    For loop = make_loop(fused, a.extent * b.extent, l.kind, body);
    loop.notes = l.notes;
    return make_stmt(std::move(loop));
  });
  return out;
}

}  // namespace tenon
