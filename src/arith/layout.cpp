#include "arith/layout.h"

#include <tenon/ir/ops.h>
#include <tenon/support/error.h>

namespace tenon {
namespace {

Expr ceil_div(const Expr& a, int64_t b) { return b == 1 ? a : floor_div(a + int_imm(b - 1), b); }

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

Expr flat_index(const BufferNode& b, const std::vector<Expr>& logical) {
  TENON_CHECK(logical.size() == b.shape.size(), "{} indices for buffer {} of rank {}",
              logical.size(), b.name, b.shape.size());
  const std::vector<Expr> shape = storage_shape(b), at = storage_indices(b, logical);
  Expr index = int_imm(0);
  for (size_t d = 0; d < at.size(); ++d) {
    index = d == 0 ? at[d] : index * shape[d] + at[d];
  }
  return index;
}

}  // namespace tenon
