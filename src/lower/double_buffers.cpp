#include <tenon/ir/notes.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "ir/loop_body.h"
#include "lower/passes.h"
#include "lower/util.h"

namespace tenon {
namespace {

bool stores_to(const Stmt& s, const Buffer& b) {
  bool found = false;
  walk(
      s,
      [&](const Stmt& x) {
        const Store* n = x.as<Store>();
        found = found || (n && n->buffer == b);
        return !found;
      },
      nullptr);
  return found;
}

// Two copies of the buffer, the number of the copy as its first dimension.
Buffer twice(const Buffer& b) {
  BufferNode node = *b;
  node.shape.insert(node.shape.begin(), int_imm(2));
  for (LayoutDim& d : node.layout) ++d.dim;
  if (!node.layout.empty()) node.layout.insert(node.layout.begin(), LayoutDim{0, 1, 0});
  for (StrideAlign& a : node.aligns) ++a.dim;
  return Buffer(std::move(node));
}

Stmt use_copy(const Stmt& s, const Buffer& from, const Buffer& to, const Expr& copy) {
  const auto at = [&](std::vector<Expr> indices) {
    indices.insert(indices.begin(), copy);
    return indices;
  };
  return rewrite(
      s,
      [&](const Stmt& x) {
        if (const PrefetchLine* n = x.as<PrefetchLine>(); n && n->buffer == from)
          return make_stmt(PrefetchLine{to, at(n->indices)});
        const Store* n = x.as<Store>();
        if (!n || !(n->buffer == from)) return x;
        return make_stmt(Store{to, at(n->indices), n->value, n->mask, n->atomic});
      },
      [&](const Expr& e) {
        const Load* n = e.as<Load>();
        return n && n->buffer == from ? load(to, at(n->indices), n->mask) : e;
      });
}

// Moves the filling of one buffer ahead. Gives the loop; `before` gets the first filling.
For move_ahead(const For& loop, const std::string& name, std::vector<Buffer>& copies,
               std::vector<Stmt>& before) {
  LoopBody body(loop.body);
  const auto found = std::find_if(body.allocated.begin(), body.allocated.end(),
                                  [&](const Buffer& b) { return b->name == name; });
  TENON_CHECK(found != body.allocated.end(), "loop {} is to double-buffer {}, which it lacks",
              loop.var.name(), name);
  const Buffer single = *found, both_copies = twice(single);
  body.allocated.erase(found);
  copies.push_back(both_copies);

  const Expr number = floor_mod(loop.var, int_imm(2));
  std::vector<Stmt> fill, work;
  for (const Stmt& part : body.parts)
    (stores_to(part, single) ? fill : work).push_back(use_copy(part, single, both_copies, number));
  TENON_CHECK(!fill.empty(), "loop {} is to double-buffer {} and does not fill it", loop.var.name(),
              name);
  const Expr next = Expr(loop.var) + int_imm(1);
  const Stmt first = refresh(substitute(seq(fill), {{loop.var, int_imm(0)}}));
  before.push_back(make_stmt(If{int_imm(0) < loop.extent, first, {}}));
  body.parts = {make_stmt(If{next < loop.extent, substitute(seq(fill), {{loop.var, next}}), {}})};
  body.parts.insert(body.parts.end(), work.begin(), work.end());

  For out = loop;
  out.notes.erase(double_buffer_note(name));
  out.body = body.stmt();
  return out;
}

Stmt pipeline(const For& n) {
  For loop = n;
  std::vector<Buffer> copies;
  std::vector<Stmt> parts;
  for (const std::string& name : noted_buffers(n.notes, "double_buffer"))
    loop = move_ahead(loop, name, copies, parts);
  parts.push_back(make_stmt(std::move(loop)));
  Stmt out = seq(std::move(parts));
  for (const Buffer& b : copies) out = make_stmt(Allocate{b, out});
  return out;
}

}  // namespace

Program double_buffers(const Program& program) {
  Program out = program;
  out.body = rewrite(
      program.body,
      [](const Stmt& s) {
        const For* n = s.as<For>();
        return n && !noted_buffers(n->notes, "double_buffer").empty() ? pipeline(*n) : s;
      },
      nullptr);
  return out;
}

}  // namespace tenon
