#pragma once
#include <tenon/ir/program.h>
#include <tenon/target/target.h>

#include <functional>

namespace tenon {

struct LowerOptions {
  /// Called with the pass's name and the program after it (printing, dumps, verification and
  /// interpretation in tests).
  std::function<void(std::string_view pass, const Program&)> after_pass;
  /// Total statements a partition may create before it keeps the guard instead.
  int64_t max_statements = 4000;
};

/// Loop tree -> flat function. lower.cpp is the list of passes. UserError for what a schedule asks
/// and the target cannot do (a register buffer with a run-time index, too large a register tile,
/// ...).
Program lower(const Program& loop_tree, const Target& target, const LowerOptions& options = {});

}  // namespace tenon
