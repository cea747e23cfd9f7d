#pragma once
#include <tenon/support/rng.h>
#include <tenon/te/te.h>

#include <map>
#include <string>

namespace tenon {

/// A small computation on i32 data whose extents are known at the call only.
struct SymbolicFormula {
  std::string kind;
  Program program;
};

SymbolicFormula symbolic_formula(Rng& rng);

/// Sizes for all symbols of the program, 0, 1 and odd ones among them.
std::map<std::string, int64_t> random_sizes(const Program& program, Rng& rng);

}  // namespace tenon
