#pragma once
#include "schedule/region.h"

namespace tenon {

// Placing a stage's nest at a loop: what compute_at, reverse_compute_at and the cache stages share.

/// For a stage that is *plain*, the axis of each of its loops: one loop per axis, nothing else
/// under them, no marks, at most a reduce guard. Nothing for other stages.
std::optional<std::vector<size_t>> plain_order(const StagePath& path);
/// The same; refuses a stage that is not plain. `primitive` is the word for the message.
std::vector<size_t> check_plain(const StagePath& path, std::string_view primitive);

/// Refuses a loop that is, or is inside, a vectorized loop.
void check_not_vectorized(const StagePath& path, size_t at, std::string_view what);

/// Are the stage's indices its spatial axes, each once, one per dimension? (Extra axes may follow.)
bool indexed_by_axes(const Stage& stage);
/// Why not, in words: a scan, a scatter, or a stage that a cache made.
std::string why_not_indexed(const Stage& stage);

/// Paths of the stages that read / write the buffer, in program order.
std::vector<StagePath> readers_of(const Program& program, const Buffer& buffer);
std::vector<StagePath> writers_of(const Program& program, const Buffer& buffer);
bool is_under(const StagePath& path, const For* loop);

/// Number of the statement at the top of the program that holds the stage: what runs before what.
size_t top_nest(const Program& program, const std::string& stage);

/// Buffers that exist inside the loop: parameters and those allocated round it (in its own body:
/// not).
bool exists_at(const Program& program, const Var& loop, const Buffer& buffer);
/// The same where a stage stands.
bool exists_for(const Program& program, const std::string& stage, const Buffer& buffer);
/// The loops from the outside in that enclose the buffer's Allocate; empty for parameters.
std::vector<const For*> loops_round_allocate(const Program& program, const Buffer& buffer);

/// New loops for the stage's axes: spatial axis d (of the output's dimensions) over the box, axes
/// after those over their whole extent, with bindings and guards set. Loop names are the axes'
/// names; `order` has the axes from the outside in (empty: as they stand).
Stmt nest_over_box(Stage stage, const LoopBox& box, Simplifier& math,
                   std::vector<size_t> order = {});

/// `root` with the loop's body replaced by allocate(buffers): before; body; after.
Stmt surround_body(const Stmt& root, const Var& loop, const std::vector<Buffer>& buffers,
                   const Stmt& before, const Stmt& after);

/// Moves the buffer's Allocate into the loops of `path` as far as all accesses are inside and no
/// two iterations share an element, at most into path.loops[last]; never into a reduction loop of a
/// user, whose init runs above it.
Program sink_allocate(const Program& program, const StagePath& path, size_t last,
                      const Buffer& buffer);

}  // namespace tenon
