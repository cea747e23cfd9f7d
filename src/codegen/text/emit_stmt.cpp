#include <fmt/format.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include "codegen/text/emit.h"

namespace tenon {
namespace {

/// Does the loop pick a register? Then it is written out.
bool picks_registers(const For& loop) {
  bool found = false;
  const auto look = [&](const Buffer& b, const std::vector<Expr>& at) {
    found = found || (b->scope == Scope::reg && uses_var(at[0], loop.var));
  };
  walk(
      loop.body,
      [&](const Stmt& s) {
        if (const Store* n = s.as<Store>()) look(n->buffer, n->indices);
        return !found;
      },
      [&](const Expr& e) {
        if (const Load* n = e.as<Load>()) look(n->buffer, n->indices);
        return !found;
      });
  return found;
}

int64_t constant_size(const Buffer& b) {
  const std::optional<int64_t> size = as_int(b->shape[0]);
  TENON_CHECK(size, "text code: buffer {} in {} memory has no constant size", b->name,
              name(b->scope));
  return *size;
}

}  // namespace

int64_t constant_index(const Expr& e) {
  if (const auto value = as_int(e)) return *value;
  if (const Binary* n = e.as<Binary>())
    if (const auto folded =
            as_int(binary(n->op, int_imm(constant_index(n->a)), int_imm(constant_index(n->b)))))
      return *folded;
  throw InternalError("text code: the register index " + print(e) + " is not a constant");
}

const TextBuffer& TextEmitter::where(const Buffer& b) const {
  const auto found = buffers_.find(b);
  TENON_CHECK(found != buffers_.end(), "text code: buffer {} has no place", b->name);
  return found->second;
}

std::string TextEmitter::element(const Buffer& b, const std::string& index) const {
  return fmt::format("{}[{}]", where(b).name, index);
}

void TextEmitter::line(const std::string& text) {
  text_ += std::string(static_cast<size_t>(2 * depth_), ' ') + text + "\n";
}

void TextEmitter::bind(const Var& v, const std::string& name,
                       const std::optional<IndexRange>& range) {
  vars_[v] = {name};
  if (!range) return;
  width_.bind(v, *range);
  narrow_vars_.insert(v);
}

void TextEmitter::define(const Var& v, const std::string& text, int64_t extent) {
  const std::string name = names_.fresh(v.name());
  const auto range = width_.loop(int_imm(0), int_imm(extent));
  const std::string type = d_.type(range ? i32 : i64);
  line(fmt::format("const {} {} = ({}){};", type, name, type, text));
  bind(v, name, range);
}

void TextEmitter::declare_private(const Buffer& b) {
  const std::string name = names_.fresh(b->name);
  const int64_t size = constant_size(b);
  if (b->scope != Scope::reg) {
    line(fmt::format("{} {}[{}];", d_.type(b->dtype), name, std::max<int64_t>(size, 1)));
    buffers_[b] = {name, false};
    return;
  }
  for (int64_t k = 0; k < size; ++k)
    line(fmt::format("{} {}_{};", value_type(d_, b->dtype), name, k));
  buffers_[b] = {name, true};
}

void TextEmitter::stmt(const Stmt& s) {
  if (!s.defined()) return;
  std::visit([&](const auto& n) { node(n); }, s.node().v);
}

void TextEmitter::unrolled(const For& n) {
  const int64_t low = constant_index(n.min), extent = constant_index(n.extent);
  for (int64_t k = low; k < low + extent; ++k) {
    line("{");
    ++depth_;
    stmt(substitute(n.body, {{n.var, int_imm(k)}}));
    --depth_;
    line("}");
  }
}

void TextEmitter::node(const For& n) {
  if (picks_registers(n)) return unrolled(n);
  begin({n.min, n.extent});
  const std::string low = emit_index(n.min)[0], count = emit_index(n.extent)[0];
  const bool plain = as_int(n.min) && as_int(n.extent);
  const auto range = width_.loop(n.min, n.extent);
  const DType type = range ? i32 : i64;
  const std::string high =
      plain ? int_text(*as_int(n.min) + *as_int(n.extent), type)
            : keep(type, is_const(n.min, 0) ? count : fmt::format("({} + {})", low, count));
  const std::string name = names_.fresh(n.var.name());
  bind(n.var, name, range);
  line(fmt::format("for ({0} {1} = {2}; {1} < {3}; ++{1}) {{", d_.type(type), name, low, high));
  ++depth_;
  stmt(n.body);
  --depth_;
  line("}");
}

void TextEmitter::store_lane(const Store& n, const std::string& place, const std::string& value,
                             const std::string& mask) {
  const bool registers = where(n.buffer).registers;
  const std::string stored = registers ? value : h_.to_memory(n.buffer->dtype, value);
  line(fmt::format("{}{} = {};", mask.empty() ? "" : fmt::format("if ({}) ", mask), place, stored));
}

void TextEmitter::node(const Store& n) {
  if (n.atomic) return store_atomic(n);
  begin({n.indices[0], n.value, n.mask});
  const TextBuffer& b = where(n.buffer);
  Lanes places;
  if (b.registers) {
    const Ramp* r = n.indices[0].as<Ramp>();
    const int64_t first = constant_index(r ? r->base : n.indices[0]);
    for (int l = 0; l < n.value.lanes(); ++l)
      places.push_back(fmt::format("{}_{}", b.name, first + l));
  } else {
    for (const std::string& index : emit_index(n.indices[0]))
      places.push_back(element(n.buffer, index));
  }
  const Lanes values = emit(n.value), mask = n.mask.defined() ? emit_mask(n.mask) : Lanes();
  for (size_t l = 0; l < values.size(); ++l)
    store_lane(n, places[l], values[l], mask.empty() ? "" : mask.size() == 1 ? mask[0] : mask[l]);
}

/// Compare-and-swap until nobody came between.
void TextEmitter::store_atomic(const Store& n) {
  const DType t = n.buffer->dtype;
  if (byte_size(t) != 4 || n.value.lanes() > 1)
    throw UserError(fmt::format(
        "code generation: an atomic update of {} elements ({}); OpenCL has them of 4 bytes, one at "
        "a time\n  try: run the loop that scatters serially, or sum in i32, u32 or f32",
        name(t), n.buffer->name));
  begin({n.indices[0], n.mask});
  const std::string index = keep(i64, emit_index(n.indices[0])[0]),
                    mask = n.mask.defined() ? emit_mask(n.mask)[0] : "1";
  const std::string word = names_.fresh("W"), seen = names_.fresh("S"), now = names_.fresh("V");
  line(fmt::format("if ({}) {{", mask));
  ++depth_;
  line(fmt::format("volatile {0}{1}* {2} = (volatile {0}{1}*)&{3};", d_.global, d_.type(u32), word,
                   element(n.buffer, index)));
  line(fmt::format("{} {} = *{};", d_.type(u32), seen, word));
  line("for (;;) {");
  ++depth_;
  line(fmt::format("const {} {} = {}({});", value_type(d_, t), now, d_.bits_as(t), seen));
  begin({n.value});
  atomic_ = &n;
  current_ = now;
  const std::string fresh = scalar(n.value);
  atomic_ = nullptr;
  const std::string before = names_.fresh("B");
  line(fmt::format("const {0} {1} = atomic_cmpxchg({2}, {3}, {4}({5}));", d_.type(u32), before,
                   word, seen, d_.bits_as(u32), fresh));
  line(fmt::format("if ({} == {}) break;", before, seen));
  line(fmt::format("{} = {};", seen, before));
  --depth_;
  line("}");
  --depth_;
  line("}");
}

void TextEmitter::node(const Seq& n) {
  for (const Stmt& part : n.stmts) stmt(part);
}

void TextEmitter::node(const If& n) {
  begin({n.condition});
  line(fmt::format("if ({}) {{", emit_index(n.condition)[0]));
  ++depth_;
  stmt(n.then_case);
  --depth_;
  if (n.else_case.defined()) {
    line("} else {");
    ++depth_;
    stmt(n.else_case);
    --depth_;
  }
  line("}");
}

void TextEmitter::node(const Allocate& n) {
  line("{");
  ++depth_;
  if (!buffers_.count(n.buffer)) declare_private(n.buffer);
  stmt(n.body);
  --depth_;
  line("}");
}

void TextEmitter::node(const Evaluate& n) {
  begin({n.value});
  for (const std::string& lane : emit(n.value)) line(fmt::format("(void)({});", lane));
}

void TextEmitter::node(const LetStmt& n) {
  begin({n.value});
  const DType type = n.var.type().dtype;
  const auto range = type == i64 ? width_.range(n.value) : std::nullopt;
  Lanes value = range ? emit_index(n.value) : emit(n.value);
  for (std::string& lane : value) {
    const std::string name = names_.fresh(n.var.name());
    line(fmt::format("const {} {} = {};", value_type(d_, range ? i32 : type), name, lane));
    lane = name;
  }
  bind(n.var, "", range);
  vars_[n.var] = value;
  stmt(n.body);
}

void TextEmitter::node(const Barrier&) { line(d_.barrier); }

void TextEmitter::node(const Stage& n) {
  throw InternalError(fmt::format("text code: stage {} in flat code", n.name));
}

}  // namespace tenon
