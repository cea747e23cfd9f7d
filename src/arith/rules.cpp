#include "arith/rules.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/program.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <unordered_map>

#include "ir/loads.h"

namespace tenon {
namespace {

struct Wildcards {
  Var t1{"t1"}, t2{"t2"}, t3{"t3"};
  Var b1{"b1", {boolean, 1}}, b2{"b2", {boolean, 1}}, b3{"b3", {boolean, 1}};
  Var n1{"n1"}, n2{"n2"}, n3{"n3"};
  Var c1{"c1"}, c2{"c2"}, top{"top"};
};

const Wildcards& pattern_vars() {
  static const Wildcards w;
  return w;
}

Wildcard kind_of(const Var& v) {
  switch (v.name()[0]) {
    case 't':
      return Wildcard::any;
    case 'b':
      return Wildcard::boolean;
    case 'n':
      return Wildcard::integer;
    default:
      return Wildcard::constant;
  }
}

// Patterns are built without folding or type checks: their wildcards stand for many types.
Expr node(BinaryOp op, const Expr& a, const Expr& b) {
  bool is_bool_op = (op >= BinaryOp::eq && op <= BinaryOp::ge) || op == BinaryOp::logical_and ||
                    op == BinaryOp::logical_or;
  return make_expr({is_bool_op ? boolean : i64, 1}, Binary{op, a, b});
}
Expr node(UnaryOp op, const Expr& a) { return make_expr(a.type(), Unary{op, a}); }
Expr node(const Expr& condition, const Expr& yes, const Expr& no) {
  return make_expr(yes.type(), Select{condition, yes, no});
}

using B = BinaryOp;
using U = UnaryOp;

Expr all_of(const std::vector<Expr>& parts) {
  Expr out = parts[0];
  for (size_t k = 1; k < parts.size(); ++k) out = node(B::logical_and, out, parts[k]);
  return out;
}

void integer_rules(std::vector<Rule>& out) {
  const Wildcards& w = pattern_vars();
  const Expr x = w.n1, y = w.n2, c1 = w.c1, c2 = w.c2, zero = int_imm(0), one = int_imm(1);
  const Expr first_positive = node(B::gt, c1, zero), second_positive = node(B::gt, c2, zero);
  const Expr product_fits =
      all_of({first_positive, second_positive, node(B::le, node(B::mul, c1, c2), w.top)});
  auto rule = [&](std::string name, Expr from, Expr to, Expr when = {}) {
    out.push_back({std::move(name), std::move(from), std::move(to), std::move(when)});
  };
  rule("x + 0", node(B::add, x, zero), x);
  rule("0 + x", node(B::add, zero, x), x);
  rule("x - 0", node(B::sub, x, zero), x);
  rule("x - x", node(B::sub, x, x), zero);
  rule("x * 1", node(B::mul, x, one), x);
  rule("1 * x", node(B::mul, one, x), x);
  rule("x * 0", node(B::mul, x, zero), zero);
  rule("0 * x", node(B::mul, zero, x), zero);
  rule("(x + c1) + c2", node(B::add, node(B::add, x, c1), c2),
       node(B::add, x, node(B::add, c1, c2)));
  rule("(x * c1) * c2", node(B::mul, node(B::mul, x, c1), c2),
       node(B::mul, x, node(B::mul, c1, c2)));
  rule("(x + y) - y", node(B::sub, node(B::add, x, y), y), x);
  rule("(x + y) - x", node(B::sub, node(B::add, x, y), x), y);
  rule("(x - y) + y", node(B::add, node(B::sub, x, y), y), x);
  rule("-(-x)", node(U::neg, node(U::neg, x)), x);
  rule("x // 1", node(B::floor_div, x, one), x);
  rule("x % 1", node(B::floor_mod, x, one), zero);
  rule("trunc_div(x, 1)", node(B::trunc_div, x, one), x);
  rule("trunc_mod(x, 1)", node(B::trunc_mod, x, one), zero);
  rule("0 // c1", node(B::floor_div, zero, c1), zero, first_positive);
  rule("0 % c1", node(B::floor_mod, zero, c1), zero, first_positive);
  rule("x // c1 // c2", node(B::floor_div, node(B::floor_div, x, c1), c2),
       node(B::floor_div, x, node(B::mul, c1, c2)), product_fits);
  rule("x % c1 % c2", node(B::floor_mod, node(B::floor_mod, x, c1), c2), node(B::floor_mod, x, c2),
       all_of({first_positive, second_positive, node(B::eq, node(B::floor_mod, c1, c2), zero)}));
  rule("x % c1 // c2", node(B::floor_div, node(B::floor_mod, x, c1), c2), zero,
       all_of({first_positive, node(B::ge, c2, c1)}));
}

void bit_rules(std::vector<Rule>& out) {
  const Wildcards& w = pattern_vars();
  const Expr x = w.n1, zero = int_imm(0);
  out.push_back({"x & x", node(B::bit_and, x, x), x});
  out.push_back({"x | x", node(B::bit_or, x, x), x});
  out.push_back({"x ^ x", node(B::bit_xor, x, x), zero});
  out.push_back({"x & 0", node(B::bit_and, x, zero), zero});
  out.push_back({"x | 0", node(B::bit_or, x, zero), x});
  out.push_back({"x ^ 0", node(B::bit_xor, x, zero), x});
  out.push_back({"x << 0", node(B::shl, x, zero), x});
  out.push_back({"x >> 0", node(B::shr, x, zero), x});
}

void min_max_rules(std::vector<Rule>& out) {
  const Wildcards& w = pattern_vars();
  const Expr x = w.n1, y = w.n2, c1 = w.c1, c2 = w.c2;
  const Expr low_first = node(B::le, c1, c2), high_first = node(B::ge, c1, c2);
  auto both_ways = [&](B near, B far, const Expr& outside) {
    std::string n(name(near)), f(name(far));
    auto rule = [&](const std::string& text, Expr from, Expr to, Expr when = {}) {
      out.push_back({n + "/" + f + ": " + text, std::move(from), std::move(to), std::move(when)});
    };
    rule("near(x, x)", node(near, x, x), x);
    rule("near(near(x, c1), c2)", node(near, node(near, x, c1), c2),
         node(near, x, node(near, c1, c2)));
    rule("near(far(x, c1), c2)", node(near, node(far, x, c1), c2), c2, outside);
    rule("near(x, far(x, y))", node(near, x, node(far, x, y)), x);
    rule("near(x, far(y, x))", node(near, x, node(far, y, x)), x);
    rule("near(far(x, y), x)", node(near, node(far, x, y), x), x);
    rule("near(far(x, y), y)", node(near, node(far, x, y), y), y);
    rule("near(near(x, y), x)", node(near, node(near, x, y), x), node(near, x, y));
    rule("near(near(x, y), y)", node(near, node(near, x, y), y), node(near, x, y));
  };
  both_ways(B::min, B::max, high_first);
  both_ways(B::max, B::min, low_first);
}

void comparison_rules(std::vector<Rule>& out) {
  const Wildcards& w = pattern_vars();
  const Expr x = w.n1, y = w.n2;
  for (auto [op, holds] : {std::pair{B::eq, true},
                           {B::ne, false},
                           {B::lt, false},
                           {B::le, true},
                           {B::gt, false},
                           {B::ge, true}}) {
    out.push_back({fmt::format("{}(x, x)", name(op)), node(op, x, x), bool_imm(holds)});
  }
  for (auto [op, opposite] : {std::pair{B::eq, B::ne},
                              {B::ne, B::eq},
                              {B::lt, B::ge},
                              {B::le, B::gt},
                              {B::gt, B::le},
                              {B::ge, B::lt}}) {
    out.push_back({fmt::format("!{}(x, y)", name(op)), node(U::logical_not, node(op, x, y)),
                   node(opposite, x, y)});
  }
}

void bool_rules(std::vector<Rule>& out) {
  const Wildcards& w = pattern_vars();
  const Expr x = w.b1, y = w.b2, yes = bool_imm(true), no = bool_imm(false);
  auto both_ways = [&](B near, B far, const Expr& neutral, const Expr& absorbing) {
    std::string n(name(near));
    auto rule = [&](const std::string& text, Expr from, Expr to) {
      out.push_back({n + ": " + text, std::move(from), std::move(to)});
    };
    rule("x, neutral", node(near, x, neutral), x);
    rule("neutral, x", node(near, neutral, x), x);
    rule("x, absorbing", node(near, x, absorbing), absorbing);
    rule("absorbing, x", node(near, absorbing, x), absorbing);
    rule("x, x", node(near, x, x), x);
    rule("(x, y), x", node(near, node(near, x, y), x), node(near, x, y));
    rule("(x, y), y", node(near, node(near, x, y), y), node(near, x, y));
    rule("x, (x, y)", node(near, x, node(near, x, y)), node(near, x, y));
    rule("x, other(x, y)", node(near, x, node(far, x, y)), x);
    rule("other(x, y), x", node(near, node(far, x, y), x), x);
    rule("x, !x", node(near, x, node(U::logical_not, x)), absorbing);
    rule("!x, x", node(near, node(U::logical_not, x), x), absorbing);
  };
  both_ways(B::logical_and, B::logical_or, yes, no);
  both_ways(B::logical_or, B::logical_and, no, yes);
  out.push_back({"!!x", node(U::logical_not, node(U::logical_not, x)), x});
}

void select_rules(std::vector<Rule>& out) {
  const Wildcards& w = pattern_vars();
  const Expr b = w.b1, x = w.t1, y = w.t2, z = w.t3, p = w.b2;
  const Expr yes = bool_imm(true), no = bool_imm(false);
  auto rule = [&](std::string name, Expr from, Expr to) {
    out.push_back({std::move(name), std::move(from), std::move(to)});
  };
  rule("select(true, x, y)", node(yes, x, y), x);
  rule("select(false, x, y)", node(no, x, y), y);
  rule("select(b, x, x)", node(b, x, x), x);
  rule("select(!b, x, y)", node(node(U::logical_not, b), x, y), node(b, y, x));
  rule("select(b, true, false)", node(b, yes, no), b);
  rule("select(b, false, true)", node(b, no, yes), node(U::logical_not, b));
  out.push_back(
      {"select(b, p, false)", node(b, p, no), node(B::logical_and, b, p), {}, /*eager=*/true});
  out.push_back(
      {"select(b, true, p)", node(b, yes, p), node(B::logical_or, b, p), {}, /*eager=*/true});
  rule("select(b, select(b, x, y), z)", node(b, node(b, x, y), z), node(b, x, z));
  rule("select(b, x, select(b, y, z))", node(b, x, node(b, y, z)), node(b, x, z));
}

std::vector<Rule> make_rules() {
  std::vector<Rule> rules;
  integer_rules(rules);
  bit_rules(rules);
  min_max_rules(rules);
  comparison_rules(rules);
  bool_rules(rules);
  select_rules(rules);
  return rules;
}

/// A literal, or the broadcast of one.
const IntImm* literal(const Expr& e) {
  const auto* vector = e.as<Broadcast>();
  return vector ? vector->value.as<IntImm>() : e.as<IntImm>();
}

/// Bindings of at most 8 wildcards.
class Match {
 public:
  bool operator()(const Expr& pattern, const Expr& e) {
    if (const auto* v = pattern.as<VarRef>()) return bind(v->var, e);
    if (const auto* n = pattern.as<IntImm>()) {
      const IntImm* value = literal(e);
      return value && value->value == n->value && is_bool(e.dtype()) == is_bool(pattern.dtype());
    }
    if (pattern.node().v.index() != e.node().v.index()) return false;
    if (const auto* p = pattern.as<Binary>()) {
      const auto* n = e.as<Binary>();
      return p->op == n->op && (*this)(p->a, n->a) && (*this)(p->b, n->b);
    }
    if (const auto* p = pattern.as<Unary>()) {
      const auto* n = e.as<Unary>();
      return p->op == n->op && (*this)(p->a, n->a);
    }
    const auto *p = pattern.as<Select>(), *n = e.as<Select>();
    return p && (*this)(p->condition, n->condition) && (*this)(p->yes, n->yes) &&
           (*this)(p->no, n->no);
  }

  /// Whether the condition holds for the constants that were matched.
  bool holds(const Expr& when) const {
    if (!when.defined()) return true;
    DType type = DType::i64;
    for (const auto& [var, value] : bound_)
      if (kind_of(var) == Wildcard::constant) type = value.dtype();
    return exact(when, type) != 0;
  }

  Expr instantiate(const Expr& result) const {
    if (const auto* v = result.as<VarRef>()) {
      for (const auto& [var, value] : bound_) {
        if (var.same_as(v->var)) return value;
      }
      TENON_CHECK(false, "the result of a rule speaks of {} and its pattern does not",
                  v->var.name());
    }
    if (const auto* n = result.as<Binary>()) {
      return binary(n->op, instantiate(n->a), instantiate(n->b));
    }
    if (const auto* n = result.as<Unary>()) return unary(n->op, instantiate(n->a));
    if (const auto* n = result.as<Select>()) {
      return select(instantiate(n->condition), instantiate(n->yes), instantiate(n->no));
    }
    return result;
  }

 private:
  using Wide = __int128;

  Wide exact(const Expr& e, DType type) const {
    if (const auto* n = e.as<IntImm>()) return n->value;
    if (const auto* v = e.as<VarRef>()) {
      for (const auto& [var, value] : bound_)
        if (var.same_as(v->var)) return literal(value)->value;
      return max_int(type);  // top
    }
    const auto& n = *e.as<Binary>();
    const Wide a = exact(n.a, type), b = exact(n.b, type);
    switch (n.op) {
      case B::mul:
        return a * b;
      case B::floor_mod:
        return b == 0 ? 0 : (a % b + b) % b;
      case B::eq:
        return a == b;
      case B::gt:
        return a > b;
      case B::ge:
        return a >= b;
      case B::le:
        return a <= b;
      case B::logical_and:
        return a && b;
      default:
        break;
    }
    TENON_CHECK(false, "the condition of a rule has {}", print(e));
    return 0;
  }

  bool bind(const Var& v, const Expr& e) {
    DType t = e.dtype();
    switch (kind_of(v)) {
      case Wildcard::any:
        break;
      case Wildcard::boolean:
        if (!is_bool(t)) return false;
        break;
      case Wildcard::integer:
        if (!is_int(t)) return false;
        break;
      case Wildcard::constant:
        if (!is_int(t) || t == u64 || !literal(e)) return false;
        break;
    }
    for (const auto& [var, value] : bound_) {
      if (var.same_as(v)) return structural_equal(value, e);
    }
    bound_.emplace_back(v, e);
    return true;
  }

  std::vector<std::pair<Var, Expr>> bound_;
};

/// A literal result takes the type and the lanes of what it replaces.
Expr fit(const Expr& result, Type t) {
  const auto* n = result.as<IntImm>();
  if (!n || result.type() == t) return result;
  Expr value = int_imm(wrap_int(n->value, t.dtype), t.dtype);
  return t.lanes == 1 ? value : broadcast(value, t.lanes);
}

/// Rules by the kind of their root, so that an expression meets few of them.
size_t root_key(const Expr& e) {
  if (const auto* n = e.as<Binary>()) return 1 + static_cast<size_t>(n->op);
  if (const auto* n = e.as<Unary>()) return 64 + static_cast<size_t>(n->op);
  return e.as<Select>() ? 128 : 0;
}

const std::vector<const Rule*>& rules_for(const Expr& e) {
  static const std::vector<std::vector<const Rule*>> table = [] {
    std::vector<std::vector<const Rule*>> out(129);
    for (const Rule& rule : all_rules()) out[root_key(rule.pattern)].push_back(&rule);
    return out;
  }();
  return table[root_key(e)];
}

}  // namespace

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules = make_rules();
  return rules;
}

std::vector<WildcardVar> wildcards(const Rule& rule) {
  std::vector<WildcardVar> out;
  for (const Var& v : free_vars(rule.pattern)) out.push_back({v, kind_of(v)});
  return out;
}

Expr apply_rule(const Rule& rule, const Expr& e) {
  Match match;
  if (!match(rule.pattern, e)) return {};
  if (!match.holds(rule.when)) return {};
  if (rule.eager && has_load(e)) return {};
  return fit(match.instantiate(rule.result), e.type());
}

Expr apply_rules(const Expr& e) {
  for (const Rule* rule : rules_for(e)) {
    if (Expr out = apply_rule(*rule, e); out.defined()) return out;
  }
  return {};
}

}  // namespace tenon
