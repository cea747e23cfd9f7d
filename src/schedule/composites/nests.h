#pragma once
#include <tenon/schedule/schedule.h>

#include <string>
#include <vector>

namespace tenon {

// Composites that the templates share: functions over primitives.

/// What a knob may be: the steps up to `most`, and the standard, in order.
std::vector<int64_t> ladder(int64_t most, const std::vector<int64_t>& steps, int64_t standard);

/// Extent of a loop; 0 when it is not a constant.
int64_t loop_extent(const Schedule& s, const Loop& loop);
/// The stage's loops below `tile_loop`, from the outside in.
std::vector<Loop> loops_below(Schedule& s, const std::string& stage, const Loop& tile_loop);

/// Share of the cores that n equal pieces keep busy: n / (ceil(n / cores) * cores).
double balance(int64_t pieces, int cores);

/// Fuses leading loops of the list until the pieces keep the cores busy, and runs the result in
/// parallel where that is worth it (work.h). The loops are the outermost of their stage and stand
/// directly inside each other. Returns the outermost loop; nothing happens with no loops.
Loop fuse_and_parallel(Schedule& s, const std::string& stage, std::vector<Loop> loops);

/// A stage without reduction below a tile loop: its last loop becomes vectors, the others unroll
/// while the copies stay few.
void finish_map_in_tile(Schedule& s, const std::string& stage, const Loop& tile_loop);

/// The same where the vectors run along another dimension of what the stage writes than the last,
/// at most `lanes` elements of it at a time:
///   for oc: for h: for w: y(oc,h,w)   ->   for oc.o unroll: for h unroll: for w unroll: for oc.i
///   vectorize
void finish_map_across(Schedule& s, const std::string& stage, const Loop& tile_loop,
                       size_t dimension, int64_t lanes);

/// A map that is computed inside a loop over a box of any size: its last loop runs in vectors, so
/// many of them in one iteration where the box is large.
void finish_map_in_loop(Schedule& s, const std::string& stage, const Loop& loop,
                        int64_t vectors = 2);

/// A whole nest of a map at the root: vectors along the last axis, the outer loops in parallel.
/// `vectors`: how many vectors one iteration of the innermost loop computes.
void schedule_root_map(Schedule& s, const std::string& stage, int64_t vectors);

/// Inputs of more bytes than the second caches of the cores that run `loop` hold: they come from
/// beyond. None of symbolic size.
std::vector<Buffer> far_inputs(const Schedule& s, const Loop& loop);

/// Asks for what the stage reads of far inputs some lines before its innermost loop round vectors
/// gets there: across the ends of pages and of rows, where the processor's own prefetchers start
/// anew.
///   for k: for l vectorize: P(l) += x(k, l)   ->   for k prefetch(x)=4: ..
void fetch_ahead(Schedule& s, const std::string& stage);

/// Whether all arrays of the program together exceed the last cache: what it stores first has left
/// every cache before another program can read it.
bool exceeds_caches(const Program& program, const Target& target);

/// What the stage stores in vectors goes to memory past the caches.
void stream_output(Schedule& s, const std::string& stage);

/// Every stage that still stands alone at the root in its first shape, other than those named: maps
/// as above, reductions by their outer loops.
void schedule_rest(Schedule& s, const std::vector<std::string>& done);

}  // namespace tenon
