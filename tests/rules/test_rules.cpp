#include <tenon/ir/program.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <set>

#include "arith/rules.h"
#include "arith/simplify.h"
#include "tests/unit/arith/evaluate.h"

using namespace tenon;

namespace {

constexpr uint64_t kSeed = 20240607;

/// A pattern with its wildcards replaced; no folding, so that "x + 0" stays what it says.
Expr instantiate(const Expr& pattern, const std::map<std::string, Expr>& operands, DType t) {
  auto sub = [&](const Expr& part) { return instantiate(part, operands, t); };
  if (const auto* v = pattern.as<VarRef>()) return operands.at(v->var.name());
  if (const auto* n = pattern.as<IntImm>()) {
    return is_bool(pattern.dtype()) ? pattern : int_imm(wrap_int(n->value, t), t);
  }
  if (const auto* n = pattern.as<Binary>()) {
    Expr a = sub(n->a), b = sub(n->b);
    Type type = is_bool(pattern.dtype()) ? Type{boolean, 1} : a.type();
    return make_expr(type, Binary{n->op, a, b});
  }
  if (const auto* n = pattern.as<Unary>()) {
    Expr a = sub(n->a);
    return make_expr(a.type(), Unary{n->op, a});
  }
  const auto& n = *pattern.as<Select>();
  Expr yes = sub(n.yes);
  return make_expr(yes.type(), Select{sub(n.condition), yes, sub(n.no)});
}

/// Random operands for every wildcard: variables, which take any value of their type.
struct Instance {
  std::map<std::string, Expr> operands;
  std::vector<Var> vars;

  Instance(const Rule& rule, DType t, Rng& rng) {
    for (const WildcardVar& w : wildcards(rule)) {
      const std::string& name = w.var.name();
      switch (w.kind) {
        case Wildcard::constant:
          operands[name] = int_imm(wrap_int(rng.between(-9, 9), t), t);
          break;
        case Wildcard::boolean:
          variable(name, boolean);
          break;
        case Wildcard::integer:
        case Wildcard::any:
          variable(name, t);
          break;
      }
    }
  }
  void variable(const std::string& name, DType t) {
    vars.emplace_back(name, Type{t, 1});
    operands[name] = vars.back();
  }
};

int64_t random_value(DType t, Rng& rng) {
  if (is_bool(t)) return rng.below(2);
  if (t == i64) return rng.between(-200, 200);
  if (rng.chance(0.2)) return rng.chance(0.5) ? min_int(t) : max_int(t);
  return rng.between(std::max<int64_t>(min_int(t), -200), std::min<int64_t>(max_int(t), 200));
}

/// Fires `rule` once and compares both sides; false when the constants drawn do not satisfy it.
bool fire(const Rule& rule, DType t, Rng& rng) {
  Instance instance(rule, t, rng);
  Expr before = instantiate(rule.pattern, instance.operands, t);
  Expr after = apply_rule(rule, before);
  if (!after.defined()) return false;
  INFO("rule " << rule.name << " in " << name(t) << ": " << print(before) << "  ->  "
               << print(after));
  CHECK(after.type() == before.type());
  for (int trial = 0; trial < 40; ++trial) {
    Valuation at;
    for (const Var& v : instance.vars) at[v.get()] = random_value(v.type().dtype, rng);
    if (evaluate(before, at) != evaluate(after, at)) {
      for (const Var& v : instance.vars) UNSCOPED_INFO(v.name() << " = " << at[v.get()]);
      CHECK(evaluate(before, at) == evaluate(after, at));
      return true;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("every rule fires on random operands and both sides agree") {
  INFO("seed " << kSeed);
  Rng rng(kSeed);
  for (const Rule& rule : all_rules()) {
    bool bools_only = true;
    for (const WildcardVar& w : wildcards(rule)) bools_only &= w.kind == Wildcard::boolean;
    std::vector<DType> types = {i64, i32, u8, i8};
    if (bools_only && !rule.pattern.as<Select>()) types = {boolean};
    for (DType t : types) {
      int fired = 0;
      for (int draw = 0; draw < 400 && fired < 8; ++draw) fired += fire(rule, t, rng);
      INFO("rule " << rule.name << " in " << name(t));
      CHECK(fired == 8);
    }
  }
}

TEST_CASE("simplify uses every rule, or does better") {
  Rng rng(kSeed);
  for (const Rule& rule : all_rules()) {
    for (int draw = 0; draw < 400; ++draw) {
      Instance instance(rule, i32, rng);
      Expr before = instantiate(rule.pattern, instance.operands, i32);
      if (!apply_rule(rule, before).defined()) continue;
      INFO("rule " << rule.name << ": " << print(before));
      CHECK_FALSE(simplify(before).same_as(before));
      break;
    }
  }
}

TEST_CASE("rules have names of their own") {
  std::set<std::string> names;
  for (const Rule& rule : all_rules()) CHECK(names.insert(rule.name).second);
}

TEST_CASE("no rule touches floats, except to choose a whole operand of a select") {
  Var x("x", {f32, 1}), y("y", {f32, 1}), b("b", {boolean, 1});
  Expr fx = x, fy = y;
  for (const Expr& e :
       {fx + 0.0, fx - fx, fx * 0.0, fx / fx, 0.0 + fx, fx * 1.0, (fx + fy) - fy, fx == fx,
        fx != fx,
        fx<fx, fx <= fx, !(fx < fy), min(fx, fx), max(fx, max(fx, fy)), select(b, fx, fx * 0.0), fx>
            fy,
        -(-fx)}) {
    INFO(print(e));
    CHECK(simplify(e).same_as(e));
  }
  CHECK(simplify(select(b, fx, fx)).same_as(fx));
}
