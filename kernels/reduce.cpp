#include "kernels/reduce.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <limits>

#include "kernels/axes.h"
#include "kernels/row_reduce.h"

namespace tenon {
namespace {

/// Axes of the result and of the reduction, and the element of x they read.
struct Fold {
  Tensor x;
  std::vector<Axis> out, over;
  std::vector<Expr> at;
  int row = 0;  // so many dimensions at the end are combined: a row, contiguous in x
  int64_t count = 1;

  Expr element() const { return x.at(at); }
  /// name[out] = combination of term(element)
  Tensor combine(const std::string& name, const std::shared_ptr<const Combiner>& combiner,
                 const std::function<Expr(const Expr&)>& term) const {
    if (row == 0) return compute(name, out, reduce(combiner, {term(element())}, over));
    const std::vector<Axis> further(over.begin(), over.end() - row);
    int64_t extent = 1;
    for (int d = x.rank() - row; d < x.rank(); ++d) extent *= x.extent(d);
    return row_reduce(
        name, out, combiner, extent, [&](const Expr& k) { return term(x.at(in_row(k))); }, further);
  }
  /// The indices of element k of a row.
  std::vector<Expr> in_row(const Expr& k) const {
    std::vector<Expr> indices = at;
    Expr rest = k;
    for (int d = x.rank() - 1; d > x.rank() - row; --d) {
      const Expr extent = int_imm(std::max<int64_t>(1, x.extent(d)));
      indices[static_cast<size_t>(d)] = floor_mod(rest, extent);
      rest = floor_div(rest, extent);
    }
    indices[static_cast<size_t>(x.rank() - row)] = rest;
    return indices;
  }
};

Fold fold(const std::string& name, const Tensor& x, const std::vector<int64_t>& axes, bool keep) {
  const std::vector<int> chosen = normal_axes(name, axes, x.rank());
  Fold f;
  f.x = x;
  for (int d = 0; d < x.rank(); ++d) {
    const bool combined = std::find(chosen.begin(), chosen.end(), d) != chosen.end();
    f.row = combined ? f.row + 1 : 0;
    if (!combined) {
      f.out.emplace_back(fmt::format("i{}", d), x.extent(d));
      f.at.push_back(f.out.back().var);
      continue;
    }
    if (keep) f.out.emplace_back(fmt::format("i{}", d), 1);
    f.over.emplace_back(fmt::format("k{}", d), x.extent(d));
    f.at.push_back(f.over.back().var);
    f.count *= x.extent(d);
  }
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
  const Expr infinity = imm(std::numeric_limits<double>::infinity(), acc);
  const Tensor top =
      f.combine(name + ".max", max_combiner(acc), [&](const Expr& e) { return as_type(acc, e); });
  const Expr raw = top.at(indices_of(f.out));
  const Expr shift = select(abs(raw) == infinity, zero(acc), raw);
  const Tensor total = f.combine(name + ".sum", sum_combiner(acc),
                                 [&](const Expr& e) { return exp(as_type(acc, e) - shift); });
  return compute(name, f.out, as_type(t, log(total.at(indices_of(f.out))) + shift));
}

Tensor bool_reduce(std::string_view op, const Fold& f, const std::string& name) {
  const auto same = [](const Expr& e) { return e; };
  if (op == "any" || op == "max") return f.combine(name, any_combiner(), same);
  if (op == "all" || op == "min") return f.combine(name, all_combiner(), same);
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
    const Expr alone = finish(op, term_of(op, f.element()), 1);
    return compute(name, f.out, op == "log_sum_exp" ? f.element() : alone);
  }
  if (is_bool(x.dtype())) return bool_reduce(op, f, name);
  if (op == "any" || op == "all")
    throw UserError(fmt::format("{}: \"{}\" combines bools; \"{}\" is {}", name, op, x.name(),
                                tenon::name(x.dtype())));
  const DType t = x.dtype(), acc = accumulator_type(t);
  if (op == "log_sum" || op == "log_sum_exp") require_float(name, x);
  if (op == "log_sum_exp") return log_sum_exp(f, acc, t, name);
  const auto same = [](const Expr& e) { return e; };
  if (op == "max") return f.combine(name, max_combiner(t), same);
  if (op == "min") return f.combine(name, min_combiner(t), same);
  const auto term = [&](const Expr& e) { return term_of(op, as_type(acc, e)); };
  const auto combiner = op == "prod" ? prod_combiner(acc) : sum_combiner(acc);
  const bool bare = acc == t && (op == "sum" || op == "prod" || op == "l1" || op == "sum_square");
  if (bare) return f.combine(name, combiner, term);
  const Tensor whole = f.combine(name + ".sum", combiner, term);
  return compute(name, f.out, as_type(t, finish(op, whole.at(indices_of(f.out)), f.count)));
}

Tensor arg_reduce(bool maximum, const Tensor& x, int64_t axis, bool keep, bool last,
                  const std::string& name) {
  const int d = normal_axis(name, axis, x.rank());
  const Fold f = fold(name, x, {d}, keep);
  if (f.count == 0)
    throw UserError(fmt::format("{}: dimension {} of \"{}\" is empty", name, d, x.name()));
  const auto best =
      maximum ? arg_max(f.element(), f.over[0], last) : arg_min(f.element(), f.over[0], last);
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
