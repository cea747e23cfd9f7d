#pragma once
#include <tenon/te/te.h>

namespace tenon {

struct GemmOptions {
  bool transpose_a = false;  // A is [k, m]
  bool transpose_b = false;  // B is [n, k]
  double alpha = 1;
  double beta = 1;
};

/// a[..., m, k] b[..., k, n] -> [..., m, n]. The leading dimensions broadcast; a 1-D operand is a
/// row (a) or a column (b) and its dimension drops from the result, as numpy's matmul does. Sums of
/// f16 and bf16 are kept in f32. UserError for: rank 0, different types, k that differs, leading
/// dimensions that do not broadcast.
Tensor matmul(const Tensor& a, const Tensor& b, const std::string& name = "matmul");

/// matmul of narrow numbers whose sums stay wide: bytes in i32, halves in f32. a and b may differ
/// in type. UserError as for matmul, and for types that are not summed in one.
Tensor matmul_wide(const Tensor& a, const Tensor& b, const std::string& name = "matmul_wide");

/// alpha * op(a) op(b) + beta * c -> [m, n]; c (may be undefined) broadcasts to the result.
Tensor gemm(const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options = {},
            const std::string& name = "gemm");

/// Integer product of a - a_zero and b - b_zero in i32, the leading dimensions broadcasting. An
/// undefined zero point counts as 0; one of rank 1 holds a value for each row of a or column of b.
Tensor matmul_integer(const Tensor& a, const Tensor& b, const Tensor& a_zero, const Tensor& b_zero,
                      const std::string& name = "matmul");

}  // namespace tenon
