#pragma once
#include <functional>
#include <map>

#include "random_formula.h"
#include "random_step.h"

namespace tenon {

/// A random formula under a random schedule. What makes it again: the choices, the data's seed, the
/// trace.
struct DrawnProgram {
  std::vector<int64_t> choices;  // of the formula
  RandomFormula formula;
  uint64_t data_seed = 0;
  Schedule schedule;
};

/// What was drawn, over many programs.
struct Tally {
  std::map<std::string, int64_t> accepted, refused;  // steps by primitive
  std::map<std::string, int64_t> kinds;              // formulas
  int64_t programs = 0, structural = 0;

  int64_t all_accepted() const;
  /// Refused steps as a share of all.
  double refusals() const;
  double structural_per_program() const;
  /// A line for each primitive, and one for the whole.
  std::string text() const;
};

/// Program `number` of `seed`: the same every time. Steps that change the tree first, then marks;
/// what a step's refusal says is passed to `refused` where given. `directed` names primitives, and
/// kinds of formulas, to be drawn more often.
using OnRefusal =
    std::function<void(const Schedule& before, const Primitive& step, const Refusal& refusal)>;
DrawnProgram draw_program(uint64_t seed, int64_t number, const Target& target,
                          Tally* tally = nullptr, const OnRefusal& refused = nullptr,
                          const std::vector<std::string>& directed = {});

/// A CPU with 4 lanes of i32, so that small loops vectorize.
Target narrow_target();

/// The variable as a whole number, or `otherwise`.
int64_t from_environment(const char* name, int64_t otherwise);

}  // namespace tenon
