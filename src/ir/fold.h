#pragma once
#include <tenon/ir/ops.h>

namespace tenon {

/// The value of `op` on two integers of type `t` as src/ir/README.md defines it (results wrap); nothing where the
/// page gives no value (division by zero, a shift out of range). Comparisons give 0 or 1.
std::optional<int64_t> fold_int(BinaryOp op, int64_t a, int64_t b, DType t);

/// The same on floats of type f32 or f64 (rounded to f32 where t is f32); comparisons and others give nothing.
std::optional<double> fold_float(BinaryOp op, double a, double b, DType t);

}  // namespace tenon
