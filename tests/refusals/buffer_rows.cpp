#include <tenon/support/error.h>

#include "rule_rows.h"
#include "schedule/tree.h"
#include "tests/unit/schedule/schedule_formulas.h"

namespace tenon {
namespace {

/// P at C's outer loop of 4 x 8.
Schedule tiled_chain() {
  Schedule s = chain_schedule();
  s["C"].split("i", 8);
  s["P"].compute_at("C", "i.o");
  return s;
}

/// The same, with P made only in the first three tiles, or one element too few of it.
Schedule where_chain(bool part) {
  const Schedule s = tiled_chain();
  Program p = s.program();
  const StagePath c = find_stage(p, "C");
  p.body = map_stages(p.body, [&](const Stage& x) {
    Stage out = x;
    if (x.name == "P" && !part) out.spatial_guard = Expr(c.loops[0]->var) < int_imm(3);
    return out;
  });
  if (part)
    p.body = replace_loop(p.body, find_stage(p, "P").loops[1]->var, [](const For& l) {
      For out = l;
      out.extent = int_imm(9);
      return make_stmt(std::move(out));
    });
  return {p, s.target()};
}

/// C of relu in blocks of k, in a copy at i: C.load, C, C.store.
Schedule blocked() {
  Schedule s = relu_schedule();
  s["C"].split("k", 2);
  s["C"].reorder({"k.o", "i", "j", "k.i"});
  s["C"].cache_write("i");
  return s;
}

Schedule store_chain() {
  Schedule s = chain_schedule();
  s["C"].cache_write("i");
  return s;
}

Schedule shared_box() {
  Schedule s = chain_schedule();
  s["D"].reverse_compute_at("C", "i");
  return s;
}

Schedule grown() {
  Tensor t = input("X", i64, {70});
  for (int n = 0; n < 16; ++n) {
    const Axis i("i", 69 - n);
    t = compute("F" + std::to_string(n), {i}, t(i) + t(Expr(i) + int_imm(1)));
  }
  Schedule s(make_program("doubling", {t}), wide_target());
  for (int n = 0; n < 15; ++n)
    if (s.try_apply(ComputeInline{"F" + std::to_string(n)})) return s;
  throw InternalError("nothing was refused");
}

std::string first_stage(const Schedule& s) { return s.stages()[0]; }

/// Blocks of 7 of the fused loops of C.
Schedule diagonal() {
  Schedule s = matmul_schedule();
  s.fuse("i", "j");
  s.split("i_j", 7);
  return s;
}

/// A guard on a part of the columns' loops.
Schedule twice_split() {
  Schedule s = matmul_schedule();
  s.split("j", 6);
  s.split("j.o", 3);
  return s;
}

/// n rows of C in tiles of 4, all inside of the columns' loop.
Schedule symbolic_rows() {
  const Var n = symbol("n");
  const Tensor a = input("A", f32, {n, 6}), b = input("B", f32, {6, 20});
  const Axis i("i", n), j("j", 20), k("k", 6);
  Schedule s(make_program("any_rows", {compute("C", {i, j}, sum(a(i, k) * b(k, j), k))}),
             wide_target());
  s.split("i", 4);
  s.reorder({"j", "i.o", "i.i", "k"});
  return s;
}

Schedule rows_at(const std::string& loop) {
  Schedule s = rows_schedule();
  s["R"].compute_at("D", loop);
  return s;
}

Schedule split_depth(bool decompose) {
  Schedule s = matmul_schedule();
  s.split("k", 2);
  if (decompose) s.decompose_reduction("j");
  return s;
}

Schedule empty_depth() {
  Schedule s = matmul_schedule(12, 20, 0);
  s.reorder({"k", "i", "j"});
  return s;
}

/// The partial sums of an empty reduction in one loop with the columns.
Schedule fused_nothing() {
  Schedule s = matmul_schedule(12, 20, 0);
  s.rfactor("k");
  s["C.rf"].fuse("j", "k");
  return s;
}

}  // namespace

std::vector<RuleRow> buffer_rows() {
  const Schedule mm = matmul_schedule(), chain = chain_schedule();
  return {
      {Rule::no_buffer,
       mm,
       CacheRead{"C", "Q", "i"},
       {"there is no buffer \"Q\"; the buffers are"}},
      {Rule::scope_missing, mm, CacheRead{"C", "B", "j", Scope::shared}, {"has no shared memory"}},
      {Rule::scope_of_parameter,
       mm,
       SetScope{"B", Scope::reg},
       {"B is a parameter; parameters live in global memory", "cache_read or cache_write copy"}},
      {Rule::exact_box,
       diagonal(),
       CacheWrite{"C", "i_j.o"},
       {"cannot be proved that stage \"C\" writes exactly a box of C there: dimension"}},
      {Rule::exact_box,
       fused_nothing(),
       ReverseComputeAt{"C", "C.rf", "i"},
       {"loop \"j_k\" never runs, so stage \"C.rf\" writes nothing of C.rf there",
        "choose a loop outside all loops of the stage"}},
      {Rule::exact_box_guard,
       twice_split(),
       CacheWrite{"C", "i"},
       {"writes exactly a box there: it runs only where", "split with a rest"}},
      {Rule::inline_output, chain, ComputeInline{"D"}, {"an output is never inlined"}},
      {Rule::inline_map,
       relu_schedule(),
       ComputeInline{"C"},
       {"\"C\" is a reduction; only a map can be inlined", "compute it at a loop of its reader"}},
      {Rule::inline_order,
       blocked(),
       ComputeInline{"C.store"},
       {"stage \"C.load\" reads C before \"C.store\" writes it again"}},
      {Rule::inline_input_missing,
       store_chain(),
       ComputeInline{"C.store"},
       {"\"C.store\" reads C.cache, which does not exist where its reader \"D\" stands"}},
      {Rule::inline_limit,
       grown(),
       ComputeInline{first_stage(grown())},
       {"by inlining", "the limit is 4000", "at a loop of"}},
      {Rule::layout_parts,
       mm,
       CacheRead{"C", "B", "j", Scope::global, {{1, 16, 0}, {0, 1, 0}}},
       {"the layout does not store dimension 1 of B exactly once"}},
      {Rule::layout_dimension,
       mm,
       CacheRead{"C", "B", "j", Scope::global, {{0, 1, 0}, {1, 1, 0}, {5, 1, 0}}},
       {"the layout names dimension 5 of B, which has 2"}},
      {Rule::cache_read_where,
       where_chain(false),
       CacheRead{"C", "P", "i.i"},
       {"P is computed only where i.o < 3", "\"C\" is not known to run only there"}},
      {Rule::cache_read_part,
       where_chain(true),
       CacheRead{"C", "P", "i.i"},
       {"only a part of P is computed there", "cannot be proved that dimension 0 of the copy"}},
      {Rule::cache_read_incomplete,
       blocked(),
       CacheRead{"C.load", "C", "j"},
       {"stage \"C.store\" writes C after stage \"C.load\" has read it, in one loop"}},
      {Rule::cache_read_stale,
       mm,
       CacheRead{"C", "C", "i"},
       {"stage \"C\" writes C under the same loop", "would be stale", "use cache_write"}},
      {Rule::cache_read_unread, chain, CacheRead{"D", "X", "l"}, {"stage \"D\" does not read X"}},
      {Rule::cache_write_shared_box,
       shared_box(),
       CacheWrite{"C", "i"},
       {"stage \"D\" also touches C under loop \"i\"", "use cache_write before"}},
      {Rule::cache_write_empty,
       empty_depth(),
       CacheWrite{"C", "i"},
       {"the reduction loop \"k\" outside may be empty", "decompose_reduction first"}},
      {Rule::decompose_map,
       chain,
       DecomposeReduction{"C", "i"},
       {"stage \"C\" is not a reduction"}},
      {Rule::decompose_no_init,
       split_depth(true),
       DecomposeReduction{"C", "k.o"},
       {"has no init of its own; another stage starts its elements"}},
      {Rule::decompose_in_reduction,
       split_depth(false),
       DecomposeReduction{"C", "k.i"},
       {"inside the reduction loop \"k.o\"", "decompose at \"k.o\" or outside it"}},
      {Rule::decompose_anew,
       rows_at("j"),
       DecomposeReduction{"R", "i"},
       {"\"R\" is computed anew in each iteration of \"j\", which is not outside \"i\""}},
      {Rule::decompose_allocated,
       rows_at("i"),
       DecomposeReduction{"R", "i"},
       {"R is allocated inside loop \"i\"", "choose a loop inside its allocation"}},
      {Rule::exact_box_symbolic,
       symbolic_rows(),
       CacheWrite{"C", "j"},
       {"loop \"i.o\" has the symbolic extent (n + 3) // 4", "of dimension 0 of C inside it",
        "at a loop outside all loops"}},
      {Rule::fold_touched,
       blocked(),
       ReverseComputeInline{"C.store"},
       {"stage \"C.load\" touches C before \"C.store\" writes it"}},
      {Rule::scope_symbolic,
       symbolic_rows(),
       CacheRead{"C", "A", "j", Scope::reg},
       {"dimension 0 of A has the symbolic extent n; register memory is of constant size",
        "use Scope::global"}},
  };
}

}  // namespace tenon
