#include "kernels/softmax.h"

#include "kernels/axes.h"

namespace tenon {
namespace {

/// Axes of the result, those without the one in question, and the indices with it replaced by `k`.
struct Rows {
  std::vector<Axis> out, rest;
  Axis k;
  std::vector<Expr> at, rest_at, along;
  DType acc = f32;
};

Rows rows(const Tensor& x, int64_t axis, const std::string& name) {
  require_float(name, x);
  const int d = normal_axis(name, axis, x.rank());
  Rows r;
  r.out = axes_over(x.extents());
  r.rest = r.out;
  r.rest.erase(r.rest.begin() + d);
  r.k = Axis("k", x.extent(d));
  r.at = indices_of(r.out);
  r.rest_at = indices_of(r.rest);
  r.along = r.at;
  r.along[static_cast<size_t>(d)] = r.k.var;
  r.acc = accumulator_type(x.dtype());
  return r;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t axis, const std::string& name) {
  const Rows r = rows(x, axis, name);
  const Tensor top =
      compute(name + ".max", r.rest, reduce_max(as_type(r.acc, x.at(r.along)), {r.k}));
  const Tensor e =
      compute(name + ".exp", r.out, exp(as_type(r.acc, x.at(r.at)) - top.at(r.rest_at)));
  const Tensor total = compute(name + ".sum", r.rest, sum(e.at(r.along), r.k));
  return compute(name, r.out, as_type(x.dtype(), e.at(r.at) / total.at(r.rest_at)));
}

Tensor log_softmax(const Tensor& x, int64_t axis, const std::string& name) {
  const Rows r = rows(x, axis, name);
  const Tensor top =
      compute(name + ".max", r.rest, reduce_max(as_type(r.acc, x.at(r.along)), {r.k}));
  const Expr shifted = as_type(r.acc, x.at(r.along)) - top.at(r.rest_at);
  const Tensor total = compute(name + ".sum", r.rest, sum(exp(shifted), r.k));
  const Expr value = as_type(r.acc, x.at(r.at)) - top.at(r.rest_at) - log(total.at(r.rest_at));
  return compute(name, r.out, as_type(x.dtype(), value));
}

}  // namespace tenon
