#include "kernels/matmul.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include "kernels/axes.h"

namespace tenon {
namespace {

using Shape = std::vector<int64_t>;

/// What a product of two tensors runs over; the leading axes are those of the broadcast batch.
struct Product {
  std::vector<Axis> batch;
  Axis i, j, k;
  std::vector<Axis> out;                 // the axes of the result
  bool a_row = false, b_column = false;  // operands of rank 1
};

Product product_axes(const std::string& name, const Tensor& a, const Tensor& b) {
  if (a.rank() == 0 || b.rank() == 0)
    throw UserError(
        fmt::format("{}: \"{}\" and \"{}\" need at least one dimension", name, a.name(), b.name()));
  const Shape as = a.extents(), bs = b.extents();
  Product p;
  p.a_row = as.size() == 1;
  p.b_column = bs.size() == 1;
  const int64_t k = as.back(), b_k = p.b_column ? bs[0] : bs[bs.size() - 2];
  if (k != b_k)
    throw UserError(
        fmt::format("{}: inner dimensions differ: \"{}\" is {} (k = {}), \"{}\" is {} (k = {})",
                    name, a.name(), shape_text(as), k, b.name(), shape_text(bs), b_k));
  const Shape a_batch(as.begin(), as.end() - (p.a_row ? 1 : 2)),
      b_batch(bs.begin(), bs.end() - (p.b_column ? 1 : 2));
  p.batch = axes_over(broadcast_shape(name, a_batch, b_batch), "b");
  p.k = Axis("k", k);
  p.out = p.batch;
  if (!p.a_row) p.out.push_back(p.i = Axis("i", as[as.size() - 2]));
  if (!p.b_column) p.out.push_back(p.j = Axis("j", bs.back()));
  return p;
}

Expr read_a(const Product& p, const Tensor& a) {
  if (p.a_row) return a(p.k);
  std::vector<Expr> at = indices_of(p.batch);
  at.insert(at.end(), {p.i, p.k});
  return broadcast_read(a, at);
}

Expr read_b(const Product& p, const Tensor& b) {
  if (p.b_column) return b(p.k);
  std::vector<Expr> at = indices_of(p.batch);
  at.insert(at.end(), {p.k, p.j});
  return broadcast_read(b, at);
}

/// name[axes] = the sum in `t`; a wider accumulator is a stage of its own, name.acc.
Tensor narrow(const std::string& name, const std::vector<Axis>& axes, Expr total, DType t) {
  if (total.dtype() == t) return compute(name, axes, total);
  Tensor wide = compute(name + ".acc", axes, total);
  return compute(name, axes, cast(t, wide.at(indices_of(axes))));
}

Expr zero_point(const Tensor& zero, const Axis& along) {
  if (!zero.defined()) return int_imm(0, i32);
  return cast(i32, zero.rank() == 0 || zero.extent(0) == 1 ? broadcast_read(zero, {along.var})
                                                           : zero(along));
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const std::string& name) {
  require_same_type(name, a, b);
  const Product p = product_axes(name, a, b);
  const DType acc = accumulator_type(a.dtype());
  Expr total = sum(as_type(acc, read_a(p, a)) * as_type(acc, read_b(p, b)), p.k);
  return narrow(name, p.out, total, a.dtype());
}

Tensor matmul_wide(const Tensor& a, const Tensor& b, const std::string& name) {
  require_same_wide_type(name, a, b);
  const Product p = product_axes(name, a, b);
  const DType t = wide_type(a.dtype());
  return compute(name, p.out, sum(as_type(t, read_a(p, a)) * as_type(t, read_b(p, b)), p.k));
}

Tensor gemm(const Tensor& a, const Tensor& b, const Tensor& c, const GemmOptions& options,
            const std::string& name) {
  require_rank(name, a, 2);
  require_rank(name, b, 2);
  require_same_type(name, a, b);
  const int64_t m = a.extent(options.transpose_a ? 1 : 0),
                k = a.extent(options.transpose_a ? 0 : 1);
  const int64_t n = b.extent(options.transpose_b ? 0 : 1),
                b_k = b.extent(options.transpose_b ? 1 : 0);
  if (k != b_k)
    throw UserError(fmt::format(
        "{}: inner dimensions differ: k is {} in \"{}\" ({}) and {} in \"{}\" ({})", name, k,
        a.name(), shape_text(a.extents()), b_k, b.name(), shape_text(b.extents())));
  const DType t = a.dtype(), acc = accumulator_type(t);
  const Axis i("i", m), j("j", n), r("k", k);
  const std::vector<Axis> out = {i, j};
  Expr start;
  if (c.defined() && options.beta != 0) {
    require_same_type(name, a, c);
    if (broadcast_shape(name, c.extents(), {m, n}) != Shape{m, n})
      throw UserError(fmt::format("{}: \"{}\" of shape {} does not broadcast to {}", name, c.name(),
                                  shape_text(c.extents()), shape_text({m, n})));
    start = as_type(acc, broadcast_read(c, indices_of(out)));
    if (options.beta != 1) start = start * imm(options.beta, acc);
  }
  Expr product = as_type(acc, options.transpose_a ? a(r, i) : a(i, r)) *
                 as_type(acc, options.transpose_b ? b(j, r) : b(r, j));
  if (options.alpha == 1) return narrow(name, out, sum(product, {r}, {.start = {start}}), t);
  Tensor total = compute(name + ".acc", out, sum(product, r));
  Expr scaled = total(i, j) * imm(options.alpha, acc);
  if (start.defined()) scaled = scaled + start;
  return compute(name, out, as_type(t, scaled));
}

Tensor matmul_integer(const Tensor& a, const Tensor& b, const Tensor& a_zero, const Tensor& b_zero,
                      const std::string& name) {
  const Product p = product_axes(name, a, b);
  Expr x = cast(i32, read_a(p, a)), y = cast(i32, read_b(p, b));
  if (a_zero.defined()) x = x - zero_point(a_zero, p.i);
  if (b_zero.defined()) y = y - zero_point(b_zero, p.j);
  return compute(name, p.out, sum(x * y, p.k));
}

}  // namespace tenon
