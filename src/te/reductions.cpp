#include <tenon/support/error.h>
#include <tenon/te/te.h>

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
                       bool last) {
  check_reduction(word, source, {axis});
  if (is_bool(source.dtype()))
    throw UserError(fmt::format("{}: bools have no order; cast first", word));
  const auto combiner = best_combiner(source.dtype(), maximum, last);
  const std::vector<Expr> sources = {source, axis.var};
  return {reduce(combiner, sources, {axis}, {}, {}, 0),
          reduce(combiner, sources, {axis}, {}, {}, 1)};
}

}  // namespace

Expr sum(Expr source, std::vector<Axis> axes, Expr start) {
  check_reduction("sum", source, axes);
  std::vector<Expr> init;
  if (start.defined())
    init.push_back(start.dtype() == source.dtype() ? start : cast(source.dtype(), start));
  const DType t = source.dtype();
  return reduce(sum_combiner(t), {std::move(source)}, std::move(axes), std::move(init));
}

Expr prod(Expr source, std::vector<Axis> axes) {
  check_reduction("prod", source, axes);
  const DType t = source.dtype();
  return reduce(prod_combiner(t), {std::move(source)}, std::move(axes));
}

Expr reduce_max(Expr source, std::vector<Axis> axes) {
  check_reduction("reduce_max", source, axes);
  const DType t = source.dtype();
  return reduce(max_combiner(t), {std::move(source)}, std::move(axes));
}

Expr reduce_min(Expr source, std::vector<Axis> axes) {
  check_reduction("reduce_min", source, axes);
  const DType t = source.dtype();
  return reduce(min_combiner(t), {std::move(source)}, std::move(axes));
}

Expr any(Expr source, std::vector<Axis> axes) {
  check_reduction("any", truth("any", source), axes);
  return reduce(any_combiner(), {std::move(source)}, std::move(axes));
}

Expr all(Expr source, std::vector<Axis> axes) {
  check_reduction("all", truth("all", source), axes);
  return reduce(all_combiner(), {std::move(source)}, std::move(axes));
}

std::vector<Expr> arg_max(Expr source, Axis axis, bool last) {
  return best("arg_max", source, axis, true, last);
}

std::vector<Expr> arg_min(Expr source, Axis axis, bool last) {
  return best("arg_min", source, axis, false, last);
}

}  // namespace tenon
