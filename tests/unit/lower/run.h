#pragma once
#include <tenon/ir/program.h>
#include <tenon/target/target.h>

namespace tenon {

/// Interprets the loop tree and the program after each lowering pass on the same random inputs;
/// fails the running test, naming the pass, where an output differs by a bit (after expand_math: by
/// more than a few ULP) or the interpreter refuses (out of bounds, race, element never written).
/// Also verifies the flat result.
void check_every_pass(const Program& loop_tree, const Target& target,
                      int64_t max_statements = 4000);

}  // namespace tenon
