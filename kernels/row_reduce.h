#pragma once
#include <tenon/te/te.h>

#include <functional>

namespace tenon {

/// name[rest] = combination of element(k) over k in [0, extent), for elements that lie next to each
/// other in memory. Long rows are combined in 16 lanes (name.part) first, so that a schedule can
/// keep them in one vector; very long ones of few rows in 16 pieces as well. Float sums therefore
/// have a fixed order of their own.
Tensor row_reduce(const std::string& name, const std::vector<Axis>& rest,
                  const std::shared_ptr<const Combiner>& combiner, int64_t extent,
                  const std::function<Expr(const Expr& k)>& element,
                  const std::vector<Axis>& further = {});

}  // namespace tenon
