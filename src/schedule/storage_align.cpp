#include <tenon/schedule/mark_primitives.h>

#include <algorithm>

#include "schedule/tree.h"

namespace tenon {
namespace {

constexpr int64_t kLargestFactor = 1 << 20;

}  // namespace

/// allocate T[6, 64]   ->   allocate T[6, 64]  align(stride0%32 == 1)
Program StorageAlign::apply(const Program& program, const Target&) const {
  const Buffer old = find_buffer(program, buffer);
  for (const Param& p : program.params)
    if (p.buffer == old)
      refuse(Rule::align_parameter,
             fmt::format("{} is a parameter; the caller decides how its rows lie", buffer),
             "align a cache_read or cache_write copy");
  if (old->scope == Scope::reg)
    refuse(Rule::align_register, fmt::format("{} is in registers, which have no rows", buffer));
  const auto rank =
      static_cast<int64_t>(old->layout.empty() ? old->shape.size() : old->layout.size());
  if (dim < 0 || dim >= rank - 1)
    refuse(Rule::align_dimension,
           fmt::format("dimension {} of {} has no rows to pad: its storage has {} dimension{}, and "
                       "the stride of the last is 1",
                       dim, buffer, rank, rank == 1 ? "" : "s"),
           rank > 1 ? fmt::format("a dimension from 0 to {}", rank - 2) : "");
  if (factor < 1 || factor > kLargestFactor || offset < 0 || offset >= factor)
    refuse(Rule::align_numbers,
           fmt::format("no stride leaves the rest {} when divided by {}: the factor is from 1 to "
                       "{}, and the offset from 0 to factor - 1",
                       offset, factor, kLargestFactor));
  BufferNode node = *old;
  std::erase_if(node.aligns, [&](const StrideAlign& a) { return a.dim == dim; });
  node.aligns.push_back({static_cast<int>(dim), factor, offset});
  std::sort(node.aligns.begin(), node.aligns.end(),
            [](const StrideAlign& a, const StrideAlign& b) { return a.dim < b.dim; });
  BufferMap renamed;
  renamed.emplace(old, Buffer(std::move(node)));
  Program out = program;
  out.body = replace_buffers(program.body, renamed);
  return out;
}

}  // namespace tenon
