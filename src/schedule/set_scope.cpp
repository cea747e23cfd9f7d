#include <tenon/schedule/stage_primitives.h>

#include <algorithm>

#include "schedule/kernel_rules.h"

namespace tenon {

/// allocate B  global   ->   allocate B  register
Program SetScope::apply(const Program& program, const Target& target) const {
  const Buffer old = find_buffer(program, buffer);
  for (const Param& p : program.params)
    if (p.buffer == old)
      refuse(Rule::scope_of_parameter,
             fmt::format("{} is a parameter; parameters live in global memory", buffer),
             "set the scope of a cache_read or cache_write copy");
  check_scope(target, scope, "");
  BufferNode node = *old;
  node.scope = scope;
  BufferMap renamed;
  renamed.emplace(old, Buffer(std::move(node)));
  Program out = program;
  out.body = replace_buffers(program.body, renamed);
  return out;
}

}  // namespace tenon
