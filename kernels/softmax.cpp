#include "kernels/softmax.h"

#include "kernels/axes.h"
#include "kernels/row_reduce.h"

namespace tenon {
namespace {

/// Axes of the result, those without the one in question, and the stages that combine along it.
struct Rows {
  std::string name;
  Tensor x;
  std::vector<Axis> out, rest;
  std::vector<Expr> at, rest_at;
  size_t dim = 0;
  DType acc = f32;

  /// The result's indices with the one along the rows replaced.
  std::vector<Expr> along(const Expr& k) const {
    std::vector<Expr> indices = at;
    indices[dim] = k;
    return indices;
  }
  /// part[rest] = combination over k of element(k)
  Tensor combine(const char* part, const std::shared_ptr<const Combiner>& combiner,
                 const std::function<Expr(const Expr&)>& element) const {
    const int64_t extent = x.extent(static_cast<int>(dim));
    if (dim + 1 == at.size()) return row_reduce(name + part, rest, combiner, extent, element);
    const Axis k("k", extent);
    return compute(name + part, rest, reduce(combiner, {element(k)}, {k}));
  }
};

Rows rows(const Tensor& x, int64_t axis, const std::string& name) {
  require_float(name, x);
  const int d = normal_axis(name, axis, x.rank());
  Rows r;
  r.name = name;
  r.x = x;
  r.out = axes_over(x.extents());
  r.rest = r.out;
  r.rest.erase(r.rest.begin() + d);
  r.at = indices_of(r.out);
  r.rest_at = indices_of(r.rest);
  r.dim = static_cast<size_t>(d);
  r.acc = accumulator_type(x.dtype());
  return r;
}

Tensor top_of(const Rows& r) {
  return r.combine(".max", max_combiner(r.acc),
                   [&](const Expr& k) { return as_type(r.acc, r.x.at(r.along(k))); });
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t axis, const std::string& name) {
  const Rows r = rows(x, axis, name);
  const Tensor top = top_of(r);
  const Tensor e =
      compute(name + ".exp", r.out, exp(as_type(r.acc, x.at(r.at)) - top.at(r.rest_at)));
  const Tensor total =
      r.combine(".sum", sum_combiner(r.acc), [&](const Expr& k) { return e.at(r.along(k)); });
  // At least one exponential is 1: no total is so small or so large that its inverse is lost.
  const Tensor inverse = compute(name + ".inverse", r.rest, imm(1, r.acc) / total.at(r.rest_at));
  return compute(name, r.out, as_type(x.dtype(), e.at(r.at) * inverse.at(r.rest_at)));
}

Tensor log_softmax(const Tensor& x, int64_t axis, const std::string& name) {
  const Rows r = rows(x, axis, name);
  const Tensor top = top_of(r);
  const Tensor total = r.combine(".sum", sum_combiner(r.acc), [&](const Expr& k) {
    return exp(as_type(r.acc, x.at(r.along(k))) - top.at(r.rest_at));
  });
  const Expr value = as_type(r.acc, x.at(r.at)) - top.at(r.rest_at) - log(total.at(r.rest_at));
  return compute(name, r.out, as_type(x.dtype(), value));
}

}  // namespace tenon
