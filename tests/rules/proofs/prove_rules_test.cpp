#include <fmt/format.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/program.h>
#include <tenon/support/text.h>

#include <catch2/catch.hpp>
#include <iostream>

#include "arith/rules.h"
#include "solver.h"

// Each rule of arith's list as a theorem: for all operands (and constants that its condition
// allows) both sides are equal, in each integer type with wrapping arithmetic.

using namespace tenon;

namespace {

constexpr unsigned kLimit_ms = 1500;

struct Numbers {
  int bits;
  bool is_signed;
  std::string text() const { return fmt::format("{}{}", is_signed ? "i" : "u", bits); }
};

bool divides(const Expr& e) {
  if (const Binary* n = e.as<Binary>())
    return (n->op >= BinaryOp::floor_div && n->op <= BinaryOp::trunc_mod) || divides(n->a) ||
           divides(n->b);
  if (const Unary* n = e.as<Unary>()) return divides(n->a);
  if (const Select* n = e.as<Select>())
    return divides(n->condition) || divides(n->yes) || divides(n->no);
  return false;
}

int64_t highest(const Numbers& t) {
  return t.bits == 64 ? INT64_MAX : (int64_t{1} << (t.is_signed ? t.bits - 1 : t.bits)) - 1;
}

/// As bit vectors of the type's width.
Verdict prove_bits(const Rule& rule, const Numbers& t) {
  z3::context context;
  Translator to(context, t.bits, t.is_signed);
  const z3::expr before = to(rule.pattern);
  to.stop_assuming_divisors();
  const z3::expr after = to(rule.result);
  if (rule.when.defined()) {
    const z3::expr top = to.variable(Var("top"));
    to.assume(top == to.number(highest(t)));
    to.assume(to.exact(rule.when));
  }
  return to.prove(before == after, kLimit_ms);
}

/// As mathematical integers in the type's range, for rules of divisions by positive constants:
/// nothing in them overflows.
Verdict prove_integers(const Rule& rule, const std::map<std::string, int64_t>& constants) {
  z3::context context;
  Translator to(context, 0, true);
  for (const auto& [name, value] : constants) to.assume(to.variable(Var(name)) == to.number(value));
  const z3::expr before = to(rule.pattern);
  to.stop_assuming_divisors();
  const z3::expr after = to(rule.result);
  if (rule.when.defined()) to.assume(to.exact(rule.when));
  return to.prove(before == after, kLimit_ms);
}

bool has_constants(const Rule& rule) {
  for (const WildcardVar& w : wildcards(rule))
    if (w.kind == Wildcard::constant) return true;
  return false;
}

/// All pairs of constants from a list, each for every x.
Verdict prove_at_constants(const Rule& rule) {
  for (int64_t a : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 64, 100, 127})
    for (int64_t b : {1, 2, 3, 4, 5, 8, 16, 31, 128})
      if (const Verdict v = prove_integers(rule, {{"c1", a}, {"c2", b}}); v != Verdict::proved)
        return v;
  return Verdict::proved;
}

}  // namespace

TEST_CASE("rules are proved by Z3") {
  const std::vector<Numbers> types = {{8, true},   {8, false}, {16, true}, {32, true},
                                      {32, false}, {64, true}, {64, false}};
  int64_t bit_proofs = 0, whole = 0, integers = 0, sampled = 0;
  std::vector<std::string> open;
  for (const Rule& rule : all_rules()) {
    INFO(rule.name << ": " << print(rule.pattern) << " -> " << print(rule.result));
    std::vector<std::string> undecided;
    for (const Numbers& t : types) {
      // A u64 constant is none that a rule matches.
      if (t.bits == 64 && !t.is_signed && has_constants(rule)) continue;
      // Wide divisions by unknown constants are beyond bit vectors; the integers below decide them.
      const bool hopeless = divides(rule.pattern) && has_constants(rule) && t.bits > 8;
      const Verdict v = hopeless ? Verdict::unknown : prove_bits(rule, t);
      INFO(t.text());
      CHECK(v != Verdict::refuted);
      bit_proofs += v == Verdict::proved;
      if (v == Verdict::unknown) undecided.push_back(t.text());
    }
    if (undecided.empty()) {
      ++whole;
      continue;
    }
    Verdict v = divides(rule.pattern) ? prove_integers(rule, {}) : Verdict::unknown;
    CHECK(v != Verdict::refuted);
    if (v == Verdict::proved) {
      ++integers;
      continue;
    }
    if (divides(rule.pattern)) v = prove_at_constants(rule);
    CHECK(v != Verdict::refuted);
    if (v == Verdict::proved)
      ++sampled;
    else
      open.push_back(
          fmt::format("{} (no answer in {} ms for {})", rule.name, kLimit_ms, join(undecided)));
  }
  const auto count = static_cast<int64_t>(all_rules().size());
  std::cout << fmt::format(
      "rules: {} of {} proved in every integer type as bit vectors ({} proofs), {} more over the "
      "integers, {} for all operands at 117 pairs of constants, {} not decided\n",
      whole, count, bit_proofs, integers, sampled, open.size());
  for (const std::string& line : open) std::cout << "  not decided: " << line << "\n";
  CHECK(whole + integers + sampled + static_cast<int64_t>(open.size()) == count);
  CHECK((whole + integers + sampled) * 100 >= count * 95);
}
