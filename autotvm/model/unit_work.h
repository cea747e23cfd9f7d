#pragma once
#include <optional>

#include "autotvm/model/steps.h"

namespace tenon {

// Products of tiles on a matrix unit, as the draft score sees them.

/// The program with the nests of tiles in the order in which the unit goes through them: a step of
/// the sum takes all rows and lanes.
///   for rows  tensorize: for lanes: for k: for terms   ->   for k: for rows  tensorize: for lanes:
///   for terms
Program tiles_inside_sums(const Program& program);

/// The work of a stage of such a program that runs on tiles; nothing for any other.
std::optional<StageWork> unit_work_of(const NestTree& tree, const NestStage& stage,
                                      const Sharing& sharing);

}  // namespace tenon
