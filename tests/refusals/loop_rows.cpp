#include "rule_rows.h"
#include "tests/unit/schedule/schedule_formulas.h"

namespace tenon {
namespace {

Schedule ordered() {
  const Tensor x = input("X", i32, {4, 6});
  const auto later = combiner(
      "later", int_imm(0, i32), [](Expr, Expr b) { return b; }, Commutes::no);
  const Axis i("i", 4), k("k", 6);
  Schedule s(make_program("ordered", {compute("L", {i}, reduce(later, x(i, k), {k}))}),
             wide_target());
  s.split("k", 2);
  return s;
}

Schedule tiled_chain() {
  Schedule s = chain_schedule();
  s["C"].split("i", 8);
  s["P"].compute_at("C", "i.o");
  return s;
}

/// C.load reads in one iteration of k.o what C.store wrote in the one before.
Schedule stored() {
  Schedule s = matmul_schedule();
  s.split("k", 2);
  s.reorder({"k.o", "i", "j", "k.i"});
  s.cache_write("i");
  return s;
}

Schedule marked(LoopMark mark, const std::string& loop) {
  Schedule s = matmul_schedule();
  if (mark == LoopMark::parallel) s.parallel(loop);
  if (mark == LoopMark::vectorize) s.vectorize(loop, {.tail = Tail::mask});
  return s;
}

}  // namespace

std::vector<RuleRow> loop_rows() {
  const Schedule mm = matmul_schedule(), parallel_i = marked(LoopMark::parallel, "i"),
                 vector_i = marked(LoopMark::vectorize, "i"),
                 vector_j = marked(LoopMark::vectorize, "j");
  return {
      {Rule::no_stage, mm, Unroll{"D", "i"}, {"there is no stage \"D\"; the stages are \"C\""}},
      {Rule::no_loop, mm, Unroll{"C", "q"}, {"has no loop \"q\"", "its loops are \"i\", \"j\""}},
      {Rule::mark_other, vector_j, Unroll{"C", "j"}, {"loop \"j\" is already marked vectorize"}},
      {Rule::split_factor, mm, Split{"C", "i", 0}, {"the factor is 0", "at least 1"}},
      {Rule::split_tail_word, mm, Split{"C", "i", 5, Tail::mask}, {"tail mask is for vectorize"}},
      {Rule::split_marked,
       parallel_i,
       Split{"C", "i", 2},
       {"marked parallel", "split first, then mark"}},
      {Rule::split_exact,
       mm,
       Split{"C", "i", 5, Tail::exact},
       {"extent 12, which 5 does not divide", "choose a divisor"}},
      {Rule::fuse_twice, mm, Fuse{"C", "i", "i"}, {"loop \"i\" is given twice"}},
      {Rule::fuse_adjacent,
       mm,
       Fuse{"C", "i", "k"},
       {"loop \"k\" does not stand directly inside \"i\"", "reorder first"}},
      {Rule::fuse_marked,
       parallel_i,
       Fuse{"C", "i", "j"},
       {"marked parallel", "fuse first, then mark"}},
      {Rule::fuse_kinds, mm, Fuse{"C", "j", "k"}, {"different kinds: one is a reduction loop"}},
      {Rule::fuse_symbolic,
       with_symbolic(mm, "j"),
       Fuse{"C", "i", "j"},
       {"the inner loop \"j\" has the symbolic extent n"}},
      {Rule::reorder_twice, mm, Reorder{"C", {"i", "i"}}, {"loop \"i\" is named twice"}},
      {Rule::reorder_between,
       tiled_chain(),
       Reorder{"C", {"i.i", "i.o"}},
       {"something stands between loops \"i.o\" and \"i.i\""}},
      {Rule::reorder_ordered,
       ordered(),
       Reorder{"L", {"k.i", "k.o"}},
       {"combiner \"later\" of stage \"L\" does not commute"}},
      {Rule::reorder_dependent,
       stored(),
       Reorder{"C", {"i", "k.o"}},
       {"in another iteration of \"k.o\"", "iterations that can change places"}},
      {Rule::iterations_meet,
       mm,
       Parallel{"C", "k"},
       {"\"k\" is a reduction loop of stage \"C\"", "parallel needs a spatial loop", "rfactor"}},
      {Rule::iterations_meet,
       repeated(chain_schedule(), "a"),
       Parallel{"P", "t"},
       {"\"P\" may write the same element of P in two iterations of \"t\""}},
      {Rule::parallel_in_vectorized,
       vector_i,
       Parallel{"C", "j"},
       {"inside the vectorized loop \"i\"", "run an outer loop in parallel"}},
      {Rule::vectorize_allocated,
       tiled_chain(),
       Vectorize{"C", "i.o", Tail::mask},
       {"buffer P is allocated inside loop \"i.o\"", "vectorize a loop inside"}},
      {Rule::vectorize_nested,
       vector_j,
       Vectorize{"C", "i", Tail::mask},
       {"loop \"j\" is vectorized already"}},
      {Rule::vectorize_tail_word,
       mm,
       Vectorize{"C", "j", Tail::guard},
       {"tail guard is for split"}},
      {Rule::vectorize_symbolic,
       with_symbolic(mm, "j"),
       Vectorize{"C", "j", Tail::mask},
       {"loop \"j\" has the symbolic extent n", "split it by the number of lanes"}},
      {Rule::vectorize_lanes,
       mm,
       Vectorize{"C", "j"},
       {"extent 20; vectorize needs a multiple of 16", "{.tail = Tail::mask}"}},
      {Rule::unroll_symbolic,
       with_symbolic(mm, "j"),
       Unroll{"C", "j"},
       {"symbolic extent n", "split it by a constant first"}},
      {Rule::unroll_limit,
       matmul_schedule(2000),
       Unroll{"C", "i"},
       {"give 2000 copies of its body; the limit is 1024", "split it"}},
      {Rule::partition_nothing,
       mm,
       Partition{"C", "i"},
       {"depends on loop \"i\"", "nothing to peel"}},
  };
}

}  // namespace tenon
