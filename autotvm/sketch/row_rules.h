#pragma once
#include <tenon/schedule/knobs.h>
#include <tenon/target/target.h>

#include <vector>

namespace tenon {

/// Chains of reductions along rows (softmax, normalisations, single reductions): everything of a
/// row inside its loop, sums cut into lanes.
std::vector<NamedTemplate> row_rule(const Program& program, const Target& target);

/// Such chains with products among them (attention): everything of a block of rows inside its loop,
/// each product in register tiles, its second factor copied in panels where it lies the other way.
std::vector<NamedTemplate> row_block_rule(const Program& program, const Target& target);

/// A reduction of few results: cut into pieces that threads add up side by side, each in lanes.
std::vector<NamedTemplate> pieces_rule(const Program& program, const Target& target);

/// No reduction: maps and data movement.
std::vector<NamedTemplate> map_rule(const Program& program, const Target& target);

}  // namespace tenon
