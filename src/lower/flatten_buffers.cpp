#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include "arith/layout.h"
#include "lower/passes.h"

namespace tenon {
namespace {

Buffer flat_buffer(const Buffer& b) {
  BufferNode node = *b;
  node.shape = {storage_size(*b)};
  node.layout.clear();
  node.aligns.clear();
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
    if (const PrefetchLine* n = out.as<PrefetchLine>())
      return make_stmt(PrefetchLine{twin(n->buffer), {flat_index(*n->buffer, n->indices)}});
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
