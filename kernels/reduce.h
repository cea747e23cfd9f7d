#pragma once
#include <tenon/te/te.h>

namespace tenon {

/// The words reduce() knows: sum mean max min prod l1 l2 sum_square log_sum log_sum_exp any all.
const std::vector<std::string>& reduce_names();

/// Combines over `axes` (negative ones count from the end; none: nothing is combined). With `keep`
/// they stay with extent
/// 1. f16 and bf16 sums are kept in f32. The mean of integers is rounded to zero. max and min of
/// bools are any and all. UserError for an unknown word, an axis that does not exist or is given
/// twice, a type the word has no meaning for.
Tensor reduce(std::string_view op, const Tensor& x, const std::vector<int64_t>& axes, bool keep,
              const std::string& name = "reduce");

/// i64 position of the largest (smallest) element along `axis`; ties go to the first one, or to the
/// last.
Tensor arg_reduce(bool maximum, const Tensor& x, int64_t axis, bool keep, bool last,
                  const std::string& name = "argmax");

/// Running sum along `axis`, written as a sum over the elements up to (exclusive: before) each
/// position.
Tensor cumulative_sum(const Tensor& x, int64_t axis, bool exclusive, bool reverse,
                      const std::string& name = "cumsum");

}  // namespace tenon
