#pragma once
#include <tenon/ir/ops.h>
#include <tenon/ir/program.h>

namespace tenon {

inline Stmt loop(const Var& v, Expr extent, Stmt body, AxisKind kind = AxisKind::spatial,
                 LoopMark mark = LoopMark::serial) {
  return make_stmt(For{v, int_imm(0), std::move(extent), kind, mark, {}, std::move(body)});
}

/// C[i, j] = sum of A[i, k] * B[k, j] over 37 x 16 x 8, i split by 6 with a guard, j vectorised.
struct MatmulSample {
  Var i{"i"}, j{"j"}, k{"k"}, io{"i.o"}, ii{"i.i"}, jl{"j"}, kl{"k"};
  Buffer A{"A", f32, {37, 8}}, B{"B", f32, {8, 16}}, C{"C", f32, {37, 16}};
  Stage stage;
  Program program;

  MatmulSample() {
    stage.name = "C";
    stage.axes = {{Axis(i, 37), AxisKind::spatial, Expr(io) * 6 + Expr(ii)},
                  {Axis(j, 16), AxisKind::spatial, jl},
                  {Axis(k, 8), AxisKind::reduce, kl}};
    stage.spatial_guard = Expr(io) * 6 + Expr(ii) < Expr(37);
    stage.outputs = {C};
    stage.indices = {i, j};
    stage.values = {load(A, {i, k}) * load(B, {k, j})};
    stage.combiner = sum_combiner(f32);
    stage.init = {float_imm(0)};
    program = {"matmul", {{A}, {B}, {C, ParamRole::output}}, tree(stage)};
  }

  Stmt tree(const Stage& leaf) const {
    Stmt body = loop(jl, 16, make_stmt(leaf), AxisKind::spatial, LoopMark::vectorize);
    body = loop(ii, 6, loop(kl, 8, body, AxisKind::reduce));
    return loop(io, 7, body, AxisKind::spatial, LoopMark::parallel);
  }
};

}  // namespace tenon
