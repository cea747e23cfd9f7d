#pragma once
#include <tenon/te/te.h>

namespace tenon {

/// exp(x) / sum(exp(x)) along `axis`, in four stages: name.max, name.exp, name.sum, name. f16 and
/// bf16 in f32.
Tensor softmax(const Tensor& x, int64_t axis, const std::string& name = "softmax");
/// x - log(sum(exp(x))) along `axis`: name.max, name.sum, name.
Tensor log_softmax(const Tensor& x, int64_t axis, const std::string& name = "log_softmax");

}  // namespace tenon
