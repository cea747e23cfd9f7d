#pragma once
#include <tenon/ir/expr.h>

#include <map>
#include <vector>

namespace tenon {

/// One scalar expression for many values of its variables at once: arithmetic only, no loads.
/// Floats live in `f`, rounded to their type after each operation; integers and bools in `i`.
struct Column {
  std::vector<double> f;
  std::vector<int64_t> i;
};
using Columns = std::map<const VarNode*, Column>;

Column evaluate(const Expr& e, Columns& columns, size_t count);

}  // namespace tenon
