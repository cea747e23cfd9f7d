#pragma once
#include <atomic>

#include "draw.h"
#include "oracle.h"

namespace tenon {

/// What makes a program again: the formula's choices, the data's seed, the steps.
struct FuzzCase {
  std::vector<int64_t> choices;
  uint64_t data_seed = 0;
  Trace trace;
  Target target;
};

/// What is wrong with the scheduled program; empty: nothing.
using Judge = std::function<std::string(const Oracle& oracle, const Schedule& scheduled)>;

/// The formula and its schedule; steps that are refused on it are left out. Nothing where the
/// choices make no formula.
struct RebuiltCase {
  RandomFormula formula;
  Schedule schedule;
};
std::optional<RebuiltCase> rebuild(const FuzzCase& c);

/// A smaller case that the judge still objects to: fewer steps, smaller factors, a simpler formula,
/// smaller extents. Ends where nothing helps any more, after `tries` judgements, or when `stop` is
/// set.
FuzzCase minimise(FuzzCase c, const Judge& judge, int64_t tries, const std::atomic<bool>& stop);

/// The case as a test in C++ that does not depend on the generator.
std::string cpp_case(const FuzzCase& c, const std::string& fault);

}  // namespace tenon
