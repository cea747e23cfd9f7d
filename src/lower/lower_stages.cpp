#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "ir/loads.h"
#include "lower/passes.h"
#include "lower/util.h"

namespace tenon {
namespace {

Stmt store(const Buffer& buffer, const std::vector<Expr>& indices, Expr value) {
  return make_stmt(Store{buffer, indices, std::move(value), {}, false});
}

Stmt let_all(const std::vector<Var>& vars, const std::vector<Expr>& values, Stmt body) {
  for (size_t k = vars.size(); k-- > 0;) body = make_stmt(LetStmt{vars[k], values[k], body});
  return body;
}

std::vector<Var> fresh_vars(const std::string& prefix, const std::vector<Expr>& values) {
  std::vector<Var> vars;
  for (size_t k = 0; k < values.size(); ++k) {
    vars.emplace_back(fmt::format("{}{}", prefix, k), values[k].type());
  }
  return vars;
}

std::vector<Expr> refs(const std::vector<Var>& vars) { return {vars.begin(), vars.end()}; }

// A tuple is updated as one: every old element is read before the first new one is written.
Stmt update_tuple(const Stage& stage, const std::vector<Expr>& indices,
                  const std::vector<Expr>& values) {
  std::vector<Expr> old;
  for (const Buffer& b : stage.outputs) old.push_back(load(b, indices));
  const std::vector<Var> old_vars = fresh_vars(stage.name + ".old", old);
  const std::vector<Var> term_vars = fresh_vars(stage.name + ".term", values);
  const std::vector<Expr> joined = combine(*stage.combiner, refs(old_vars), refs(term_vars));
  const std::vector<Var> new_vars = fresh_vars(stage.name + ".new", joined);
  std::vector<Stmt> stores;
  for (size_t k = 0; k < values.size(); ++k) {
    stores.push_back(store(stage.outputs[k], indices, new_vars[k]));
  }
  Stmt body = let_all(new_vars, joined, seq(std::move(stores)));
  return let_all(old_vars, old, let_all(term_vars, values, body));
}

// The outputs of a map with several: all values first, so that none sees another's store.
Stmt write_tuple(const Stage& stage, const std::vector<Expr>& indices,
                 const std::vector<Expr>& values) {
  const std::vector<Var> vars = fresh_vars(stage.name + ".new", values);
  std::vector<Stmt> stores;
  for (size_t k = 0; k < values.size(); ++k) {
    stores.push_back(store(stage.outputs[k], indices, vars[k]));
  }
  return let_all(vars, values, seq(std::move(stores)));
}

// A reduction by points that may not count, c += select(condition, term, identity), is an update
// under a condition: what is skipped costs nothing, and loops can be cut where the condition
// changes. Parts of it that differ between lanes stay: there a select is a blend.
Expr take_condition(const Stage& stage, Expr& value, const std::vector<Var>& lanes) {
  const Expr whole = value;
  const Select* s = whole.as<Select>();
  if (!s || !structural_equal(s->no, stage.combiner->identity[0])) return {};
  std::vector<Expr> uniform, rest;
  for (const Expr& part : conjuncts(s->condition)) {
    const bool stays = has_load(part) || std::any_of(lanes.begin(), lanes.end(), [&](const Var& v) {
                         return uses_var(part, v);
                       });
    (stays ? rest : uniform).push_back(part);
  }
  value = rest.empty() ? s->yes : select(conjunction(rest), s->yes, s->no);
  return conjunction(uniform);
}

Stmt lower_stage(const Stage& stage, const std::vector<Var>& lanes) {
  VarMap bindings;
  for (const AxisBinding& b : stage.axes) bindings[b.axis.var] = b.value;
  std::vector<Expr> indices, values;
  for (const Expr& e : stage.indices) indices.push_back(substitute(e, bindings));
  for (const Expr& e : stage.values) values.push_back(substitute(e, bindings));
  TENON_CHECK(stage.init.empty(), "stage {} still has an init", stage.name);

  Expr counts;
  if (stage.combiner && values.size() == 1) counts = take_condition(stage, values[0], lanes);
  Stmt body;
  if (stage.outputs.size() > 1) {
    body =
        stage.combiner ? update_tuple(stage, indices, values) : write_tuple(stage, indices, values);
  } else if (stage.combiner) {
    const Expr old = load(stage.outputs[0], indices);
    body = store(stage.outputs[0], indices, combine(*stage.combiner, {old}, values)[0]);
  } else {
    body = store(stage.outputs[0], indices, values[0]);
  }
  const Expr guard = both(both(stage.spatial_guard, stage.reduce_guard), counts);
  return guard.defined() ? make_stmt(If{guard, body, {}}) : body;
}

// `lanes`: the variables of the loops around that become vectors.
Stmt lower_all(const Stmt& s, std::vector<Var> lanes) {
  if (!s.defined()) return s;
  if (const Stage* stage = s.as<Stage>()) return lower_stage(*stage, lanes);
  if (const For* n = s.as<For>(); n && makes_lanes(n->mark)) lanes.push_back(n->var);
  return map_children(
      s, [&](const Stmt& c) { return lower_all(c, lanes); }, [](const Expr& e) { return e; });
}

}  // namespace

Program lower_stages(const Program& program) {
  Program out = program;
  out.body = lower_all(program.body, {});
  return out;
}

}  // namespace tenon
