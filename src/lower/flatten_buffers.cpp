#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include "lower/passes.h"

namespace tenon {
namespace {

Expr ceil_div(const Expr& a, int64_t b) { return b == 1 ? a : floor_div(a + int_imm(b - 1), b); }

// Extents of the dimensions as they lie in memory.
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

Expr product(const std::vector<Expr>& extents) {
  Expr size = int_imm(1);
  for (const Expr& e : extents) size = size * e;
  return size;
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

Buffer flat_buffer(const Buffer& b) {
  BufferNode node = *b;
  node.shape = {product(storage_shape(*b))};
  node.layout.clear();
  node.origin = nullptr;
  return Buffer(std::move(node));
}

class Flattener {
 public:
  Buffer declare(const Buffer& b) { return flat_.emplace(b, flat_buffer(b)).first->second; }

  Stmt stmt(const Stmt& s) {
    if (const Allocate* n = s.as<Allocate>()) {
      Buffer flat = declare(n->buffer);
      return make_stmt(Allocate{std::move(flat), stmt(n->body)});
    }
    Stmt out = map_children(
        s, [&](const Stmt& c) { return stmt(c); }, [&](const Expr& e) { return expr(e); });
    const Store* n = out.as<Store>();
    if (!n) return out;
    return make_stmt(
        Store{twin(n->buffer), {flat_index(*n->buffer, n->indices)}, n->value, n->mask, n->atomic});
  }

 private:
  Expr expr(const Expr& e) {
    return rewrite(e, [&](const Expr& x) {
      const Load* n = x.as<Load>();
      return n ? load(twin(n->buffer), {flat_index(*n->buffer, n->indices)}, n->mask) : x;
    });
  }
  const Buffer& twin(const Buffer& b) const {
    auto it = flat_.find(b);
    TENON_CHECK(it != flat_.end(), "buffer {} is neither a parameter nor allocated", b->name);
    return it->second;
  }

  BufferMap flat_;
};

}  // namespace

Program flatten_buffers(const Program& program) {
  Flattener flattener;
  Program out = program;
  for (Param& p : out.params) p.buffer = flattener.declare(p.buffer);
  if (program.body.defined()) out.body = flattener.stmt(program.body);
  return out;
}

}  // namespace tenon
