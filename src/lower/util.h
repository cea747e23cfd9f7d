#pragma once
#include <tenon/ir/stmt.h>

#include <functional>

#include "arith/simplify.h"

namespace tenon {

/// The values of a loop's variable.
Interval loop_range(const For& loop, Simplifier& simplifier);

/// Tells the simplifier the ranges of all loops and integer Lets in `s`.
void learn_ranges(Simplifier& simplifier, const Stmt& s);
/// A simplifier that knows the ranges of all loops and integer Lets in `s`.
Simplifier simplifier_for(const Stmt& s);

/// A copy whose loops, Lets and allocated buffers have identities of their own.
Stmt refresh(const Stmt& s);

/// Statements that do something: stores, evaluations and the loops and branches around them.
int64_t count_statements(const Stmt& s);

/// Every access of a buffer: f(buffer, indices), stores before the loads in their operands.
void for_each_access(const Stmt& s,
                     const std::function<void(const Buffer&, const std::vector<Expr>&)>& f);

}  // namespace tenon
