#pragma once
#include <tenon/te/te.h>

namespace tenon {

/// `x` with `before[d]` elements of `value` in front of dimension d, and behind it as many as
/// `shape` leaves. `x` itself when nothing is added. A negative `before` and a smaller shape cut.
Tensor pad_to(const Tensor& x, const std::vector<int64_t>& before,
              const std::vector<int64_t>& shape, Expr value, const std::string& name);

enum class PadMode : uint8_t { constant, reflect, edge, wrap };

/// ONNX Pad: before[d] and after[d] elements added (negative: cut) round each dimension. `value` is
/// a scalar of x's type and counts in constant mode only. Reflection and wrapping go round as often
/// as needed. UserError when an empty dimension is to be repeated.
Tensor pad(const Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
           PadMode mode, Expr value, const std::string& name = "pad");

}  // namespace tenon
