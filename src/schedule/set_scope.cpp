#include <tenon/schedule/stage_primitives.h>

#include <algorithm>

#include "arith/region.h"
#include "schedule/kernel_rules.h"

namespace tenon {

namespace {

/// The sides of the box that is in use while the buffer lives; its own where they are not known.
std::vector<Expr> sides_in_use(const Program& program, const Buffer& buffer) {
  std::vector<Expr> out = buffer->shape;
  walk(
      program.body,
      [&](const Stmt& s) {
        const Allocate* n = s.as<Allocate>();
        if (!n || !(n->buffer == buffer)) return true;
        Simplifier facts;
        const Touched touched = writes_of(n->body, buffer, facts);
        for (size_t d = 0; touched.box && d < out.size(); ++d)
          out[d] = int_imm((*touched.box)[d].extent);
        return false;
      },
      [](const Expr&) { return false; });
  return out;
}

}  // namespace

/// allocate B  global   ->   allocate B  register
Program SetScope::apply(const Program& program, const Target& target) const {
  const Buffer old = find_buffer(program, buffer);
  for (const Param& p : program.params)
    if (p.buffer == old)
      refuse(Rule::scope_of_parameter,
             fmt::format("{} is a parameter; parameters live in global memory", buffer),
             "set the scope of a cache_read or cache_write copy");
  check_scope(target, scope, "");
  check_scope_size(buffer, scope, sides_in_use(program, old));
  BufferNode node = *old;
  node.scope = scope;
  BufferMap renamed;
  renamed.emplace(old, Buffer(std::move(node)));
  Program out = program;
  out.body = replace_buffers(program.body, renamed);
  return out;
}

}  // namespace tenon
