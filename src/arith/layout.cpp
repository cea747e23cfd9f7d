#include "arith/layout.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

namespace tenon {
namespace {

Expr ceil_div(const Expr& a, int64_t b) { return b == 1 ? a : floor_div(a + int_imm(b - 1), b); }

// Distance in memory of neighbours along each storage dimension.
std::vector<Expr> strides(const BufferNode& b) {
  const std::vector<Expr> shape = storage_shape(b);
  std::vector<Expr> out(shape.size(), int_imm(1));
  for (size_t d = shape.size(); d-- > 1;) {
    Expr stride = out[d] * shape[d];
    for (const StrideAlign& a : b.aligns) {
      if (a.dim != static_cast<int>(d) - 1) continue;
      stride = stride + floor_mod(int_imm(a.offset) - stride, int_imm(a.factor));
    }
    out[d - 1] = stride;
  }
  return out;
}

// The e of quotient = e // by and remainder = e % by; undefined where they are not that.
Expr divided(const Expr& quotient, const Expr& remainder, const Expr& by) {
  const Binary *q = quotient.as<Binary>(), *r = remainder.as<Binary>();
  const auto number = as_int(by);
  const bool fits = q && r && q->op == BinaryOp::floor_div && r->op == BinaryOp::floor_mod &&
                    number && as_int(q->b) == number && as_int(r->b) == number &&
                    structural_equal(q->a, r->a);
  return fits ? q->a : Expr();
}

}  // namespace

std::vector<Expr> storage_shape(const BufferNode& b) {
  if (b.layout.empty()) return b.shape;
  std::vector<Expr> out;
  for (const LayoutDim& d : b.layout) {
    TENON_CHECK(d.dim >= 0 && d.dim < static_cast<int>(b.shape.size()),
                "layout of {} speaks of dimension {}", b.name, d.dim);
    const Expr blocks = ceil_div(b.shape[static_cast<size_t>(d.dim)], d.divide);
    out.push_back(d.modulo ? Expr(d.modulo) : blocks);
  }
  return out;
}

std::vector<Expr> storage_indices(const BufferNode& b, const std::vector<Expr>& logical) {
  if (b.layout.empty()) return logical;
  std::vector<Expr> out;
  for (const LayoutDim& d : b.layout) {
    Expr e = logical[static_cast<size_t>(d.dim)];
    if (d.divide != 1) e = floor_div(e, d.divide);
    if (d.modulo) e = floor_mod(e, d.modulo);
    out.push_back(e);
  }
  return out;
}

std::vector<Expr> logical_indices(const BufferNode& b, const std::vector<Expr>& stored) {
  if (b.layout.empty()) return stored;
  std::vector<Expr> out(b.shape.size());
  for (size_t n = 0; n < stored.size(); ++n) {
    const LayoutDim& d = b.layout[n];
    const Expr part = d.divide == 1 ? stored[n] : stored[n] * int_imm(d.divide);
    Expr& sum = out[static_cast<size_t>(d.dim)];
    sum = sum.defined() ? sum + part : part;
  }
  return out;
}

Expr storage_size(const BufferNode& b) {
  const std::vector<Expr> shape = storage_shape(b);
  if (!b.aligns.empty()) return strides(b)[0] * shape[0];
  Expr size = int_imm(1);
  for (const Expr& e : shape) size = size * e;
  return size;
}

Expr flat_index(const BufferNode& b, const std::vector<Expr>& logical) {
  TENON_CHECK(logical.size() == b.shape.size(), "{} indices for buffer {} of rank {}",
              logical.size(), b.name, b.shape.size());
  std::vector<Expr> shape = storage_shape(b), at = storage_indices(b, logical);
  Expr index = int_imm(0);
  if (!b.aligns.empty()) {
    const std::vector<Expr> apart = strides(b);
    for (size_t d = 0; d < at.size(); ++d) index = index + at[d] * apart[d];
    return index;
  }
  for (size_t d = 0; d < at.size(); ++d) {
    // A[.., e // n, e % n] of A[.., m, n] is element e of the last two dimensions together.
    while (d + 1 < at.size()) {
      const Expr whole = divided(at[d], at[d + 1], shape[d + 1]);
      if (!whole.defined()) break;
      at[d] = whole;
      shape[d] = shape[d] * shape[d + 1];
      at.erase(at.begin() + static_cast<std::ptrdiff_t>(d) + 1);
      shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(d) + 1);
    }
    index = d == 0 ? at[d] : index * shape[d] + at[d];
  }
  return index;
}

}  // namespace tenon
