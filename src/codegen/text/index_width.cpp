#include "codegen/text/index_width.h"

#include <tenon/ir/ops.h>

#include <algorithm>

namespace tenon {
namespace {

using Maybe = std::optional<IndexRange>;

Maybe if_narrow(IndexRange r) {
  return r.low >= INT32_MIN && r.high <= INT32_MAX ? Maybe(r) : std::nullopt;
}

IndexRange hull(IndexRange a, IndexRange b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

/// The operands fit 32 bits, so nothing here leaves 64.
IndexRange product(IndexRange a, IndexRange b) {
  const auto [low, high] =
      std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return {low, high};
}

int64_t floor_quotient(int64_t a, int64_t divisor) {
  return a / divisor - (a % divisor < 0 ? 1 : 0);
}

}  // namespace

Maybe IndexWidth::range(const Expr& e) const {
  Known known;
  return range(e, known);
}

Maybe IndexWidth::range(const Expr& e, Known& known) const {
  if (const auto found = known.find(e.get()); found != known.end()) return found->second;
  const Maybe out = e.dtype() == i64 || is_bool(e.dtype()) ? compute(e, known) : std::nullopt;
  known.emplace(e.get(), out);
  return out;
}

Maybe IndexWidth::compute(const Expr& e, Known& known) const {
  if (const auto* n = e.as<IntImm>()) return if_narrow({n->value, n->value});
  if (const auto* n = e.as<VarRef>()) {
    const auto found = vars_.find(n->var);
    return found == vars_.end() ? std::nullopt : Maybe(found->second);
  }
  if (const auto* n = e.as<Broadcast>()) return range(n->value, known);
  if (const auto* n = e.as<Ramp>()) {
    const Maybe base = range(n->base, known), stride = range(n->stride, known);
    if (!base || !stride) return std::nullopt;
    const IndexRange steps = product(*stride, {0, n->lanes - 1});
    return if_narrow({base->low + steps.low, base->high + steps.high});
  }
  if (const auto* n = e.as<Select>()) {
    const Maybe condition = range(n->condition, known), yes = range(n->yes, known),
                no = range(n->no, known);
    return condition && yes && no ? Maybe(hull(*yes, *no)) : std::nullopt;
  }
  if (const auto* n = e.as<Unary>())
    return n->op == UnaryOp::logical_not && range(n->a, known) ? Maybe({0, 1}) : std::nullopt;
  if (const auto* n = e.as<Binary>()) return of_binary(*n, known);
  return std::nullopt;
}

Maybe IndexWidth::of_binary(const Binary& n, Known& known) const {
  const Maybe left = range(n.a, known), right = range(n.b, known);
  if (!left || !right) return std::nullopt;
  const IndexRange a = *left, b = *right;
  switch (n.op) {
    case BinaryOp::add:
      return if_narrow({a.low + b.low, a.high + b.high});
    case BinaryOp::sub:
      return if_narrow({a.low - b.high, a.high - b.low});
    case BinaryOp::mul:
      return if_narrow(product(a, b));
    case BinaryOp::min:
      return IndexRange{std::min(a.low, b.low), std::min(a.high, b.high)};
    case BinaryOp::max:
      return IndexRange{std::max(a.low, b.low), std::max(a.high, b.high)};
    case BinaryOp::floor_div:
      if (b.low != b.high || b.low < 1) return std::nullopt;
      return IndexRange{floor_quotient(a.low, b.low), floor_quotient(a.high, b.low)};
    case BinaryOp::floor_mod:
      if (b.low != b.high || b.low < 1) return std::nullopt;
      return IndexRange{0, b.low - 1};
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::gt:
    case BinaryOp::ge:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
      return IndexRange{0, 1};
    default:
      return std::nullopt;
  }
}

Maybe IndexWidth::loop(const Expr& first, const Expr& extent) const {
  const Maybe low = range(first), count = range(extent);
  if (!low || !count || !if_narrow({low->low, low->high + count->high})) return std::nullopt;
  return IndexRange{low->low, std::max(low->low, low->high + count->high - 1)};
}

}  // namespace tenon
