#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/te/te.h>

#include "arith/simplify.h"
#include "te/checks.h"
#include "te/combiners.h"
#include "te/formula.h"

namespace tenon {
namespace {

void check_counts(const std::string& where, const ScatterInto& into, size_t rank, size_t values) {
  if (into.indices.size() != rank)
    throw UserError(fmt::format("{}: {} indices for {} axes", where, into.indices.size(), rank));
  const size_t elements = into.combiner->identity.size();
  if (values != elements || into.start.size() != elements)
    throw UserError(fmt::format("{}: {} values and {} starts for combiner \"{}\" of {} elements",
                                where, values, into.start.size(), into.combiner->name, elements));
}

Expr of_type(const std::string& where, std::string_view what, Expr e, DType t) {
  if (e.as<IntImm>() || e.as<FloatImm>()) e = literal_as(e, t);
  if (e.dtype() != t)
    throw UserError(fmt::format("{}: the {} is {}, the combiner works on {}", where, what,
                                name(e.dtype()), name(t)));
  return e;
}

Expr checked_index(const std::string& where, const Expr& index, const std::vector<Axis>& sources) {
  check_formula(where, sources, index);
  if (!is_int(index.dtype()))
    throw UserError(fmt::format("{}: index {} is {}; an index is an integer", where, print(index),
                                name(index.dtype())));
  return index.dtype() == i64 ? index : cast(i64, index);
}

}  // namespace

bool stays_inside(const Expr& index, const Expr& extent, const std::vector<Axis>& sources) {
  Simplifier math;
  for (const Axis& axis : sources)
    if (const auto n = as_int(axis.extent); n && *n > 0)
      math.set_range(axis.var, Interval::extent(*n));
  return math.prove(index >= int_imm(0)) && math.prove(index < extent);
}

std::vector<Tensor> scatter_tuple(std::string name, std::vector<Axis> axes, std::vector<Expr> start,
                                  std::vector<Axis> sources, std::vector<Expr> indices,
                                  std::vector<Expr> values,
                                  std::shared_ptr<const Combiner> combiner) {
  if (name.empty()) throw UserError("scatter: a tensor needs a name");
  const std::string where = fmt::format("scatter \"{}\"", name);
  if (!combiner) throw UserError(fmt::format("{}: the combiner is undefined", where));
  check_axes(where, axes);
  check_axes(where, sources);
  ScatterInto into{std::move(sources), std::move(start), std::move(indices), combiner};
  check_counts(where, into, axes.size(), values.size());
  for (size_t n = 0; n < values.size(); ++n) {
    const DType t = combiner->identity[n].dtype();
    check_formula(where, axes, into.start[n]);
    check_formula(where, into.sources, values[n]);
    into.start[n] = of_type(where, "start", into.start[n], t);
    values[n] = of_type(where, "value", values[n], t);
  }
  bool drops = false;
  for (size_t d = 0; d < axes.size(); ++d) {
    into.indices[d] = checked_index(where, into.indices[d], into.sources);
    drops = drops || !stays_inside(into.indices[d], axes[d].extent, into.sources);
  }
  if (drops && changes_by_identity(*combiner))
    throw UserError(fmt::format(
        "{}: a point that is dropped is joined as the identity ({}), and combiner \"{}\" lets that "
        "change the result\n  try: indices that are inside for certain (min, max, floor_mod), or "
        "tuple_combiner over (counts, value)",
        where, print(combiner->identity[0]), combiner->name));
  Formula formula;
  formula.name = std::move(name);
  formula.axes = std::move(axes);
  formula.values = std::move(values);
  formula.scatter = std::move(into);
  return tensors_of(std::move(formula));
}

Tensor scatter(std::string name, std::vector<Axis> axes, Expr start, std::vector<Axis> sources,
               std::vector<Expr> indices, Expr value, std::shared_ptr<const Combiner> combiner) {
  if (!value.defined())
    throw UserError(fmt::format("scatter \"{}\": the value is undefined", name));
  const bool literal = value.as<IntImm>() || value.as<FloatImm>();
  if (!combiner) {
    const DType t = literal && start.defined() ? start.dtype() : value.dtype();
    combiner = sum_combiner(t);
  }
  return scatter_tuple(std::move(name), std::move(axes), {std::move(start)}, std::move(sources),
                       std::move(indices), {std::move(value)}, std::move(combiner))[0];
}

}  // namespace tenon
