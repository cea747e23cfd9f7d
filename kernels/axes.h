#pragma once
#include <tenon/te/te.h>

#include <string>
#include <vector>

namespace tenon {

/// Axes over a constant shape named prefix0, prefix1, ...
std::vector<Axis> axes_over(const std::vector<int64_t>& shape, std::string_view prefix = "i");
/// Axes with the given names; as many names as dimensions.
std::vector<Axis> named_axes(const std::vector<int64_t>& shape,
                             const std::vector<std::string>& names);
std::vector<Expr> indices_of(const std::vector<Axis>& axes);

/// The common shape of numpy's rules (trailing dimensions aligned, extent 1 stretches). UserError
/// names both shapes.
std::vector<int64_t> broadcast_shape(std::string_view where, const std::vector<int64_t>& a,
                                     const std::vector<int64_t>& b);
/// `t` read at `indices` of a result it is broadcast to: leading indices drop, dimensions of extent
/// 1 read 0.
Expr broadcast_read(const Tensor& t, const std::vector<Expr>& indices);

/// `axis` counted from the end when negative. UserError when it is not in [-rank, rank).
int normal_axis(std::string_view where, int64_t axis, int rank);
/// All of them, sorted, each once. Empty stays empty.
std::vector<int> normal_axes(std::string_view where, const std::vector<int64_t>& axes, int rank);

/// The type sums over `t` are kept in: f32 for f16 and bf16, else t itself.
DType accumulator_type(DType t);
/// The type that sums of narrow products stay in: i32 for bytes, else accumulator_type.
DType wide_type(DType t);
/// cast unless it is of that type already.
Expr as_type(DType t, Expr e);

/// UserError "where: NAME needs ... " unless the ranks and types are as said.
void require_rank(std::string_view where, const Tensor& t, int rank);
void require_same_type(std::string_view where, const Tensor& a, const Tensor& b);
/// Both are summed in the same wide_type.
void require_same_wide_type(std::string_view where, const Tensor& a, const Tensor& b);
void require_float(std::string_view where, const Tensor& t);

}  // namespace tenon
