#include <tenon/ir/notes.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <set>

#include "ir/loads.h"
#include "lower/passes.h"
#include "lower/util.h"

namespace tenon {
namespace {

// The conditions in `body` that depend on `v`: of guards, and of selects where asked.
std::vector<Expr> conditions_on(const Stmt& body, const Var& v, bool selects) {
  std::vector<Expr> out;
  const auto take = [&](const Expr& condition) {
    for (const Expr& part : conjuncts(condition)) {
      if (uses_var(part, v) && !has_load(part)) out.push_back(part);
    }
  };
  walk(
      body,
      [&](const Stmt& s) {
        if (const If* n = s.as<If>()) take(n->condition);
        return true;
      },
      [&](const Expr& e) {
        const Select* n = e.as<Select>();
        if (selects && n) take(n->condition);
        return selects;
      });
  return out;
}

// Where a condition holds for all values of the other variables: v < high, or v >= low; and where
// it cannot hold.
struct Bound {
  std::optional<int64_t> low, high;
};
struct Bounds {
  Bound always, possible;
};

// `condition` as form <= 0; nothing for other conditions.
std::optional<Affine> at_most_zero(const Expr& condition, Simplifier& simplifier) {
  const Binary* n = condition.as<Binary>();
  if (!n || n->a.type() != Type{DType::i64, 1}) return std::nullopt;
  const Affine a = simplifier.affine(n->a), b = simplifier.affine(n->b);
  Affine form;
  switch (n->op) {
    case BinaryOp::lt:
      form = a - b + Affine::of(1);
      break;
    case BinaryOp::le:
      form = a - b;
      break;
    case BinaryOp::gt:
      form = b - a + Affine::of(1);
      break;
    case BinaryOp::ge:
      form = b - a;
      break;
    default:
      return std::nullopt;
  }
  return form.overflow ? std::nullopt : std::optional(form);
}

Bounds bounds_on(const Expr& condition, const Var& v, Simplifier& simplifier) {
  const auto form = at_most_zero(condition, simplifier);
  if (!form) return {};
  const int64_t a = form->coefficient(v);
  Affine rest = *form;
  rest.add(v, -a);
  for (const Affine::Term& t : rest.terms) {
    if (uses_var(t.atom, v)) return {};
  }
  const Interval range = simplifier.bounds(rest);
  Bounds out;
  // a*v + rest <= 0: always when v*a <= -max(rest), possible when v*a <= -min(rest).
  if (a > 0) {
    if (range.max) out.always.high = floor_div(-*range.max, a) + 1;
    if (range.min) out.possible.high = floor_div(-*range.min, a) + 1;
  } else if (a < 0) {
    if (range.max) out.always.low = -floor_div(-*range.max, -a);
    if (range.min) out.possible.low = -floor_div(-*range.min, -a);
  }
  return out;
}

// Where to cut [low, high) so that as many conditions as can be are decided in the widest part.
std::vector<int64_t> cuts_of(const std::vector<Expr>& conditions, const Var& v, int64_t low,
                             int64_t high, Simplifier& simplifier) {
  int64_t first = low, last = high, possible_first = low, possible_last = high;
  std::set<int64_t> cuts;
  for (const Expr& c : conditions) {
    const Bounds b = bounds_on(c, v, simplifier);
    const int64_t l = b.always.low.value_or(low), h = b.always.high.value_or(high);
    const bool sided = b.always.low || b.always.high;
    if (sided && l < high && h > low) {
      first = std::max(first, l);
      last = std::min(last, h);
    }
    if (b.possible.low) possible_first = std::max(possible_first, *b.possible.low);
    if (b.possible.high) possible_last = std::min(possible_last, *b.possible.high);
    // v < 64, v < 128, ...: no part decides all of them, but each cut decides one for good.
    if (b.always.high && b.always.high == b.possible.high) cuts.insert(h);
    if (b.always.low && b.always.low == b.possible.low) cuts.insert(l);
  }
  for (int64_t at : {first, last, possible_first, possible_last}) {
    cuts.insert(at);
  }
  return {cuts.upper_bound(low), cuts.lower_bound(high)};
}

Stmt make_branch(const Expr& condition, const Stmt& yes, const Stmt& no) {
  if (!yes.defined() && !no.defined()) return {};
  if (!yes.defined()) return make_stmt(If{!condition, no, {}});
  return make_stmt(If{condition, yes, no});
}

// One stretch of a variable's values with its own copy of the body.
struct Part {
  int64_t low, high;
  Stmt body;
  bool main = false;  // the widest
};

class Partitioner {
 public:
  Partitioner(const Stmt& body, int64_t max_statements)
      : simplifier_(simplifier_for(body)), budget_(max_statements - count_statements(body)) {}

  // `selects`: whether loops are cut for the conditions of selects as well.
  Stmt stmt(const Stmt& s, bool selects) {
    if (!s.defined()) return s;
    if (const For* n = s.as<For>()) return loop(*n, selects);
    if (const If* n = s.as<If>()) return branch(*n, selects);
    if (const LetStmt* n = s.as<LetStmt>(); n && n->var.type() == Type{DType::i64, 1}) {
      return let_stmt(*n, selects);
    }
    if (const Allocate* n = s.as<Allocate>()) {
      const Stmt body = stmt(n->body, selects);
      return body.defined() ? make_stmt(Allocate{n->buffer, body}) : Stmt();
    }
    if (const Seq* n = s.as<Seq>()) {
      std::vector<Stmt> parts;
      for (const Stmt& part : n->stmts) parts.push_back(stmt(part, selects));
      return seq(std::move(parts));
    }
    return map_children(
        s, [&](const Stmt& c) { return stmt(c, selects); },
        [&](const Expr& e) { return decide_selects(e); });
  }

 private:
  // The condition without the parts that always hold here; `never` when one cannot hold.
  Expr remaining(const Expr& condition, bool* never) {
    std::vector<Expr> open;
    for (const Expr& part : conjuncts(condition)) {
      const Expr known = simplifier_.simplify(part);
      *never |= is_false(known);
      if (!is_true(known)) open.push_back(known);
    }
    return conjunction(open);
  }

  Expr decide_selects(const Expr& e) {
    return rewrite(e, [&](const Expr& x) {
      const Select* n = x.as<Select>();
      if (!n || n->condition.lanes() > 1 || has_load(n->condition)) return x;
      bool never = false;
      const Expr condition = remaining(n->condition, &never);
      if (never) return n->no;
      return condition.defined() ? select(condition, n->yes, n->no) : n->yes;
    });
  }

  Stmt branch(const If& n, bool selects) {
    bool never = false;
    const Expr condition = remaining(n.condition, &never);
    if (never) return stmt(n.else_case, selects);
    if (!condition.defined()) return stmt(n.then_case, selects);
    return make_branch(condition, stmt(n.then_case, selects), stmt(n.else_case, selects));
  }

  std::vector<Part> parts_of(const Var& v, const Interval& range, const Stmt& body, bool selects,
                             bool copies);
  Stmt lift_quotients(const Var& v, const Stmt& body, bool selects);
  Stmt under(const Var& v, const Part& part, bool selects);
  Stmt branches(const Var& v, const std::vector<Part>& parts, bool selects);
  Stmt loop(const For& n, bool selects);
  Stmt consecutive(const For& n, const std::vector<Part>& parts, bool selects);
  Stmt trimmed(const For& n, const std::vector<Part>& parts, bool selects);
  Stmt let_stmt(const LetStmt& n, bool selects);

  Simplifier simplifier_;
  int64_t budget_;
};

// Cuts the values of `v` where conditions change; one part when nothing is gained or the budget is
// used up. With `copies` each part but the first gets a body with identities of its own.
std::vector<Part> Partitioner::parts_of(const Var& v, const Interval& range, const Stmt& body,
                                        bool selects, bool copies) {
  int64_t low = *range.min;
  const std::vector<Expr> conditions = conditions_on(body, v, selects);
  std::vector<int64_t> ends;
  if (!conditions.empty()) ends = cuts_of(conditions, v, low, *range.max + 1, simplifier_);
  if (copies && !ends.empty()) {
    const int64_t cost = static_cast<int64_t>(ends.size()) * count_statements(body);
    if (cost > budget_)
      ends.clear();
    else
      budget_ -= cost;
  }
  ends.push_back(*range.max + 1);
  std::vector<Part> parts;
  for (const int64_t end : ends) {
    const bool copy = copies && !parts.empty();
    parts.push_back({low, end, copy ? refresh(body) : body});
    if (copy) learn_ranges(simplifier_, parts.back().body);
    low = end;
  }
  std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return a.high - a.low < b.high - b.low;
  })->main = true;
  return parts;
}

// The body for the values of one part. Tails inherit the wish to partition selects, the main part
// does not.
Stmt Partitioner::under(const Var& v, const Part& part, bool selects) {
  const bool inner = selects && !part.main;
  if (part.high - part.low == 1) {
    return stmt(substitute(part.body, {{v, int_imm(part.low)}}), inner);
  }
  simplifier_.set_range(v, {part.low, part.high - 1});
  return stmt(part.body, inner);
}

// if v < 4: part 0   else if v < 9: part 1   else: part 2
Stmt Partitioner::branches(const Var& v, const std::vector<Part>& parts, bool selects) {
  Stmt out;
  for (size_t k = parts.size(); k-- > 0;) {
    const Stmt body = under(v, parts[k], selects);
    out = k + 1 == parts.size() ? body : make_branch(Expr(v) < int_imm(parts[k].high), body, out);
  }
  return out;
}

Stmt Partitioner::consecutive(const For& n, const std::vector<Part>& parts, bool selects) {
  std::vector<Stmt> pieces;
  for (const Part& part : parts) {
    Part own = part;
    For piece = n;
    if (!pieces.empty()) {
      piece.var = Var(n.var.name());
      own.body = substitute(part.body, {{n.var, piece.var}});
    }
    piece.min = int_imm(part.low);
    piece.extent = int_imm(part.high - part.low);
    piece.body = under(piece.var, own, selects);
    if (!piece.body.defined()) continue;
    pieces.push_back(part.high - part.low == 1 ? piece.body : make_stmt(std::move(piece)));
  }
  return seq(std::move(pieces));
}

// A vectorised loop is not cut, but what does nothing at its ends goes.
Stmt Partitioner::trimmed(const For& n, const std::vector<Part>& parts, bool selects) {
  For out = n;
  out.body = {};
  int64_t low = 0, high = 0, pieces = 0;
  for (const Part& part : parts) {
    simplifier_.set_range(n.var, {part.low, part.high - 1});
    const Stmt body = stmt(part.body, selects);
    if (!body.defined()) continue;
    if (pieces++ == 0) low = part.low;
    high = part.high;
    out.body = body;
  }
  if (pieces > 1) {
    simplifier_.set_range(n.var, {low, high - 1});
    out.body = stmt(n.body, selects);
  }
  out.min = int_imm(low);
  out.extent = int_imm(high - low);
  return out.body.defined() ? make_stmt(std::move(out)) : Stmt();
}

Stmt Partitioner::loop(const For& n, bool selects) {
  selects |= n.notes.count(std::string(kPartitionNote)) > 0;
  const auto low = as_int(n.min), extent = as_int(n.extent);
  if (extent && *extent <= 0) return {};
  // The rows of a tile stay a loop, however few they are.
  if (extent && *extent == 1 && !n.intrinsic)
    return stmt(substitute(n.body, {{n.var, n.min}}), selects);
  if (!low || !extent) {
    For out = n;
    out.body = stmt(n.body, selects);
    return out.body.defined() ? make_stmt(std::move(out)) : Stmt();
  }
  const Interval range{*low, *low + *extent - 1};
  simplifier_.set_range(n.var, range);
  // Blocks and threads keep their guards: barriers stand among them.
  if (n.notes.count(std::string(kNoPartitionNote)) || is_bound(n.mark)) {
    For out = n;
    out.body = stmt(n.body, selects);
    return out.body.defined() ? make_stmt(std::move(out)) : Stmt();
  }
  if (makes_lanes(n.mark)) {
    return trimmed(n, parts_of(n.var, range, n.body, selects, false), selects);
  }
  Stmt body = n.body;
  if (n.mark != LoopMark::unroll) body = lift_quotients(n.var, body, selects);
  const std::vector<Part> parts = parts_of(n.var, range, body, selects, true);
  if (n.mark != LoopMark::parallel) return consecutive(n, parts, selects);
  For out = n;
  out.body = branches(n.var, parts, selects);
  return out.body.defined() ? make_stmt(std::move(out)) : Stmt();
}

// Conditions speak of v // c and v % c where v runs over a fused loop: these become variables with
// ranges.
Stmt Partitioner::lift_quotients(const Var& v, const Stmt& body, bool selects) {
  std::vector<Expr> found;
  const auto index_of = [&](const Expr& e) {
    return std::find_if(found.begin(), found.end(),
                        [&](const Expr& x) { return structural_equal(x, e); }) -
           found.begin();
  };
  for (const Expr& condition : conditions_on(body, v, selects)) {
    walk(condition, [&](const Expr& e) {
      const Binary* n = e.as<Binary>();
      const VarRef* dividend = n ? n->a.as<VarRef>() : nullptr;
      const bool quotient = n && (n->op == BinaryOp::floor_div || n->op == BinaryOp::floor_mod);
      if (quotient && dividend && dividend->var.same_as(v) && as_int(n->b)) {
        if (index_of(e) == static_cast<std::ptrdiff_t>(found.size())) found.push_back(e);
      }
      return true;
    });
  }
  if (found.empty()) return body;
  std::vector<Var> names;
  for (const Expr& e : found) {
    const bool quotient = e.as<Binary>()->op == BinaryOp::floor_div;
    names.emplace_back(fmt::format("{}.{}", v.name(), quotient ? "q" : "r"));
    simplifier_.set_range(names.back(), simplifier_.bounds(e));
  }
  Stmt out = rewrite(body, nullptr, [&](const Expr& e) {
    if (!e.as<Binary>()) return e;
    const auto k = static_cast<size_t>(index_of(e));
    return k < found.size() ? Expr(names[k]) : e;
  });
  for (size_t k = found.size(); k-- > 0;) out = make_stmt(LetStmt{names[k], found[k], out});
  return out;
}

Stmt Partitioner::let_stmt(const LetStmt& n, bool selects) {
  const Expr value = simplifier_.simplify(n.value);
  if (value.as<IntImm>()) return stmt(substitute(n.body, {{n.var, value}}), selects);
  const Interval range = simplifier_.bounds(value);
  simplifier_.set_range(n.var, range);
  Stmt body;
  if (range.bounded()) {
    const Stmt lifted = lift_quotients(n.var, n.body, selects);
    body = branches(n.var, parts_of(n.var, range, lifted, selects, true), selects);
  } else {
    body = stmt(n.body, selects);
  }
  return body.defined() ? make_stmt(LetStmt{n.var, decide_selects(n.value), body}) : Stmt();
}

}  // namespace

Program partition_loops(const Program& program, int64_t max_statements) {
  Program out = program;
  out.body = Partitioner(program.body, max_statements).stmt(program.body, false);
  return out;
}

}  // namespace tenon
