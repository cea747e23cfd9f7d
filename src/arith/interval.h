#pragma once
#include <tenon/ir/visit.h>

#include <optional>
#include <string>

namespace tenon {

/// All integers from min to max, ends included; a missing end is unbounded. Never empty by
/// construction.
struct Interval {
  std::optional<int64_t> min, max;

  static Interval point(int64_t value) { return {value, value}; }
  static Interval all() { return {}; }
  /// [0, extent): the range of a loop of constant extent >= 1.
  static Interval extent(int64_t n) { return {0, n - 1}; }

  bool bounded() const { return min && max; }
  bool within(int64_t low, int64_t high) const { return bounded() && *min >= low && *max <= high; }
  /// The only value, if there is one.
  std::optional<int64_t> single() const { return bounded() && *min == *max ? min : std::nullopt; }
  bool operator==(const Interval&) const = default;
};

/// What the variables of an expression may be. A variable that is missing may be anything.
using VarRanges = std::unordered_map<Var, Interval, VarHash, VarEqual>;

/// Interval arithmetic over the mathematical integers; an end that leaves 64 bits becomes
/// unbounded.
Interval operator+(const Interval& a, const Interval& b);
Interval operator-(const Interval& a, const Interval& b);
Interval operator*(const Interval& a, const Interval& b);
Interval floor_div(const Interval& a, int64_t divisor);  // divisor > 0
Interval floor_mod(const Interval& a, int64_t divisor);  // divisor > 0
Interval min(const Interval& a, const Interval& b);
Interval max(const Interval& a, const Interval& b);
/// The smallest interval that holds both.
Interval hull(const Interval& a, const Interval& b);
/// What lies in both; `a` where they are disjoint.
Interval intersect(const Interval& a, const Interval& b);

/// Rounds to minus infinity; divisor > 0.
int64_t floor_div(int64_t a, int64_t divisor);
int64_t floor_mod(int64_t a, int64_t divisor);

/// All values an integer or bool expression can take when each variable stays in its range; never
/// too small. Index arithmetic (i64, see README) is assumed not to overflow; other integers wrap.
Interval bounds(const Expr& e, const VarRanges& ranges = {});

/// "[0, 63]", "[0, inf]"
std::string print(const Interval& interval);

}  // namespace tenon
