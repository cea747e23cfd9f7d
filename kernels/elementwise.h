#pragma once
#include <tenon/te/te.h>

#include <optional>

namespace tenon {

/// Numbers some operators take. What is not given has the operator's own default (ONNX's).
struct OpNumbers {
  std::optional<double> alpha, beta;
  bool approximate = false;  // gelu: by tanh
  bool fmod = false;         // mod: the sign of the dividend
};

/// Names of the operators of one and two operands, in a fixed order.
const std::vector<std::string>& unary_names();
const std::vector<std::string>& binary_names();

/// The operator on one element. f16 and bf16 go through f32 wherever more than one rounding would
/// happen. UserError for an unknown name or a type without meaning; `where` begins the message.
Expr unary_expr(std::string_view op, const Expr& x, const OpNumbers& numbers = {},
                std::string_view where = "unary");
/// Both operands have one type, except that pow's exponent may have another.
Expr binary_expr(std::string_view op, const Expr& a, const Expr& b, const OpNumbers& numbers = {},
                 std::string_view where = "binary");

/// name[i...] = op(x[i...])
Tensor unary(std::string_view op, const Tensor& x, const OpNumbers& numbers = {},
             const std::string& name = "map");
/// With numpy's broadcasting.
Tensor binary(std::string_view op, const Tensor& a, const Tensor& b, const OpNumbers& numbers = {},
              const std::string& name = "map");
/// condition ? yes : no, all three broadcast.
Tensor where(const Tensor& condition, const Tensor& yes, const Tensor& no,
             const std::string& name = "where");
/// max(low, min(x, high)) as ONNX Clip; undefined bounds do not count. Bounds are scalars of x's
/// type, read at run time.
Tensor clip(const Tensor& x, const Tensor& low, const Tensor& high,
            const std::string& name = "clip");
Tensor clip(const Tensor& x, std::optional<double> low, std::optional<double> high,
            const std::string& name = "clip");
Tensor cast(DType t, const Tensor& x, const std::string& name = "cast");

}  // namespace tenon
