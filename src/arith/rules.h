#pragma once
#include <tenon/ir/expr.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// What a pattern variable stands for.
enum class Wildcard : uint8_t {
  any,       // t1, t2, t3: one type of any kind
  boolean,   // b1, b2, b3
  integer,   // n1, n2, n3: any integer type; the arithmetic wraps
  constant,  // c1, c2: an integer literal (in flat code also a broadcast one)
};

/// pattern -> result wherever the wildcards match and `when` (if any) holds: a condition on c1, c2
/// and `top`, the highest value of the type, in arithmetic without bounds. Rules are true for every
/// value of their wildcards in the type at hand, with wrapping arithmetic; tests/rules fires each
/// of them and tests/rules/proofs proves what can be proved.
struct Rule {
  std::string name;
  Expr pattern, result, when;
  /// The result reads what the pattern read under a condition only: it does not fire where that is
  /// memory, which may not be there (select(i < n, x[i], false) is not i < n && x[i]).
  bool eager = false;
};

/// The one list. The affine part of simplify (sums, // and % of sums) is code: sums have any number
/// of terms.
const std::vector<Rule>& all_rules();

/// The wildcards of a rule's pattern in order of first appearance.
struct WildcardVar {
  Var var;
  Wildcard kind;
};
std::vector<WildcardVar> wildcards(const Rule& rule);

/// The result of `rule` on `e`, or undefined when it does not fire.
Expr apply_rule(const Rule& rule, const Expr& e);

/// The first rule that fires on `e` itself (not below it), or undefined.
Expr apply_rules(const Expr& e);

}  // namespace tenon
