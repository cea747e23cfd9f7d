#include "kernels/normalize.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include "kernels/axes.h"
#include "kernels/row_reduce.h"

namespace tenon {
namespace {

void require_channels(const std::string& name, const Tensor& x, const Tensor& t) {
  require_same_type(name, x, t);
  require_rank(name, t, 1);
  if (t.extent(0) != x.extent(1))
    throw UserError(fmt::format("{}: \"{}\" has {} elements; \"{}\" has {} channels", name,
                                t.name(), t.extent(0), x.name(), x.extent(1)));
}

/// Mean and 1/sqrt(variance + epsilon) over the dimensions from `first` on, kept with extent 1.
struct Moments {
  Tensor mean, inverse;
};

Moments moments(const Tensor& x, int first, double epsilon, const std::string& name) {
  const DType acc = accumulator_type(x.dtype());
  std::vector<Axis> kept = axes_over(x.extents()), further;
  std::vector<Expr> at = indices_of(kept);
  double count = 1;
  for (int d = first; d < x.rank(); ++d) {
    const size_t n = static_cast<size_t>(d);
    kept[n] = Axis(fmt::format("i{}", d), 1);
    count *= static_cast<double>(x.extent(d));
    if (d + 1 == x.rank()) break;
    further.emplace_back(fmt::format("k{}", d), x.extent(d));
    at[n] = further.back().var;
  }
  const auto total = [&](const char* part,
                         const std::function<Expr(const std::vector<Expr>&)>& term) {
    return row_reduce(
        name + part, kept, sum_combiner(acc), x.extent(x.rank() - 1),
        [&](const Expr& k) {
          std::vector<Expr> indices = at;
          indices.back() = k;
          return term(indices);
        },
        further);
  };
  const std::vector<Expr> row = indices_of(kept);
  const Tensor sums =
      total(".sum", [&](const std::vector<Expr>& i) { return as_type(acc, x.at(i)); });
  const Tensor mean = compute(name + ".mean", kept, sums.at(row) / imm(count, acc));
  // The row's element of the mean under a reduction: the unit dimensions read 0.
  const Tensor squares = total(".squares", [&](const std::vector<Expr>& i) {
    const Expr centred = as_type(acc, x.at(i)) - broadcast_read(mean, i);
    return centred * centred;
  });
  const Expr variance = squares.at(row) / imm(count, acc);
  return {mean, compute(name + ".inverse", kept, imm(1, acc) / sqrt(variance + imm(epsilon, acc)))};
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, const Tensor& mean,
                  const Tensor& variance, double epsilon, const std::string& name) {
  require_float(name, x);
  if (x.rank() < 2)
    throw UserError(fmt::format("{}: \"{}\" needs a channel dimension", name, x.name()));
  for (const Tensor* t : {&scale, &bias, &mean, &variance}) require_channels(name, x, *t);
  const DType acc = accumulator_type(x.dtype());
  const Axis c("c", x.extent(1));
  const Tensor factor =
      compute(name + ".scale", {c},
              as_type(acc, scale(c)) / sqrt(as_type(acc, variance(c)) + imm(epsilon, acc)));
  const Tensor shift =
      compute(name + ".shift", {c}, as_type(acc, bias(c)) - as_type(acc, mean(c)) * factor(c));
  const auto axes = axes_over(x.extents());
  const Expr value = as_type(acc, x.at(indices_of(axes))) * factor(axes[1]) + shift(axes[1]);
  return compute(name, axes, as_type(x.dtype(), value));
}

LayerNorm layer_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, int64_t axis,
                     double epsilon, const std::string& name) {
  require_float(name, x);
  const int first = normal_axis(name, axis, x.rank());
  const Moments m = moments(x, first, epsilon, name);
  const DType acc = accumulator_type(x.dtype());
  const auto axes = axes_over(x.extents());
  const auto at = indices_of(axes);
  Expr value =
      (as_type(acc, x.at(at)) - broadcast_read(m.mean, at)) * broadcast_read(m.inverse, at);
  for (const Tensor* t : {&scale, &bias}) {
    if (!t->defined()) continue;
    if (broadcast_shape(name, t->extents(), x.extents()) != x.extents())
      throw UserError(fmt::format("{}: \"{}\" of shape {} does not broadcast to {}", name,
                                  t->name(), shape_text(t->extents()), shape_text(x.extents())));
    const Expr operand = as_type(acc, broadcast_read(*t, at));
    value = t == &scale ? value * operand : value + operand;
  }
  return {compute(name, axes, as_type(x.dtype(), value)), m.mean, m.inverse};
}

Tensor instance_norm(const Tensor& x, const Tensor& scale, const Tensor& bias, double epsilon,
                     const std::string& name) {
  require_float(name, x);
  if (x.rank() < 3)
    throw UserError(fmt::format("{}: \"{}\" needs spatial dimensions; its shape is {}", name,
                                x.name(), shape_text(x.extents())));
  require_channels(name, x, scale);
  require_channels(name, x, bias);
  const Moments m = moments(x, 2, epsilon, name);
  const DType acc = accumulator_type(x.dtype());
  const auto axes = axes_over(x.extents());
  const auto at = indices_of(axes);
  const Expr centred =
      (as_type(acc, x.at(at)) - broadcast_read(m.mean, at)) * broadcast_read(m.inverse, at);
  const Expr value = centred * as_type(acc, scale(axes[1])) + as_type(acc, bias(axes[1]));
  return compute(name, axes, as_type(x.dtype(), value));
}

Tensor lrn(const Tensor& x, int64_t size, double alpha, double beta, double bias,
           const std::string& name) {
  require_float(name, x);
  if (x.rank() < 2)
    throw UserError(fmt::format("{}: \"{}\" needs a channel dimension", name, x.name()));
  if (size < 1) throw UserError(fmt::format("{}: size must be at least 1; it is {}", name, size));
  const DType acc = accumulator_type(x.dtype());
  const auto axes = axes_over(x.extents());
  const Axis k("k", size);
  std::vector<Expr> at = indices_of(axes);
  const Expr channel = Expr(axes[1]) + Expr(k) - int_imm((size - 1) / 2);
  at[1] = channel;
  const Expr e = as_type(acc, x.at(at));
  const Expr inside = channel >= int_imm(0) && channel < int_imm(x.extent(1));
  const Tensor squares = compute(name + ".squares", axes, sum(select(inside, e * e, zero(acc)), k));
  const auto here = indices_of(axes);
  const Expr base = imm(bias, acc) + imm(alpha / static_cast<double>(size), acc) * squares.at(here);
  return compute(name, axes,
                 as_type(x.dtype(), as_type(acc, x.at(here)) / pow(base, imm(beta, acc))));
}

}  // namespace tenon
