#pragma once
#include <tenon/runtime/guard.h>
#include <tenon/target/target.h>

#include "random_formula.h"

namespace tenon {

/// Contents of all parameters: inputs from a seed, outputs filled with rubbish. With `guard` each
/// touches a page that must not be.
std::vector<Array> random_arguments(const RandomFormula& f, uint64_t seed,
                                    std::optional<GuardAt> guard = {});

/// A formula with its data and what the unscheduled program makes of it in the interpreter.
class Oracle {
 public:
  Oracle(const RandomFormula& formula, uint64_t data_seed);

  /// Each says what is wrong with the loop tree, empty for nothing: not well-formed, a race, a read
  /// of what was never written, an index out of bounds, other values, beyond a limit.
  std::string tree_fault(const Program& tree) const;
  /// The same after lowering; `refused` is set, and nothing found, where lower says it cannot.
  std::string flat_fault(const Program& tree, const Target& target, bool* refused = nullptr) const;
  /// The same as machine code, twice: data flush against a forbidden page at the end and start.
  std::string machine_fault(const Program& tree, const Target& target,
                            bool* refused = nullptr) const;

  const RandomFormula& formula() const { return formula_; }

 private:
  std::string difference(const std::vector<Array>& got) const;
  std::string run(const Program& program, const Program* stored_as = nullptr) const;

  const RandomFormula& formula_;
  uint64_t seed_;
  double factor_;  // see autotvm/measure/check.h; 0: the same bits
  std::vector<Array> expected_;
};

}  // namespace tenon
