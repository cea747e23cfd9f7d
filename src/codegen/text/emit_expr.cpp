#include <fmt/format.h>
#include <tenon/support/error.h>

#include "codegen/text/emit.h"
#include "ir/loads.h"

namespace tenon {
namespace {

bool is_leaf(const Expr& e) { return e.as<IntImm>() || e.as<FloatImm>() || e.as<VarRef>(); }

}  // namespace

void TextEmitter::begin(const std::vector<Expr>& roots) {
  uses_.clear();
  for (auto& memo : memo_) memo.clear();
  alive_.clear();
  for (const Expr& e : roots)
    if (e.defined()) count(e);
}

void TextEmitter::count(const Expr& e) {
  if (++uses_[e.get()] > 1) return;
  map_children(e, [&](const Expr& c) {
    if (c.defined()) count(c);
    return c;
  });
}

std::string TextEmitter::keep(DType t, const std::string& text) {
  const std::string name = names_.fresh("T");
  line(fmt::format("const {} {} = {};", value_type(d_, t), name, text));
  return name;
}

/// A scalar used once stands where it is used; everything else gets a name.
TextEmitter::Lanes TextEmitter::emit(const Expr& e) {
  auto& memo = memo_[narrow_];
  if (const auto found = memo.find(e.get()); found != memo.end()) return found->second;
  Lanes lanes = narrow_or_as_written(e);
  const auto uses = uses_.find(e.get());
  const bool named = uses == uses_.end() || uses->second > 1 || e.lanes() > 1;
  const bool moves = e.as<Ramp>() || e.as<Broadcast>() || e.as<Shuffle>() || e.as<Let>();
  if (named && !moves && !is_leaf(e))
    for (std::string& lane : lanes) lane = keep(written(e.dtype()), lane);
  memo.emplace(e.get(), lanes);
  return lanes;
}

/// A part of 64-bit arithmetic that fits 32 bits is done in them.
TextEmitter::Lanes TextEmitter::narrow_or_as_written(const Expr& e) {
  if (narrow_ || e.dtype() != i64 || is_leaf(e) || !width_.fits(e))
    return std::visit([&](const auto& n) { return node(n, e); }, e.node().v);
  Lanes lanes = emit_index(e);
  for (std::string& lane : lanes) lane = fmt::format("({}){}", d_.type(i64), lane);
  return lanes;
}

TextEmitter::Lanes TextEmitter::node(const IntImm& n, const Expr& e) {
  return {int_text(n.value, written(e.dtype()))};
}

TextEmitter::Lanes TextEmitter::node(const FloatImm& n, const Expr& e) {
  return {float_text(d_, n.value, e.dtype())};
}

TextEmitter::Lanes TextEmitter::node(const VarRef& n, const Expr&) {
  const auto found = vars_.find(n.var);
  TENON_CHECK(found != vars_.end(), "text code: variable \"{}\" is not bound", n.var.name());
  if (n.var.type().dtype != i64 || narrow_vars_.count(n.var) == (narrow_ ? 1U : 0U))
    return found->second;
  Lanes cast = found->second;
  for (std::string& lane : cast) lane = fmt::format("({}){}", d_.type(written(i64)), lane);
  return cast;
}

TextEmitter::Lanes TextEmitter::node(const Binary& n, const Expr& e) {
  const bool index = index_;
  const Lanes a = emit(n.a), b = emit(n.b);
  const DType t = written(n.a.dtype());
  const std::optional<int64_t> divisor = as_int(n.b);
  const bool floors = n.op == BinaryOp::floor_div || n.op == BinaryOp::floor_mod;
  const bool truncates = floors && narrow_ && width_.range(n.a)->low >= 0;  // as C divides
  Lanes out;
  for (size_t l = 0; l < static_cast<size_t>(e.lanes()); ++l)
    out.push_back(truncates ? h_.divide_natural(n.op, a[l], b[l])
                  : floors && is_signed_int(t) && divisor && *divisor > 0
                      ? h_.divide_by(n.op, t, a[l], *divisor)
                  : index && n.a.dtype() == i64 ? h_.index_op(n.op, t, a[l], b[l])
                                                : h_.binary(n.op, t, a[l], b[l]));
  return out;
}

TextEmitter::Lanes TextEmitter::emit_index(const Expr& e) {
  const bool outer = index_, outer_narrow = narrow_;
  index_ = !has_load(e);  // data wraps
  narrow_ = index_ && width_.fits(e);
  Lanes out = emit(e);
  index_ = outer;
  narrow_ = outer_narrow;
  return out;
}

TextEmitter::Lanes TextEmitter::emit_mask(const Expr& e) {
  return width_.fits(e) ? emit_index(e) : emit(e);
}

TextEmitter::Lanes TextEmitter::node(const Unary& n, const Expr&) {
  Lanes out = emit(n.a);
  for (std::string& lane : out) lane = h_.unary(n.op, n.a.dtype(), lane);
  return out;
}

TextEmitter::Lanes TextEmitter::node(const Select& n, const Expr& e) {
  const Lanes c = emit(n.condition), yes = emit(n.yes), no = emit(n.no);
  Lanes out;
  for (size_t l = 0; l < static_cast<size_t>(e.lanes()); ++l)
    out.push_back(fmt::format("({} ? {} : {})", c.size() == 1 ? c[0] : c[l], yes[l], no[l]));
  return out;
}

TextEmitter::Lanes TextEmitter::node(const Cast& n, const Expr& e) {
  Lanes out = emit(n.value);
  for (std::string& lane : out) lane = h_.cast(e.dtype(), n.value.dtype(), lane);
  return out;
}

TextEmitter::Lanes TextEmitter::node(const Bitcast& n, const Expr& e) {
  Lanes out = emit(n.value);
  for (std::string& lane : out) lane = h_.bitcast(e.dtype(), n.value.dtype(), lane);
  return out;
}

/// A lane that is off reads nothing.
TextEmitter::Lanes TextEmitter::node(const Load& n, const Expr& e) {
  if (atomic_ && n.buffer.same_as(atomic_->buffer) &&
      structural_equal(n.indices[0], atomic_->indices[0]))
    return {current_};
  const TextBuffer& b = where(n.buffer);
  const DType t = n.buffer->dtype;
  Lanes out;
  if (b.registers) {
    const Ramp* r = n.indices[0].as<Ramp>();
    const int64_t first = constant_index(r ? r->base : n.indices[0]);
    for (int l = 0; l < e.lanes(); ++l) out.push_back(fmt::format("{}_{}", b.name, first + l));
  } else {
    for (const std::string& index : emit_index(n.indices[0]))
      out.push_back(h_.from_memory(t, element(n.buffer, index)));
  }
  if (!n.mask.defined()) return out;
  const Lanes mask = emit_mask(n.mask);
  for (size_t l = 0; l < out.size(); ++l)
    out[l] = fmt::format("({} ? {} : 0)", mask.size() == 1 ? mask[0] : mask[l], out[l]);
  return out;
}

TextEmitter::Lanes TextEmitter::node(const Call& n, const Expr&) {
  throw InternalError(fmt::format("text code: {} is still a call", name(n.fn)));
}

TextEmitter::Lanes TextEmitter::node(const Ramp& n, const Expr&) {
  const std::string base = scalar(n.base);
  const std::optional<int64_t> stride = as_int(n.stride);
  const std::string step = stride ? "" : scalar(n.stride);
  Lanes out;
  for (int l = 0; l < n.lanes; ++l)
    out.push_back(l == 0   ? base
                  : stride ? fmt::format("({} + {})", base, int_text(*stride * l, written(i64)))
                           : fmt::format("({} + {} * {})", base, int_text(l, written(i64)), step));
  return out;
}

TextEmitter::Lanes TextEmitter::node(const Broadcast& n, const Expr&) {
  std::string one = scalar(n.value);
  if (!is_leaf(n.value)) one = keep(written(n.value.dtype()), one);
  return Lanes(static_cast<size_t>(n.lanes), one);
}

TextEmitter::Lanes TextEmitter::node(const Reduce&, const Expr& e) {
  throw InternalError("text code: a reduction in flat code: " + print(e));
}

TextEmitter::Lanes TextEmitter::node(const Let& n, const Expr&) {
  Lanes value = emit(n.value);
  if (!is_leaf(n.value))
    for (std::string& lane : value) lane = keep(n.value.dtype(), lane);
  vars_[n.var] = value;
  return emit(n.body);
}

TextEmitter::Lanes TextEmitter::node(const VectorReduce& n, const Expr& e) {
  const Lanes parts = emit(n.value);
  std::string out = parts[0];
  for (size_t l = 1; l < parts.size(); ++l)
    out = keep(e.dtype(), h_.binary(n.op, e.dtype(), out, parts[l]));
  return {out};
}

TextEmitter::Lanes TextEmitter::node(const Shuffle& n, const Expr&) {
  const Lanes from = emit(n.value);
  Lanes out;
  for (int l : n.lanes) out.push_back(from[static_cast<size_t>(l)]);
  return out;
}

TextEmitter::Lanes TextEmitter::node(const IntrinsicCall& n, const Expr&) {
  const Expr plain = expand_intrinsic(n);
  alive_.push_back(plain);
  count(plain);
  return emit(plain);
}

}  // namespace tenon
