#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <bit>
#include <set>

#include "lower/passes.h"
#include "lower/touched.h"
#include "lower/util.h"

namespace tenon {
namespace {

constexpr int64_t kMaxRegisterVectors = 128;

// The buffer after compaction and how indices of the old one become indices of it.
struct Compacted {
  Buffer buffer;
  std::vector<Expr> origin;   // per old dimension, subtracted
  std::vector<size_t> order;  // new dimension -> old dimension
};

int64_t register_lanes(int64_t extent, int lanes) {
  return extent >= lanes ? lanes
                         : static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
}

// Puts the vectorised dimension last and pads it to whole vectors.
void shape_registers(BufferNode& node, std::vector<size_t>& order, const BufferUse& use,
                     const Target& target, const std::string& where) {
  const auto shape = const_shape(node.shape);
  if (!shape) {
    throw UserError(fmt::format(
        "lower error in {}: register buffer {} needs a constant size, but a dimension depends on "
        "run-time values\n  try: allocate it inside the loops that decide its size, or use global "
        "scope",
        where, node.name));
  }
  int64_t elements = 1, lanes = 1;
  for (int64_t n : *shape) elements *= n;
  if (!use.vector_dims.empty() && !shape->empty()) {
    const size_t d = static_cast<size_t>(use.vector_dims[0]);
    const int64_t extent = (*shape)[d];
    lanes = register_lanes(extent, target.lanes(node.dtype));
    const int64_t padded = (extent + lanes - 1) / lanes * lanes;
    elements = elements / std::max<int64_t>(extent, 1) * padded;
    node.shape[d] = int_imm(padded);
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(d));
    order.push_back(d);
  }
  if (elements / lanes > kMaxRegisterVectors) {
    throw UserError(fmt::format(
        "lower error in {}: register buffer {} of {} needs {} vectors of {} x {}, the limit is {} "
        "(the target has {} vector registers)\n  try: a smaller tile, or global scope",
        where, node.name, shape_text(*shape), elements / lanes, lanes, name(node.dtype),
        kMaxRegisterVectors, target.vector_registers));
  }
}

Compacted compact(const Buffer& buffer, const BufferUse& use, const Target& target,
                  const std::string& where) {
  BufferNode node = *buffer;
  node.origin = nullptr;
  Compacted out;
  for (size_t d = 0; d < node.shape.size(); ++d) {
    out.order.push_back(d);
    out.origin.push_back(int_imm(0));
    if (!use.any || !use.sides[d]) continue;
    const Side& side = *use.sides[d];
    const auto whole = bounds(node.shape[d]).max;
    if (whole && side.high - side.low + 1 >= *whole) continue;
    node.shape[d] = int_imm(side.high - side.low + 1);
    out.origin[d] = to_expr(side.base + Affine::of(side.low));
  }
  if (node.scope == Scope::reg) {
    node.layout.clear();
    node.aligns.clear();
    shape_registers(node, out.order, use, target, where);
  }
  std::vector<Expr> shape;
  for (size_t d : out.order) shape.push_back(node.shape[d]);
  node.shape = std::move(shape);
  out.buffer = Buffer(std::move(node));
  return out;
}

class Compactor {
 public:
  Compactor(const Program& program, const Target& target, Memory which)
      : name_(program.name),
        target_(target),
        which_(which),
        simplifier_(simplifier_for(program.body)) {}

  Stmt stmt(const Stmt& s) {
    if (const Allocate* n = s.as<Allocate>(); n && concerns(n->buffer->scope)) {
      const BufferUse use = touched(n->buffer, n->body, simplifier_);
      const Compacted small = compact(n->buffer, use, target_, name_);
      twins_.emplace(n->buffer, small);
      return make_stmt(Allocate{small.buffer, stmt(n->body)});
    }
    Stmt out = map_children(
        s, [&](const Stmt& c) { return stmt(c); }, [&](const Expr& e) { return expr(e); });
    const Store* n = out.as<Store>();
    auto it = n ? twins_.find(n->buffer) : twins_.end();
    if (it == twins_.end()) return out;
    return make_stmt(
        Store{it->second.buffer, indices(it->second, n->indices), n->value, n->mask, n->atomic});
  }

 private:
  bool concerns(Scope scope) const {
    const bool own = scope == Scope::local || scope == Scope::reg;
    return which_ == Memory::all || own == (which_ == Memory::of_thread);
  }

  Expr expr(const Expr& e) {
    return rewrite(e, [&](const Expr& x) {
      const Load* n = x.as<Load>();
      auto it = n ? twins_.find(n->buffer) : twins_.end();
      if (it == twins_.end()) return x;
      return load(it->second.buffer, indices(it->second, n->indices), n->mask);
    });
  }
  std::vector<Expr> indices(const Compacted& twin, const std::vector<Expr>& old) {
    std::vector<Expr> out;
    for (size_t d : twin.order) out.push_back(simplifier_.simplify(old[d] - twin.origin[d]));
    return out;
  }

  std::string name_;
  const Target& target_;
  Memory which_;
  Simplifier simplifier_;
  std::unordered_map<Buffer, Compacted, BufferHash> twins_;
};

// A loop whose variable picks a register must be unrolled.
Stmt unroll_register_loops(const Stmt& body, const std::string& where) {
  std::set<const VarNode*> picks;
  for_each_access(body, [&](const Buffer& b, const std::vector<Expr>& indices) {
    if (b->scope != Scope::reg) return;
    for (const Expr& index : indices) {
      for (const Var& v : free_vars(index)) picks.insert(v.get());
    }
  });
  return rewrite(
      body,
      [&](const Stmt& s) {
        const For* n = s.as<For>();
        if (!n || !picks.count(n->var.get()) || makes_lanes(n->mark)) return s;
        if (!as_int(n->extent) || n->mark == LoopMark::parallel || is_bound(n->mark)) {
          throw UserError(fmt::format(
              "lower error in {}: loop \"{}\" picks elements of a register buffer, so it must be "
              "unrolled, but {}\n  try: move the buffer inside this loop",
              where, n->var.name(),
              is_bound(n->mark)               ? fmt::format("it is bound to {}", name(n->mark))
              : n->mark == LoopMark::parallel ? "it is parallel"
                                              : "its extent is not constant"));
        }
        For copy = *n;
        copy.mark = LoopMark::unroll;
        return make_stmt(std::move(copy));
      },
      nullptr);
}

}  // namespace

Program compact_buffers(const Program& program, const Target& target, Memory which) {
  Program out = program;
  if (!program.body.defined()) return out;
  out.body = Compactor(program, target, which).stmt(program.body);
  if (which != Memory::of_block) out.body = unroll_register_loops(out.body, program.name);
  return out;
}

}  // namespace tenon
