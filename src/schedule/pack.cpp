#include <tenon/schedule/layout_primitives.h>

#include <algorithm>

#include "arith/layout.h"
#include "schedule/copy.h"
#include "schedule/place.h"

namespace tenon {
namespace {

constexpr int64_t kMostGrowth = 16;
constexpr int64_t kFreeElements = 1 << 20;  // so small a storage may grow as it likes

const Param* param_of(const Program& program, const Buffer& buffer) {
  for (const Param& p : program.params)
    if (p.buffer == buffer) return &p;
  return nullptr;
}

void check_size(const BufferNode& node) {
  const auto shape = const_shape(node.shape);
  if (!shape)
    refuse(Rule::pack_symbolic,
           fmt::format("{} has an extent that is known at the call only; its blocks cannot be "
                       "counted",
                       node.name));
  double elements = 1, stored = 1;
  for (int64_t n : *shape) elements *= static_cast<double>(n);
  for (const Expr& e : storage_shape(node)) stored *= static_cast<double>(*as_int(e));
  if (stored > kFreeElements && stored > kMostGrowth * elements)
    refuse(Rule::pack_growth,
           fmt::format("the layout stores the {:.0f} elements of {} in {:.0f}; the limit is {} "
                       "times as many",
                       elements, node.name, stored, kMostGrowth),
           "blocks no larger than the extent");
}

/// The shape rounded up to whole blocks.
std::vector<Expr> whole_blocks(const BufferNode& node) {
  std::vector<Expr> out;
  for (size_t d = 0; d < node.shape.size(); ++d) {
    int64_t block = 1;
    for (const LayoutDim& l : node.layout)
      if (l.dim == static_cast<int>(d)) block = std::max(block, l.divide);
    const int64_t extent = *as_int(node.shape[d]);
    out.push_back(int_imm((extent + block - 1) / block * block));
  }
  return out;
}

/// stage NAME: copy[dims] = from[dims], zero where that is padding
Stage copy_stage(const std::string& name, const Buffer& copy, const Buffer& from,
                 const std::vector<std::string>& names) {
  Stage out;
  out.name = name;
  Expr inside;
  for (size_t d = 0; d < names.size(); ++d) {
    const Axis axis(names[d], copy->shape[d]);
    out.axes.push_back({axis, AxisKind::spatial, axis});
    out.indices.push_back(axis);
    if (*as_int(copy->shape[d]) > *as_int(from->shape[d]))
      inside = both(inside, Expr(axis) < from->shape[d]);
  }
  const Expr element = load(from, out.indices);
  out.outputs = {copy};
  out.values = {inside.defined() ? select(inside, element, zero(from->dtype)) : element};
  return out;
}

/// All stages read a copy, made before everything else.
Program copy_first(const Program& program, const Buffer& from,
                   const std::vector<LayoutDim>& layout) {
  const std::vector<StagePath> readers = readers_of(program, from);
  if (readers.empty()) refuse(Rule::pack_unread, fmt::format("no stage reads {}", from->name));
  const std::string name = fresh_name(program, from->name + ".packed");
  BufferNode node = *from;
  node.name = name;
  node.layout = layout;
  node.shape = whole_blocks(node);
  const Buffer copy(std::move(node));
  Simplifier math{VarRanges{}};
  const Stmt nest =
      nest_over_box(copy_stage(name, copy, from, dim_names(program, *readers[0].stage, from)),
                    BoxBuilder(copy->shape).finish(), math);
  BufferMap renamed;
  renamed.emplace(from, copy);
  Program out = program;
  out.body = make_stmt(Allocate{copy, seq({nest, replace_buffers(program.body, renamed)})});
  return out;
}

Program with_layout(const Program& program, const Buffer& old,
                    const std::vector<LayoutDim>& layout) {
  BufferNode node = *old;
  node.layout = layout;
  const Buffer packed(std::move(node));
  BufferMap renamed;
  renamed.emplace(old, packed);
  Program out = program;
  for (Param& p : out.params)
    if (p.buffer == old) p.buffer = packed;
  out.body = replace_buffers(program.body, renamed);
  return out;
}

void check_ahead(const Buffer& old, const Param* param) {
  if (param && param->role == ParamRole::constant) return;
  refuse(
      Rule::pack_unknown,
      fmt::format("{} is {}; only the contents of a constant are known ahead", old->name,
                  param ? "an input" : "computed by the program"),
      param ? "PackWhen::run_time, or mark the input constant in the task" : "PackWhen::run_time");
}

}  // namespace

/// C reads B   ->   allocate B.packed; B.packed = B; C reads B.packed   (ahead: B itself has the
/// layout)
Program Pack::apply(const Program& program, const Target&) const {
  const Buffer old = find_buffer(program, buffer);
  const Param* param = param_of(program, old);
  if (layout.empty())
    refuse(Rule::pack_empty, fmt::format("no layout is given for {}", buffer),
           "{{1, 16, 0}, {0, 1, 0}, {1, 1, 16}}: blocks of 16 columns, each stored row by row");
  check_layout(layout, old->shape.size(), buffer);
  if (param && param->role == ParamRole::output)
    refuse(Rule::pack_output,
           fmt::format("{} is an output of the program: callers read it row by row", buffer),
           "cache_write it and pack the copy");
  if (old->scope == Scope::reg)
    refuse(Rule::pack_register, fmt::format("{} is in registers, which have no order", buffer));
  if (!old->aligns.empty())
    refuse(Rule::pack_aligned, fmt::format("the rows of {} are aligned already", buffer),
           "pack first, then storage_align");
  if (param && !old->layout.empty())
    refuse(Rule::pack_twice,
           fmt::format("{} is packed ahead already, as {}", buffer, layout_text(old->layout)));
  BufferNode wanted = *old;
  wanted.layout = layout;
  check_size(wanted);
  if (when == PackWhen::ahead) check_ahead(old, param);
  return param && when == PackWhen::run_time ? copy_first(program, old, layout)
                                             : with_layout(program, old, layout);
}

}  // namespace tenon
