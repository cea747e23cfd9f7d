#pragma once
#include <tenon/schedule/schedule.h>

namespace tenon {

/// A machine with 512-bit vectors, the same wherever the tests run.
inline Target wide_target() {
  Target t;
  t.name = "x86-64/avx512";
  t.vector_bits = 512;
  t.vector_registers = 32;
  t.has_fma = t.has_masks = true;
  return t;
}

/// C[i,j] = sum over k of A[i,k] * B[k,j]
struct Matmul {
  Tensor A, B, C;
  Axis i, j, k;
  Matmul(int64_t m, int64_t n, int64_t depth, DType t = f32)
      : A(input("A", t, {m, depth})),
        B(input("B", t, {depth, n})),
        i("i", m),
        j("j", n),
        k("k", depth) {
    C = compute("C", {i, j}, sum(A(i, k) * B(k, j), k));
  }
  Program program() const { return make_program("matmul", {C}); }
};

inline void verify_tree(const Schedule& s) { verify(s.program(), Form::LoopTree); }

}  // namespace tenon
