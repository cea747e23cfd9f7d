#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include "ir/loads.h"
#include "lower/passes.h"
#include "lower/util.h"

namespace tenon {
namespace {

// for x: if a && b(x): S   ->   if a: for x: if b(x): S
Stmt hoist_condition(For loop) {
  if (is_bound(loop.mark)) return make_stmt(std::move(loop));  // kernels keep their shape
  const If* branch = loop.body.as<If>();
  if (!branch || branch->else_case.defined()) return make_stmt(std::move(loop));
  std::vector<Expr> outer, inner;
  for (const Expr& part : conjuncts(branch->condition)) {
    const bool stays = uses_var(part, loop.var) || has_load(part);
    (stays ? inner : outer).push_back(part);
  }
  if (outer.empty()) return make_stmt(std::move(loop));
  const Stmt then_case = branch->then_case;
  const Expr condition = conjunction(inner);
  loop.body = condition.defined() ? make_stmt(If{condition, then_case, {}}) : then_case;
  return make_stmt(If{conjunction(outer), make_stmt(std::move(loop)), {}});
}

class ProgramSimplifier {
 public:
  explicit ProgramSimplifier(const Stmt& body) : simplifier_(simplifier_for(body)) {}

  Stmt stmt(const Stmt& s) {
    if (!s.defined()) return s;
    if (const For* n = s.as<For>()) return loop(*n);
    if (const If* n = s.as<If>()) return branch(*n);
    if (const LetStmt* n = s.as<LetStmt>()) return let_stmt(*n);
    if (const Allocate* n = s.as<Allocate>()) {
      Stmt body = stmt(n->body);
      return body.defined() ? make_stmt(Allocate{n->buffer, body}) : body;
    }
    if (const Store* n = s.as<Store>()) return store(*n);
    if (const Seq* n = s.as<Seq>()) {
      std::vector<Stmt> parts;
      for (const Stmt& part : n->stmts) parts.push_back(stmt(part));
      return seq(std::move(parts));
    }
    return map_children(
        s, [&](const Stmt& c) { return stmt(c); }, [&](const Expr& e) { return expr(e); });
  }

 private:
  Expr expr(const Expr& e) { return simplifier_.simplify(e); }

  Stmt loop(const For& n) {
    const Expr min = expr(n.min), extent = expr(n.extent);
    const auto count = as_int(extent);
    if (count && *count <= 0) return {};
    if (count && *count == 1) return stmt(substitute(n.body, {{n.var, min}}));
    const bool parallel = n.mark == LoopMark::parallel;
    For out = n;
    out.min = min;
    out.extent = extent;
    if (parallel && in_parallel_) out.mark = LoopMark::serial;
    const bool outer = in_parallel_;
    in_parallel_ |= parallel;
    out.body = stmt(n.body);
    in_parallel_ = outer;
    return out.body.defined() ? hoist_condition(std::move(out)) : Stmt();
  }

  Stmt branch(const If& n) {
    const Expr condition = expr(n.condition);
    if (is_true(condition)) return stmt(n.then_case);
    if (is_false(condition)) return stmt(n.else_case);
    const Stmt yes = stmt(n.then_case), no = stmt(n.else_case);
    if (!yes.defined() && !no.defined()) return {};
    if (!yes.defined()) return make_stmt(If{expr(!condition), no, {}});
    return make_stmt(If{condition, yes, no});
  }

  Stmt let_stmt(const LetStmt& n) {
    const Expr value = expr(n.value);
    if (value.as<IntImm>() || value.as<FloatImm>() || value.as<VarRef>()) {
      return stmt(substitute(n.body, {{n.var, value}}));
    }
    Stmt body = stmt(n.body);
    if (!body.defined() || !uses_var(body, n.var)) return body;
    return make_stmt(LetStmt{n.var, value, body});
  }

  Stmt store(const Store& n) {
    Store out = n;
    for (Expr& index : out.indices) index = expr(index);
    out.value = expr(n.value);
    out.mask = expr(n.mask);
    if (out.mask.defined()) {
      const Broadcast* b = out.mask.as<Broadcast>();
      const Expr flag = b ? b->value : out.mask;
      if (is_false(flag)) return {};
      if (is_true(flag)) out.mask = {};
    }
    return make_stmt(std::move(out));
  }

  Simplifier simplifier_;
  bool in_parallel_ = false;
};

}  // namespace

Program simplify_program(const Program& program) {
  Program out = program;
  if (program.body.defined()) out.body = ProgramSimplifier(program.body).stmt(program.body);
  return out;
}

}  // namespace tenon
