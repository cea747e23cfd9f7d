#pragma once
#include <tenon/ir/visit.h>

#include <cstdint>
#include <optional>
#include <unordered_map>

namespace tenon {

/// Values from low to high, both inclusive.
struct IndexRange {
  int64_t low = 0, high = 0;
};

/// Proves that 32 bits are enough for index arithmetic, from the extents of the loops around it.
class IndexWidth {
 public:
  /// From here on `v` is one of these values.
  void bind(const Var& v, IndexRange range) { vars_[v] = range; }

  /// All values of an i64 expression, or {0, 1} for a condition; nothing unless they and those of
  /// every part of it fit 32 bits. Memory is not looked into: nothing for what loads.
  std::optional<IndexRange> range(const Expr& e) const;
  bool fits(const Expr& e) const { return range(e).has_value(); }

  /// Values of a loop's variable from its first value and extent; nothing unless they and the value
  /// after the last one fit 32 bits.
  std::optional<IndexRange> loop(const Expr& first, const Expr& extent) const;

 private:
  using Known = std::unordered_map<const ExprNode*, std::optional<IndexRange>>;
  std::optional<IndexRange> range(const Expr& e, Known& known) const;
  std::optional<IndexRange> compute(const Expr& e, Known& known) const;
  std::optional<IndexRange> of_binary(const Binary& n, Known& known) const;

  std::unordered_map<Var, IndexRange, VarHash, VarEqual> vars_;
};

}  // namespace tenon
