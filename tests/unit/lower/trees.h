#pragma once
#include <tenon/ir/ops.h>
#include <tenon/ir/program.h>
#include <tenon/ir/visit.h>

#include <functional>

namespace tenon {

// Small loop trees as the schedule primitives make them, written down by hand.

/// `loop` around `body`: 0..extent.
inline Stmt loop(const Var& v, int64_t extent, LoopMark mark, Stmt body,
                 AxisKind kind = AxisKind::spatial) {
  return make_stmt(For{v, int_imm(0), int_imm(extent), kind, mark, {}, std::move(body)});
}

/// An axis of extent n split by f: outer and inner loop, its binding, its guard where f does not
/// divide n.
struct SplitAxis {
  SplitAxis(const std::string& name, int64_t n, int64_t f)
      : axis(name, int_imm(n)),
        outer(name + ".o"),
        inner(name + ".i"),
        outer_extent((n + f - 1) / f),
        factor(f),
        value(Expr(outer) * int_imm(f) + Expr(inner)) {
    if (n % f != 0) guard = value < int_imm(n);
  }
  Axis axis;
  Var outer, inner;
  int64_t outer_extent, factor;
  Expr value, guard;
};

/// C[M, N] = A[M, K] * B[K, N] with loops i.o j.o k.o k.i i.i j.i; j.i vectorised, i.i unrolled,
/// i.o parallel. With `registers` the tile is accumulated in a register buffer and written at the
/// end of j.o.
struct MatmulTree {
  int64_t m, n, k, tile_m, tile_n, tile_k;
  bool registers = true;
};
Program matmul_tree(const MatmulTree& t);

/// Y[w] = sum over r of X[w + r - 1] * F[r] with X taken as 0 outside [0, W); w split by `tile`.
Program padded_conv_tree(int64_t width, int64_t tile, LoopMark inner_mark, bool partition);

/// out[i] = value(i) for i in 0..n, the loop marked.
Program map_tree(int64_t n, LoopMark mark, const std::vector<Buffer>& inputs, const Buffer& output,
                 const std::function<Expr(const Expr&)>& value);

}  // namespace tenon
