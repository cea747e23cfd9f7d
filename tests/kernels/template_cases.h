#pragma once
#include <tenon/schedule/knobs.h>
#include <tenon/te/te.h>

#include <string>
#include <vector>

#include "run_kernel.h"

namespace tenon {

/// An operator of the table with its arguments.
struct Case {
  std::string kernel;
  std::vector<std::string> words;
};

/// "matmul m=37 n=130 k=17"
std::string text(const Case& c);

/// Every operator, in shapes that no vector or tile divides; what all templates run.
const std::vector<Case>& template_cases();

/// Number of kinds of epilogue: 0 is none.
constexpr int kEpilogues = 4;
/// The operator with what the graph fuses behind it: nothing, a bias, a residual, a chain of maps.
Program build_case(const Case& c, int epilogue);

/// Runs the template at the point compiled for `target` (and in the interpreter) and CHECKs the
/// first output.
void check_point(const Program& program, const Target& target, const NamedTemplate& t,
                 const Point& point, const std::vector<RefArray>& inputs, const RefArray& expected,
                 double bound, bool interpret_too);

}  // namespace tenon
