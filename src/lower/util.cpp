#include "lower/util.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

namespace tenon {

Interval loop_range(const For& loop, Simplifier& simplifier) {
  const Interval first = simplifier.bounds(loop.min);
  // The highest value of a symbol would make boxes of that size.
  if (!symbols_in(loop.extent).empty()) return {first.min, std::nullopt};
  const Interval last = simplifier.bounds(loop.min + loop.extent - int_imm(1));
  // An empty loop has no values; any range is right for a body that never runs.
  if (first.min && last.max && *last.max < *first.min) return {first.min, first.min};
  return {first.min, last.max};
}

void learn_ranges(Simplifier& simplifier, const Stmt& s) {
  walk(
      s,
      [&](const Stmt& x) {
        if (const For* n = x.as<For>()) simplifier.set_range(n->var, loop_range(*n, simplifier));
        if (const LetStmt* n = x.as<LetStmt>(); n && n->var.type() == Type{DType::i64, 1}) {
          simplifier.set_range(n->var, simplifier.bounds(n->value));
        }
        return true;
      },
      nullptr);
}

Simplifier simplifier_for(const Stmt& s) {
  Simplifier simplifier;
  learn_ranges(simplifier, s);
  return simplifier;
}

Stmt refresh(const Stmt& s) {
  VarMap vars;
  BufferMap buffers;
  walk(
      s,
      [&](const Stmt& x) {
        const For* loop = x.as<For>();
        const LetStmt* let = x.as<LetStmt>();
        if (loop) vars.emplace(loop->var, Var(loop->var.name(), loop->var.type()));
        if (let) vars.emplace(let->var, Var(let->var.name(), let->var.type()));
        if (const Allocate* n = x.as<Allocate>()) buffers.emplace(n->buffer, Buffer(*n->buffer));
        return true;
      },
      nullptr);
  const auto twin = [&](const Var& v) { return vars.at(v).as<VarRef>()->var; };
  const Stmt renamed = rewrite(
      s,
      [&](const Stmt& x) {
        if (const For* n = x.as<For>()) {
          For copy = *n;
          copy.var = twin(n->var);
          return make_stmt(std::move(copy));
        }
        if (const LetStmt* n = x.as<LetStmt>()) {
          return make_stmt(LetStmt{twin(n->var), n->value, n->body});
        }
        return x;
      },
      [&](const Expr& e) {
        const VarRef* n = e.as<VarRef>();
        if (!n) return e;
        auto it = vars.find(n->var);
        return it == vars.end() ? e : it->second;
      });
  return buffers.empty() ? renamed : replace_buffers(renamed, buffers);
}

int64_t count_statements(const Stmt& s) {
  int64_t count = 0;
  walk(
      s,
      [&](const Stmt& x) {
        count +=
            x.as<Store>() || x.as<Evaluate>() || x.as<For>() || x.as<If>() || x.as<PrefetchLine>();
        return true;
      },
      nullptr);
  return count;
}

void for_each_access(const Stmt& s,
                     const std::function<void(const Buffer&, const std::vector<Expr>&)>& f) {
  walk(
      s,
      [&](const Stmt& x) {
        if (const Store* n = x.as<Store>()) f(n->buffer, n->indices);
        return true;
      },
      [&](const Expr& e) {
        if (const Load* n = e.as<Load>()) f(n->buffer, n->indices);
        return true;
      });
}

}  // namespace tenon
