#include <tenon/ir/bind_symbols.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

namespace tenon {
namespace {

VarMap values_of(const Program& program, const std::map<std::string, int64_t>& sizes) {
  VarMap out;
  std::vector<std::string> known;
  for (const Var& v : program.symbols) known.push_back(v.name());
  for (const Var& v : program.symbols) {
    const auto given = sizes.find(v.name());
    if (given == sizes.end())
      throw UserError(
          fmt::format("{}: no size is given for the symbolic extent \"{}\"\n  symbols: {}",
                      program.name, v.name(), join(known)));
    if (given->second < v.range()->low || given->second > v.range()->high)
      throw UserError(fmt::format("{}: {} = {} is outside of its range [{}, {}]", program.name,
                                  v.name(), given->second, v.range()->low, v.range()->high));
    out.emplace(v, int_imm(given->second));
  }
  return out;
}

Buffer bound(const Buffer& b, const VarMap& values) {
  BufferNode node = *b;
  for (Expr& extent : node.shape) extent = substitute(extent, values);
  return Buffer(std::move(node));
}

}  // namespace

Program bind_symbols(const Program& program, const std::map<std::string, int64_t>& sizes) {
  const VarMap values = values_of(program, sizes);
  if (values.empty()) return program;
  Program out = program;
  out.symbols.clear();
  BufferMap buffers;
  for (Param& p : out.params)
    p.buffer = buffers.emplace(p.buffer, bound(p.buffer, values)).first->second;
  const Stmt body = substitute(program.body, values);
  walk(
      body,
      [&](const Stmt& s) {
        if (const Allocate* n = s.as<Allocate>())
          buffers.emplace(n->buffer, bound(n->buffer, values));
        return true;
      },
      [](const Expr&) { return false; });
  out.body = rewrite(
      replace_buffers(body, buffers),
      [&](const Stmt& s) {
        const Stage* n = s.as<Stage>();
        if (!n) return s;
        Stage stage = *n;
        for (AxisBinding& b : stage.axes) b.axis.extent = substitute(b.axis.extent, values);
        return make_stmt(std::move(stage));
      },
      nullptr);
  return out;
}

}  // namespace tenon
