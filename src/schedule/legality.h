#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// What a refusal is about. legality: without the check a step makes a wrong program (or one beyond
/// a limit), so the random tests must notice when it is switched off. usage: the call itself makes
/// no sense; the step could not be carried out.
enum class RuleKind : uint8_t { legality, usage };

/// Every reason why a step is refused: X(id, kind, "the primitives it concerns", "what must hold").
/// Each id stands at one or more refuse() calls and has a test on its text in tests/refusals.
#define TENON_RULES(X)                                                                             \
  X(no_stage, usage, "", "the stage exists")                                                       \
  X(no_loop, usage, "", "the loop is round the stage")                                             \
  X(no_buffer, usage, "", "the buffer exists")                                                     \
  X(mark_other, usage, "parallel vectorize unroll tensorize bind", "the loop has no other mark")   \
  X(bind_no_gpu, usage, "bind", "the target has blocks of threads")                                \
  X(gpu_parallel, usage, "parallel", "parallel is for the threads of a CPU")                       \
  X(gpu_axis_twice, legality, "bind", "an axis is bound once on a path")                           \
  X(gpu_block_outermost, legality, "bind", "only block loops stand outside a block loop")          \
  X(gpu_block_beside, legality, "bind", "nothing stands beside a block loop")                      \
  X(gpu_thread_symbolic, usage, "bind", "a thread loop has a constant extent")                     \
  X(gpu_thread_vectorized, legality, "bind", "no vectorized loop is round a thread loop")          \
  X(gpu_grid_limit, usage, "bind", "blocks along each axis within the device's limit")             \
  X(gpu_axis_limit, usage, "bind", "threads along each axis within the device's limit")            \
  X(gpu_threads_limit, usage, "bind", "threads of a block within the device's limit")              \
  X(gpu_between_threads, legality, "bind", "a buffer belongs to the block or to one thread")       \
  X(gpu_shared_in_thread, usage, "bind", "shared memory is allocated outside thread loops")        \
  X(gpu_not_private, legality, "bind", "a thread touches only its own part of local memory")       \
  X(gpu_scope_outside, usage, "bind", "kernels share global memory only")                          \
  X(scope_missing, usage, "set_scope cache_read cache_write", "the target has the memory")         \
  X(scope_symbolic, usage, "set_scope cache_read cache_write", "registers have a constant size")   \
  X(split_factor, usage, "split tile", "the factor is at least 1")                                 \
  X(split_tail_word, usage, "split", "the tail is guard or exact")                                 \
  X(split_marked, usage, "split tile", "marks come after splits")                                  \
  X(split_exact, usage, "split", "with tail exact the factor divides the extent")                  \
  X(fuse_twice, usage, "fuse", "two loops are named")                                              \
  X(fuse_adjacent, legality, "fuse", "the inner loop stands directly inside the outer one")        \
  X(fuse_marked, usage, "fuse", "marks come after fuse")                                           \
  X(fuse_kinds, legality, "fuse", "both loops are spatial or both run reductions")                 \
  X(fuse_symbolic, usage, "fuse", "the inner extent is a constant")                                \
  X(reorder_twice, usage, "reorder", "each loop is named once")                                    \
  X(reorder_between, legality, "reorder tile", "nothing stands between the loops")                 \
  X(reorder_ordered, legality, "reorder tile", "an ordered combiner keeps its order")              \
  X(reorder_dependent, legality, "reorder tile", "no dependence between iterations is reversed")   \
  X(iterations_reduce, legality, "parallel vectorize tensorize", "the loop runs no reduction")     \
  X(iterations_meet, legality, "parallel vectorize tensorize",                                     \
    "iterations share no element that is written")                                                 \
  X(tensorize_missing, usage, "tensorize", "an intrinsic is given")                                \
  X(tensorize_symbolic, usage, "tensorize", "the extent is a constant")                            \
  X(tensorize_nested, usage, "tensorize", "no vectorized loop is outside")                         \
  X(tensorize_nest, usage, "tensorize", "only the formula's loops and the stage are inside")       \
  X(tensorize_group, usage, "tensorize", "the inner loop runs what the formula combines")          \
  X(tensorize_formula, usage, "tensorize", "the stage computes the formula")                       \
  X(tensorize_output, usage, "tensorize", "lanes write neighbouring elements")                     \
  X(tensorize_operand, usage, "tensorize", "a lane's elements are neighbours in memory")           \
  X(tensorize_kept, usage, "", "a later step leaves the tensorized nest as it is")                 \
  X(parallel_in_vectorized, legality, "parallel", "no vectorized loop is outside")                 \
  X(vectorize_allocated, legality, "vectorize", "nothing is allocated inside the loop")            \
  X(vectorize_nested, legality, "vectorize", "a nest has one vectorized loop")                     \
  X(vectorize_tail_word, usage, "vectorize", "the tail is exact or mask")                          \
  X(vectorize_symbolic, usage, "vectorize", "the extent is a constant")                            \
  X(vectorize_lanes, usage, "vectorize", "with tail exact the lanes divide the extent")            \
  X(unroll_symbolic, usage, "unroll", "the extent is a constant")                                  \
  X(unroll_limit, legality, "unroll", "at most 1024 copies of the body")                           \
  X(partition_nothing, usage, "partition", "a condition depends on the loop")                      \
  X(move_scheduled, legality, "compute_at reverse_compute_at", "the stage is in its first place")  \
  X(move_into_vectorized, legality,                                                                \
    "compute_at reverse_compute_at cache_read cache_write rfactor",                                \
    "no vectorized loop is round the place")                                                       \
  X(exact_box, legality, "reverse_compute_at cache_write cache_read",                              \
    "an iteration writes exactly a box")                                                           \
  X(exact_box_guard, legality, "reverse_compute_at cache_write cache_read",                        \
    "no guard cuts a part out of the box")                                                         \
  X(exact_box_symbolic, usage, "reverse_compute_at cache_write cache_read",                        \
    "the loops inside have constant extents or run over a whole dimension")                        \
  X(compute_at_output, legality, "compute_at", "the stage writes no output")                       \
  X(compute_at_two_writers, legality, "compute_at", "no other stage writes its buffer")            \
  X(compute_at_init, legality, "compute_at", "its init is its own")                                \
  X(compute_at_indices, legality, "compute_at", "it is indexed by its own axes")                   \
  X(compute_at_init_above, legality, "compute_at", "the place is above the init that reads it")    \
  X(compute_at_reader_outside, legality, "compute_at", "all readers are inside the loop")          \
  X(compute_at_already, legality, "compute_at", "the loop is not round the stage itself")          \
  X(compute_at_input_missing, legality, "compute_at", "what it reads exists at the loop")          \
  X(reverse_output_missing, legality, "reverse_compute_at", "what it writes exists at the loop")   \
  X(reverse_input_later, legality, "reverse_compute_at", "its inputs are written before the loop") \
  X(reverse_input_beside, legality, "reverse_compute_at",                                          \
    "its inputs are written inside the loop")                                                      \
  X(reverse_input_missing, legality, "reverse_compute_at", "what it reads exists at the loop")     \
  X(reverse_unrelated, legality, "reverse_compute_at", "it reads what is written in the loop")     \
  X(reverse_reduction_part, legality, "reverse_compute_at", "a reduction finds all it needs")      \
  X(reverse_empty, legality, "reverse_compute_at", "the loops outside run at least once")          \
  X(reverse_meet, legality, "reverse_compute_at", "iterations write different elements")           \
  X(reverse_anew, legality, "reverse_compute_at", "its producer is computed once")                 \
  X(reverse_last, legality, "reverse_compute_at",                                                  \
    "the last iterations outside are not guarded off")                                             \
  X(reverse_index, legality, "reverse_compute_at", "it reads at its own axes")                     \
  X(reverse_cover, legality, "reverse_compute_at", "it covers all that it reads")                  \
  X(reverse_parts, legality, "reverse_compute_at", "its inputs are written in one iteration")      \
  X(reverse_indices, legality, "reverse_compute_at", "it is indexed by its own axes")              \
  X(reverse_init, legality, "reverse_compute_at", "its init is its own")                           \
  X(reverse_two_writers, legality, "reverse_compute_at", "no other stage writes its buffer")       \
  X(reverse_needed_before, legality, "reverse_compute_at", "its readers come after the loop")      \
  X(reverse_already, legality, "reverse_compute_at", "the loop is not round the stage itself")     \
  X(inline_reduction, legality, "compute_inline", "the stage is a map")                            \
  X(inline_output, legality, "compute_inline", "the stage writes no output")                       \
  X(inline_two_writers, legality, "compute_inline", "no other stage writes its buffer")            \
  X(inline_indices, legality, "compute_inline", "it is indexed by its own axes")                   \
  X(inline_order, legality, "compute_inline", "its readers come after it")                         \
  X(inline_input_missing, legality, "compute_inline", "what it reads exists where readers stand")  \
  X(inline_limit, legality, "compute_inline", "a reader grows to at most 4000 nodes")              \
  X(layout_parts, legality, "cache_read pack", "the layout stores each dimension once")            \
  X(layout_dimension, usage, "cache_read pack", "the layout names dimensions that exist")          \
  X(cache_read_where, legality, "cache_read", "it runs only where the buffer is computed")         \
  X(cache_read_part, legality, "cache_read", "the copied box has been computed")                   \
  X(cache_read_incomplete, legality, "cache_read", "no stage writes the buffer afterwards")        \
  X(cache_read_stale, legality, "cache_read", "nothing under the loop writes the buffer")          \
  X(cache_read_unread, usage, "cache_read", "the stage reads the buffer")                          \
  X(cache_write_shared_box, legality, "cache_write", "the stage alone touches its box")            \
  X(cache_write_indices, legality, "cache_write", "it is indexed by its own axes")                 \
  X(cache_write_empty, legality, "cache_write", "the reduction loops outside run at least once")   \
  X(scope_of_parameter, legality, "set_scope", "the buffer is allocated inside the program")       \
  X(decompose_map, usage, "decompose_reduction", "the stage is a reduction")                       \
  X(decompose_no_init, usage, "decompose_reduction", "it has an init of its own")                  \
  X(decompose_in_reduction, legality, "decompose_reduction", "no reduction loop is outside")       \
  X(decompose_vectorized, legality, "decompose_reduction", "no vectorized loop is outside")        \
  X(decompose_anew, legality, "decompose_reduction", "the loops inside are all its own")           \
  X(decompose_allocated, legality, "decompose_reduction", "its buffer exists outside the loop")    \
  X(rfactor_map, usage, "rfactor", "the stage is a reduction")                                     \
  X(rfactor_ordered, legality, "rfactor", "the combiner commutes")                                 \
  X(rfactor_indices, usage, "rfactor", "the stage is indexed by its own axes")                     \
  X(rfactor_spatial, usage, "rfactor", "the loop runs the reduction")                              \
  X(rfactor_dim, usage, "rfactor", "the new dimension has a place")                                \
  X(rfactor_marked, usage, "rfactor", "marks come after rfactor")                                  \
  X(rfactor_touched, legality, "rfactor", "no stage inside the reduction touches its result")      \
  X(align_parameter, legality, "storage_align", "the buffer is allocated inside the program")      \
  X(align_register, usage, "storage_align", "the buffer is in memory")                             \
  X(align_dimension, usage, "storage_align", "the storage has rows along the dimension")           \
  X(align_numbers, usage, "storage_align", "the factor is positive and the offset below it")       \
  X(prefetch_distance, usage, "prefetch", "the distance is at least 1")                            \
  X(prefetch_vectorized, usage, "prefetch", "no vectorized loop is round the place")               \
  X(prefetch_register, usage, "prefetch", "the buffer is in memory")                               \
  X(prefetch_missing, usage, "prefetch", "the buffer exists outside the loop")                     \
  X(prefetch_unread, usage, "prefetch", "a stage under the loop reads the buffer")                 \
  X(prefetch_still, usage, "prefetch", "the box moves with the loop")                              \
  X(prefetch_unbounded, usage, "prefetch", "the box has constant extents")                         \
  X(prefetch_limit, usage, "prefetch", "at most 256 cache lines an iteration")                     \
  X(double_buffer_place, legality, "double_buffer", "the loop's body allocates the buffer")        \
  X(double_buffer_register, usage, "double_buffer", "the buffer is in memory")                     \
  X(double_buffer_serial, legality, "double_buffer", "the loop is serial")                         \
  X(double_buffer_late, usage, "double_buffer", "it is filled before it is read")                  \
  X(double_buffer_beside, legality, "double_buffer", "what fills it writes nothing else")          \
  X(double_buffer_depends, legality, "double_buffer", "what fills it reads nothing written there") \
  X(double_buffer_unfilled, usage, "double_buffer", "the loop's body fills it")                    \
  X(pack_empty, usage, "pack", "there is a layout")                                                \
  X(pack_output, legality, "pack", "the buffer is no output")                                      \
  X(pack_register, usage, "pack", "the buffer is in memory")                                       \
  X(pack_aligned, usage, "pack", "pack comes before storage_align")                                \
  X(pack_symbolic, usage, "pack", "the extents are constants")                                     \
  X(pack_growth, usage, "pack", "the storage has at most 16 times the elements")                   \
  X(pack_unknown, usage, "pack", "only inputs marked constant are packed ahead")                   \
  X(pack_twice, usage, "pack", "an input is packed once")                                          \
  X(pack_unread, usage, "pack", "a stage reads the input")                                         \
  X(annotate_key, usage, "annotate", "the key is known, or free")                                  \
  X(annotate_value, usage, "annotate", "the value is one that the key has")

enum class Rule : uint8_t {
#define TENON_RULE_NAME(id, kind, primitives, text) id,
  TENON_RULES(TENON_RULE_NAME)
#undef TENON_RULE_NAME
};

struct RuleInfo {
  Rule rule;
  std::string_view id;
  RuleKind kind;
  std::string_view primitives;  // names with spaces between; empty: all
  std::string_view text;        // what must hold
};
/// The table above, in its order.
const std::vector<RuleInfo>& rules();
const RuleInfo& info(Rule rule);

/// Throws Refusal. It returns only where a test has switched the rule off; code after it must then
/// not crash.
void refuse(Rule rule, std::string text, std::string hint = {}, std::string loop = {});

/// Switches one legality rule off for this thread while it lives: the random tests show with it
/// that they find what the rule prevents.
class RuleOff {
 public:
  explicit RuleOff(Rule rule);
  ~RuleOff();
  RuleOff(const RuleOff&) = delete;
  RuleOff& operator=(const RuleOff&) = delete;
};

}  // namespace tenon
