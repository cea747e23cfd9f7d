#pragma once
#include <tenon/ir/expr.h>
#include <z3++.h>

#include <map>
#include <string>

namespace tenon {

enum class Verdict { proved, refuted, unknown };

/// Expressions as formulas of Z3. An i64 is a mathematical integer (index arithmetic does not
/// overflow) or a number of some bits that wraps. Division by zero has no value, so that every
/// divisor met is assumed not to be 0.
class Translator {
 public:
  /// Bits 0: mathematical integers.
  Translator(z3::context& context, int bits, bool is_signed)
      : context_(context), bits_(bits), signed_(is_signed), assumptions_(context) {}

  z3::expr operator()(const Expr& e);
  /// `e` over the same variables in arithmetic without bounds.
  z3::expr exact(const Expr& e);

  /// The variable's range, and that no divisor is 0.
  void assume(const z3::expr& fact) { assumptions_.push_back(fact); }
  /// From here on divisors may be 0: a result must not need what its pattern does not.
  void stop_assuming_divisors() { divisors_ = false; }
  z3::expr variable(const Var& v);
  z3::expr number(int64_t value);

  /// Whether `claim` follows from what is assumed; gives up after `limit_ms`.
  Verdict prove(const z3::expr& claim, unsigned limit_ms);
  const std::string& counterexample() const { return counterexample_; }

 private:
  z3::expr binary(BinaryOp op, const z3::expr& a, const z3::expr& b, bool numbers);
  z3::expr divide(BinaryOp op, const z3::expr& a, const z3::expr& b);
  z3::expr divide_bits(BinaryOp op, const z3::expr& a, const z3::expr& b);
  z3::expr less(const z3::expr& a, const z3::expr& b);
  z3::expr widened(const z3::expr& e);
  z3::expr exact_number(int64_t value);

  z3::context& context_;
  int bits_;
  bool signed_, divisors_ = true;
  z3::expr_vector assumptions_;
  std::map<std::string, z3::expr> variables_;
  std::string counterexample_;
};

}  // namespace tenon
