#include "kernels/reduce.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <limits>

#include "kernels/axes.h"

namespace tenon {
namespace {

/// Axes of the result and of the reduction, and the element of x they read.
struct Fold {
  std::vector<Axis> out, over;
  Expr element;
  int64_t count = 1;
};

Fold fold(const std::string& name, const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  const std::vector<int> chosen = normal_axes(name, axes, x.rank());
  Fold f;
  std::vector<Expr> at;
  for (int d = 0; d < x.rank(); ++d) {
    if (std::find(chosen.begin(), chosen.end(), d) == chosen.end()) {
      f.out.emplace_back(fmt::format("i{}", d), x.extent(d));
      at.push_back(f.out.back().var);
      continue;
    }
    if (keep) f.out.emplace_back(fmt::format("i{}", d), 1);
    f.over.emplace_back(fmt::format("k{}", d), x.extent(d));
    at.push_back(f.over.back().var);
    f.count *= x.extent(d);
  }
  f.element = x.at(at);
  return f;
}

Expr mean_of(const Expr& total, int64_t count) {
  if (is_float(total.dtype())) return total / imm(static_cast<double>(count), total.dtype());
  // 0/0 of an empty integer mean is 0.
  return count == 0 ? total : trunc_div(total, int_imm(count, total.dtype()));
}

/// log(sum(exp(x))) without overflow: the largest element (0 when it is infinite) is taken out
/// first.
Tensor log_sum_exp(const Fold& f, DType acc, DType t, const std::string& name) {
  const Expr e = as_type(acc, f.element);
  const Expr infinity = imm(std::numeric_limits<double>::infinity(), acc);
  const Tensor top = compute(name + ".max", f.out, reduce_max(e, f.over));
  const Expr raw = top.at(indices_of(f.out));
  const Expr shift = select(abs(raw) == infinity, zero(acc), raw);
  const Tensor total = compute(name + ".sum", f.out, sum(exp(e - shift), f.over));
  return compute(name, f.out, as_type(t, log(total.at(indices_of(f.out))) + shift));
}

Tensor bool_reduce(std::string_view op, const Fold& f, const std::string& name) {
  if (op == "any" || op == "max") return compute(name, f.out, any(f.element, f.over));
  if (op == "all" || op == "min") return compute(name, f.out, all(f.element, f.over));
  throw UserError(
      fmt::format("{}: \"{}\" of bools has no meaning\n  try: any, all, or cast first", name, op));
}

/// What one element contributes, in the accumulator's type.
Expr term_of(std::string_view op, const Expr& e) {
  if (op == "l1") return is_unsigned_int(e.dtype()) ? e : abs(e);
  if (op == "l2" || op == "sum_square") return e * e;
  return e;
}

/// The result from the total.
Expr finish(std::string_view op, const Expr& total, int64_t count) {
  if (op == "mean") return mean_of(total, count);
  if (op == "log_sum") return log(total);
  if (op == "l2")
    return is_float(total.dtype()) ? sqrt(total) : cast(total.dtype(), sqrt(cast(f64, total)));
  return total;
}

}  // namespace

const std::vector<std::string>& reduce_names() {
  static const std::vector<std::string> names = {"sum",     "mean",        "max", "min",
                                                 "prod",    "l1",          "l2",  "sum_square",
                                                 "log_sum", "log_sum_exp", "any", "all"};
  return names;
}

Tensor reduce(std::string_view op, const Tensor& x, const std::vector<int64_t>& axes, bool keep,
              const std::string& name) {
  const auto& known = reduce_names();
  if (std::find(known.begin(), known.end(), op) == known.end())
    throw UserError(fmt::format("{}: unknown reduction \"{}\"; did you mean {}? There are {}", name,
                                op, join(nearest_names(op, known)), join(known)));
  const Fold f = fold(name, x, axes, keep);
  if (f.over.empty()) {
    const Expr alone = finish(op, term_of(op, f.element), 1);
    return compute(name, f.out, op == "log_sum_exp" ? f.element : alone);
  }
  if (is_bool(x.dtype())) return bool_reduce(op, f, name);
  if (op == "any" || op == "all")
    throw UserError(fmt::format("{}: \"{}\" combines bools; \"{}\" is {}", name, op, x.name(),
                                tenon::name(x.dtype())));
  const DType t = x.dtype(), acc = accumulator_type(t);
  if (op == "log_sum" || op == "log_sum_exp") require_float(name, x);
  if (op == "log_sum_exp") return log_sum_exp(f, acc, t, name);
  if (op == "max") return compute(name, f.out, reduce_max(f.element, f.over));
  if (op == "min") return compute(name, f.out, reduce_min(f.element, f.over));
  const Expr term = term_of(op, as_type(acc, f.element));
  const Expr total = op == "prod" ? prod(term, f.over) : sum(term, f.over);
  const bool bare = acc == t && (op == "sum" || op == "prod" || op == "l1" || op == "sum_square");
  if (bare) return compute(name, f.out, total);
  const Tensor whole = compute(name + ".sum", f.out, total);
  return compute(name, f.out, as_type(t, finish(op, whole.at(indices_of(f.out)), f.count)));
}

Tensor arg_reduce(bool maximum, const Tensor& x, int64_t axis, bool keep, bool last,
                  const std::string& name) {
  const int d = normal_axis(name, axis, x.rank());
  const Fold f = fold(name, x, {d}, keep);
  if (f.count == 0)
    throw UserError(fmt::format("{}: dimension {} of \"{}\" is empty", name, d, x.name()));
  const auto best =
      maximum ? arg_max(f.element, f.over[0], last) : arg_min(f.element, f.over[0], last);
  const std::vector<Tensor> pair = compute_tuple(name + ".best", f.out, best);
  return compute(name, f.out, pair[1].at(indices_of(f.out)));
}

Tensor cumulative_sum(const Tensor& x, int64_t axis, bool exclusive, bool reverse,
                      const std::string& name) {
  const int d = normal_axis(name, axis, x.rank());
  const std::vector<Axis> out = axes_over(x.extents());
  const Axis k("k", x.extent(d));
  std::vector<Expr> at = indices_of(out);
  const Expr here = at[static_cast<size_t>(d)], there = k.var;
  at[static_cast<size_t>(d)] = there;
  const DType acc = accumulator_type(x.dtype());
  const Expr before = reverse ? (exclusive ? there > here : there >= here)
                              : (exclusive ? there < here : there <= here);
  const Expr total = sum(select(before, as_type(acc, x.at(at)), zero(acc)), k);
  if (acc == x.dtype()) return compute(name, out, total);
  return compute(name, out,
                 cast(x.dtype(), compute(name + ".acc", out, total).at(indices_of(out))));
}

}  // namespace tenon
