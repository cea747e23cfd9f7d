#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

namespace tenon {
namespace {

/// a * x + b * y, when both speak of one symbol at most and nothing overflows.
std::optional<SymbolTerm> mixed(const SymbolTerm& x, int64_t a, const SymbolTerm& y, int64_t b) {
  if (x.symbol.defined() && y.symbol.defined() && !x.symbol.same_as(y.symbol)) return std::nullopt;
  const auto sum = [&](int64_t m, int64_t n, int64_t* out) {
    return !__builtin_mul_overflow(m, a, &m) && !__builtin_mul_overflow(n, b, &n) &&
           !__builtin_add_overflow(m, n, out);
  };
  SymbolTerm out;
  out.symbol = x.symbol.defined() ? x.symbol : y.symbol;
  if (!sum(x.constant, y.constant, &out.constant) || !sum(x.factor, y.factor, &out.factor))
    return std::nullopt;
  if (out.factor == 0) out.symbol = Var();
  return out;
}

std::optional<SymbolTerm> term_of(const Expr& e) {
  if (const auto value = as_int(e)) return SymbolTerm{*value, 0, {}};
  if (const auto* v = e.as<VarRef>()) {
    return v->var.is_symbol() ? std::optional(SymbolTerm{0, 1, v->var}) : std::nullopt;
  }
  const auto* n = e.as<Binary>();
  if (!n) return std::nullopt;
  const auto a = term_of(n->a), b = term_of(n->b);
  if (!a || !b) return std::nullopt;
  if (n->op == BinaryOp::add) return mixed(*a, 1, *b, 1);
  if (n->op == BinaryOp::sub) return mixed(*a, 1, *b, -1);
  if (n->op != BinaryOp::mul) return std::nullopt;
  if (!b->symbol.defined()) return mixed(*a, b->constant, {0, 0, {}}, 0);
  if (!a->symbol.defined()) return mixed(*b, a->constant, {0, 0, {}}, 0);
  return std::nullopt;
}

}  // namespace

std::optional<SymbolTerm> symbol_term(const Expr& extent) {
  if (!extent.defined() || extent.type() != Type{i64, 1}) return std::nullopt;
  return term_of(extent);
}

std::vector<Var> symbols_in(const Expr& e) {
  std::vector<Var> out;
  for (const Var& v : free_vars(e)) {
    if (v.is_symbol()) out.push_back(v);
  }
  return out;
}

}  // namespace tenon
