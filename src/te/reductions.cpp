#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/te/te.h>

#include "te/combiners.h"

namespace tenon {
namespace {

void check_reduction(std::string_view word, const Expr& source, const std::vector<Axis>& axes) {
  if (!source.defined())
    throw UserError(fmt::format("{}: what is to be combined is undefined", word));
  if (axes.empty()) throw UserError(fmt::format("{}: no axis to reduce over is given", word));
  for (size_t n = 0; n < axes.size(); ++n) {
    if (!axes[n].var.defined() || !axes[n].extent.defined())
      throw UserError(fmt::format("{}: axis {} has no name or no extent", word, n));
    for (size_t m = 0; m < n; ++m)
      if (axes[m].var.same_as(axes[n].var))
        throw UserError(fmt::format("{}: axis \"{}\" is given twice", word, axes[n].var.name()));
  }
}

Expr truth(std::string_view word, const Expr& source) {
  if (source.defined() && !is_bool(source.dtype()))
    throw UserError(
        fmt::format("{}: combines bools; the source is {}", word, name(source.dtype())));
  return source;
}

/// Of two (value, index) pairs the one with the better value; NaN is better than any number; of
/// equally good ones the one that comes first (or last).
std::shared_ptr<const Combiner> best_combiner(DType t, bool maximum, bool last) {
  auto c = std::make_shared<Combiner>();
  c->name = fmt::format("arg_{}{}", maximum ? "max" : "min", last ? "_last" : "");
  c->lhs = {Var("lv", {t}), Var("li", {i64})};
  c->rhs = {Var("rv", {t}), Var("ri", {i64})};
  const Expr lv = c->lhs[0], li = c->lhs[1], rv = c->rhs[0], ri = c->rhs[1];
  Expr better = maximum ? lv > rv : lv < rv;
  Expr equal = lv == rv;
  if (is_float(t)) {
    better = better || (is_nan(lv) && !is_nan(rv));
    equal = equal || (is_nan(lv) && is_nan(rv));
  }
  const Expr keep = better || (equal && (last ? li > ri : li < ri));
  c->result = {select(keep, lv, rv), select(keep, li, ri)};
  const auto start = maximum ? max_combiner(t) : min_combiner(t);
  c->identity = {start->identity[0], int_imm(last ? -1 : max_int(i64))};
  return c;
}

std::vector<Expr> best(std::string_view word, const Expr& source, const Axis& axis, bool maximum,
                       bool last, const ReduceOptions& options) {
  check_reduction(word, source, {axis});
  if (is_bool(source.dtype()))
    throw UserError(fmt::format("{}: bools have no order; cast first", word));
  return reduce_tuple(best_combiner(source.dtype(), maximum, last), {source, axis.var}, {axis},
                      options);
}

/// The start of element n, of the combiner's type.
Expr start_value(const Combiner& c, size_t n, Expr start, const std::vector<Axis>& axes) {
  const DType t = c.identity[n].dtype();
  if (start.as<IntImm>() || start.as<FloatImm>()) start = literal_as(start, t);
  if (start.dtype() != t)
    throw UserError(
        fmt::format("{}: the start is {}, what is combined is {}\n  try: cast({}, start)", c.name,
                    name(start.dtype()), name(t), name(t)));
  for (const Axis& axis : axes)
    if (uses_var(start, axis.var))
      throw UserError(
          fmt::format("{}: the start speaks of axis \"{}\", which is reduced over; there is one "
                      "start per element of the result",
                      c.name, axis.var.name()));
  return start;
}

std::vector<Expr> start_values(const Combiner& c, const std::vector<Expr>& start,
                               const std::vector<Axis>& axes) {
  if (start.empty()) return {};
  if (start.size() != c.identity.size())
    throw UserError(fmt::format("{}: {} start values for {} elements", c.name, start.size(),
                                c.identity.size()));
  std::vector<Expr> out;
  for (size_t n = 0; n < start.size(); ++n)
    out.push_back(start[n].defined() ? start_value(c, n, start[n], axes) : c.identity[n]);
  return out;
}

void check_condition(const Combiner& c, const Expr& condition) {
  if (!condition.defined()) return;
  if (!is_bool(condition.dtype()))
    throw UserError(
        fmt::format("{}: the condition is {} and not bool", c.name, name(condition.dtype())));
  if (changes_by_identity(c))
    throw UserError(fmt::format(
        "{}: a point that does not count is joined as the identity ({}), and this combiner lets "
        "that change the result\n  try: tuple_combiner over (counts, value)",
        c.name, print(c.identity[0])));
}

}  // namespace

Expr sum(Expr source, std::vector<Axis> axes, const ReduceOptions& options) {
  check_reduction("sum", source, axes);
  const DType t = source.dtype();
  return reduce(sum_combiner(t), std::move(source), std::move(axes), options);
}

Expr prod(Expr source, std::vector<Axis> axes, const ReduceOptions& options) {
  check_reduction("prod", source, axes);
  const DType t = source.dtype();
  return reduce(prod_combiner(t), std::move(source), std::move(axes), options);
}

Expr reduce_max(Expr source, std::vector<Axis> axes, const ReduceOptions& options) {
  check_reduction("reduce_max", source, axes);
  const DType t = source.dtype();
  return reduce(max_combiner(t), std::move(source), std::move(axes), options);
}

Expr reduce_min(Expr source, std::vector<Axis> axes, const ReduceOptions& options) {
  check_reduction("reduce_min", source, axes);
  const DType t = source.dtype();
  return reduce(min_combiner(t), std::move(source), std::move(axes), options);
}

Expr any(Expr source, std::vector<Axis> axes, const ReduceOptions& options) {
  check_reduction("any", truth("any", source), axes);
  return reduce(any_combiner(), std::move(source), std::move(axes), options);
}

Expr all(Expr source, std::vector<Axis> axes, const ReduceOptions& options) {
  check_reduction("all", truth("all", source), axes);
  return reduce(all_combiner(), std::move(source), std::move(axes), options);
}

std::vector<Expr> arg_max(Expr source, Axis axis, bool last, const ReduceOptions& options) {
  return best("arg_max", source, axis, true, last, options);
}

std::vector<Expr> arg_min(Expr source, Axis axis, bool last, const ReduceOptions& options) {
  return best("arg_min", source, axis, false, last, options);
}

Expr reduce(std::shared_ptr<const Combiner> combiner, Expr source, std::vector<Axis> axes,
            const ReduceOptions& options) {
  return reduce_tuple(std::move(combiner), {std::move(source)}, std::move(axes), options)[0];
}

std::vector<Expr> reduce_tuple(std::shared_ptr<const Combiner> combiner, std::vector<Expr> sources,
                               std::vector<Axis> axes, const ReduceOptions& options) {
  if (!combiner) throw UserError("reduce: the combiner is undefined");
  if (sources.size() != combiner->identity.size())
    throw UserError(fmt::format("{}: {} sources for a combiner of {} elements", combiner->name,
                                sources.size(), combiner->identity.size()));
  for (const Expr& source : sources) check_reduction(combiner->name, source, axes);
  check_condition(*combiner, options.condition);
  const std::vector<Expr> init = start_values(*combiner, options.start, axes);
  std::vector<Expr> out;
  for (size_t n = 0; n < sources.size(); ++n)
    out.push_back(reduce(combiner, sources, axes, init, options.condition, static_cast<int>(n)));
  return out;
}

}  // namespace tenon
