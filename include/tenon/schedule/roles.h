#pragma once
#include <tenon/schedule/knobs.h>

namespace tenon {

/// Parts of a fused group, so that a template need not know names. Stage names in program order.
struct Roles {
  std::string anchor;                 // the reduction with most work; with none, the last stage
  std::vector<std::string> prologue;  // stages that feed the anchor
  std::vector<std::string> epilogue;  // maps after it
  std::vector<std::string> others;    // stages that neither feed the anchor nor follow it
};
Roles roles(const Program& program);

/// Iterations of all axes of the stage, symbolic ones at their most; 0 when that is not bounded.
int64_t stage_points(const Program& program, const std::string& stage);
/// Iterations of a loop; of a symbolic extent the most there can be. 0: not bounded.
int64_t most_iterations(const For& loop);

/// Inlines every map of the prologue that can be; a refusal leaves the stage where it is. Returns
/// how many went.
int inline_prologue(Schedule& s);

/// Computes the epilogue's stages at the end of `tile_loop` of the anchor, in order: intermediate
/// maps are inlined into the last one where that is allowed. Returns the names of the stages now at
/// the loop; a refusal ends the chain.
std::vector<std::string> fuse_epilogue(Schedule& s, const Loop& tile_loop);

/// For any program: inlines cheap maps, then, nest by nest, vectorizes the innermost spatial loop
/// and runs the outer ones in parallel. Declares few knobs; always applies (rank 0, zero sizes and
/// innermost reductions included).
void generic_template(Schedule& s, Knobs& knobs);

/// For GPUs and programs whose anchor is a reduction of two or more spatial axes: each block
/// computes a tile of the last two, each thread some elements of it in registers, from strips of
/// the inputs that the block stages in shared memory. Everything else as generic_template.
void gpu_tile_template(Schedule& s, Knobs& knobs);
/// Is the anchor such a reduction?
bool has_gpu_tile(const Program& program);

}  // namespace tenon
