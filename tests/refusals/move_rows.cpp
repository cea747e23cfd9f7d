#include "rule_rows.h"
#include "schedule/tree.h"
#include "tests/unit/schedule/schedule_formulas.h"

namespace tenon {
namespace {

Schedule split_producer() {
  Schedule s = chain_schedule();
  s["P"].split("a", 2);
  return s;
}

/// C has its init from C.init.
Schedule decomposed() {
  Schedule s = relu_schedule();
  s["C"].decompose_reduction("i");
  return s;
}

Schedule vector_reader() {
  Schedule s = chain_schedule();
  s["C"].vectorize("i");
  return s;
}

/// P's only input is a copy that exists round its nest alone.
Schedule copied_input() {
  Schedule s = chain_schedule();
  s["P"].cache_read("X", "root");
  return s;
}

/// `s` with a stage changed.
Schedule changed(const Schedule& s, const std::string& stage,
                 const std::function<void(Stage&)>& change) {
  Program p = s.program();
  p.body = map_stages(p.body, [&](const Stage& x) {
    Stage out = x;
    if (x.name == stage) change(out);
    return out;
  });
  return {p, s.target()};
}

/// C[i,j] starts from Q[i,j].
Schedule started() {
  const Tensor a = input("A", f32, {8, 6}), b = input("B", f32, {6, 8}),
               x = input("X", f32, {8, 8});
  const Axis i("i", 8), j("j", 8), k("k", 6), u("u", 8), v("v", 8);
  const Tensor q = compute("Q", {u, v}, x(u, v) * Expr(2.0));
  const Tensor c = compute("C", {i, j}, sum(a(i, k) * b(k, j), {k}, {.start = {q(i, j)}}));
  return {make_program("started", {c}), wide_target()};
}

/// P[i,j] = X, Q = 2 P, S = P + Q, with Q at P's outer loop.
Schedule beside() {
  const Tensor x = input("X", f32, {8, 8});
  const Axis i("i", 8), j("j", 8), u("u", 8), v("v", 8), y("y", 8), z("z", 8);
  const Tensor p = compute("P", {i, j}, x(i, j));
  const Tensor q = compute("Q", {u, v}, p(u, v) * Expr(2.0));
  Schedule s(make_program("beside", {compute("S", {y, z}, p(y, z) + q(y, z))}), wide_target());
  s["Q"].reverse_compute_at("P", "i");
  return s;
}

/// S[i,j] = P[i,j] + P[j,i]
Schedule symmetric() {
  const Tensor x = input("X", f32, {8, 8});
  const Axis i("i", 8), j("j", 8), y("y", 8), z("z", 8);
  const Tensor p = compute("P", {i, j}, x(i, j));
  return {make_program("symmetric", {compute("S", {y, z}, p(y, z) + p(z, y))}), wide_target()};
}

Schedule reversed() {
  const Tensor x = input("X", f32, {9});
  const Axis a("a", 9), b("b", 9);
  const Tensor p = compute("P", {a}, x(a));
  return {make_program("back", {compute("Q", {b}, p(int_imm(8) - Expr(b)))}), wide_target()};
}

Schedule two_apart() {
  const Tensor x = input("X", f32, {8}), y = input("Y", f32, {8});
  const Axis i("i", 8), j("j", 8);
  const Tensor u = compute("U", {i}, x(i)), v = compute("V", {j}, y(j));
  return {make_program("apart", {u, v}), wide_target()};
}

/// Q also reads a buffer that nobody made.
Schedule unmade_input() {
  const Tensor x = input("X", f32, {9}), y = input("Y", f32, {9});
  const Axis a("a", 9), b("b", 9);
  const Tensor p = compute("P", {a}, x(a));
  Program program = make_program("unmade", {compute("Q", {b}, p(b) + y(b))});
  std::erase_if(program.params, [](const Param& q) { return q.buffer->name == "Y"; });
  return {program, wide_target()};
}

/// Column sums of a product's rows.
Schedule row_sums() {
  const Matmul m(8, 8, 8);
  const Axis y("y", 8), x("x", 8);
  return {make_program("row", {compute("R", {y}, sum(m.C(y, x), x))}), wide_target()};
}

/// C.store runs only where the reduction's guard holds, under both of its loops.
Schedule guarded_store() {
  Schedule s = relu_schedule(8, 8, 6);
  s["C"].split("k", 4);
  s["C"].reorder({"k.o", "k.i", "i", "j"});
  s["C"].cache_write("i");
  return s;
}

/// X's copy for D would be made where its buffer is not.
Schedule copied_producer() {
  Schedule s = relu_schedule();
  s["D"].cache_read("C", "root");
  return s;
}

}  // namespace

std::vector<RuleRow> compute_at_rows() {
  const Schedule chain = chain_schedule();
  return {
      {Rule::move_scheduled,
       split_producer(),
       ComputeAt{"P", "C", "i"},
       {"stage \"P\" has been scheduled already", "compute_at first"}},
      {Rule::two_writers,
       decomposed(),
       ComputeAt{"C", "D", "y"},
       {"another stage also writes C", "compute_at before decompose_reduction"}},
      {Rule::two_writers,
       decomposed(),
       ReverseComputeAt{"C", "D", "y"},
       {"another stage also writes C", "reverse_compute_at before decompose_reduction"}},
      {Rule::two_writers,
       decomposed(),
       ComputeInline{"C.init"},
       {"another stage also writes C; inlining \"C.init\" would lose it"}},
      {Rule::own_indices,
       changed(chain, "P", [](Stage& s) { s.indices[0] = int_imm(33) - s.indices[0]; }),
       ComputeAt{"P", "C", "i"},
       {"\"P\" is not indexed by its own axes, one per dimension"}},
      {Rule::move_into_vectorized,
       vector_reader(),
       ComputeAt{"P", "C", "i"},
       {"loop \"i\" is vectorized; computing a stage there", "choose a loop outside it"}},
      {Rule::compute_at_output,
       chain,
       ComputeAt{"D", "C", "i"},
       {"D is an output of the program", "use reverse_compute_at"}},
      {Rule::compute_at_init_above,
       started(),
       ComputeAt{"Q", "C", "k"},
       {"the init of \"C\" reads Q above its reduction loop \"k\"", "choose a loop outside it"}},
      {Rule::compute_at_reader_outside,
       chain,
       ComputeAt{"P", "D", "l"},
       {"stage \"C\" reads P outside loop \"l\"", "a loop that all readers share"}},
      {Rule::compute_at_already,
       chain,
       ComputeAt{"C", "C", "i"},
       {"loop \"i\" is already round stage \"C\""}},
      {Rule::compute_at_input_missing,
       copied_input(),
       ComputeAt{"P", "C", "i"},
       {"stage \"P\" reads X.cache, which does not exist at loop \"i\""}},
  };
}

std::vector<RuleRow> reverse_compute_at_rows() {
  const Schedule chain = chain_schedule();
  auto half = [](Stage& s) { s.axes[0].value = floor_div(s.axes[0].value, int_imm(2)); };
  return {
      {Rule::reverse_output_missing,
       copied_producer(),
       ReverseComputeAt{"C.cache", "C", "i"},
       {"stage \"C.cache\" writes C.cache, which does not exist at loop \"i\""}},
      {Rule::reverse_input_beside,
       chain,
       ReverseComputeAt{"D", "P", "a"},
       {"also reads C, which stage \"C\" writes after the loop"}},
      {Rule::reverse_input_beside,
       beside(),
       ReverseComputeAt{"S", "P", "j"},
       {"also reads Q, which stage \"Q\" writes outside loop \"j\" of the same nest"}},
      {Rule::reverse_input_missing,
       unmade_input(),
       ReverseComputeAt{"Q", "P", "a"},
       {"stage \"Q\" reads Y, which does not exist at loop \"a\""}},
      {Rule::reverse_unrelated,
       two_apart(),
       ReverseComputeAt{"V", "U", "i"},
       {"stage \"V\" reads nothing that is written inside loop \"i\""}},
      {Rule::reverse_reduction_part,
       row_sums(),
       ReverseComputeAt{"R", "C", "j"},
       {"the reduction of \"R\" over \"x\" needs all of it", "choose a loop outside"}},
      {Rule::reverse_empty,
       relu_schedule(4, 4, 0),
       ReverseComputeAt{"D", "C", "k"},
       {"loop \"k\" outside may be empty, and then \"D\" would not run"}},
      {Rule::reverse_meet,
       changed(copies_schedule(), "P", half),
       ReverseComputeAt{"Q", "P", "a"},
       {"\"P\" may write the same element of P in two iterations of \"a\""}},
      {Rule::reverse_anew,
       repeated(copies_schedule(), "a"),
       ReverseComputeAt{"Q", "P", "a"},
       {"stage \"P\" is computed anew in each iteration of \"t\""}},
      {Rule::reverse_last,
       guarded_store(),
       ReverseComputeAt{"D", "C.store", "i"},
       {"stage \"C.store\" runs only where",
        "the last iterations of the loops outside may not be"}},
      {Rule::reverse_index,
       reversed(),
       ReverseComputeAt{"Q", "P", "a"},
       {"dimension 0 is not one of its axes alone", "compute its producer at a loop of it"}},
      {Rule::reverse_cover,
       chain,
       ReverseComputeAt{"C", "P", "a"},
       {"covers 32 of the 34 elements of P along dimension 0"}},
      {Rule::reverse_parts,
       symmetric(),
       ReverseComputeAt{"S", "P", "i"},
       {"parts of its inputs that are written in different iterations"}},
      {Rule::reverse_needed_before,
       chain,
       ReverseComputeAt{"C", "D", "l"},
       {"stage \"D\" needs C before that loop has ended"}},
      {Rule::reverse_already,
       chain,
       ReverseComputeAt{"C", "C", "i"},
       {"loop \"i\" is already round stage \"C\"", "name a loop of a stage that it reads"}},
  };
}

}  // namespace tenon
