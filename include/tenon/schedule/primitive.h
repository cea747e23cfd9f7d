#pragma once
#include <tenon/schedule/gpu_primitives.h>
#include <tenon/schedule/layout_primitives.h>
#include <tenon/schedule/loop_primitives.h>
#include <tenon/schedule/mark_primitives.h>
#include <tenon/schedule/restructure_primitives.h>
#include <tenon/schedule/stage_primitives.h>
#include <tenon/schedule/tensor_primitives.h>

namespace tenon {

/// One step of a schedule. To add a primitive: its struct, a .cpp with its apply, this list, its
/// test file.
// clang-format off
using Primitive = std::variant<
    Split,
    Tile,
    Fuse,
    Reorder,
    Parallel,
    Vectorize,
    Unroll,
    Partition,
    ComputeAt,
    ReverseComputeAt,
    ComputeInline,
    CacheRead,
    CacheWrite,
    SetScope,
    DecomposeReduction,
    RFactor,
    ReverseComputeInline,
    PadEinsum,
    Tensorize,
    Bind,
    StorageAlign,
    Prefetch,
    DoubleBuffer,
    Annotate,
    Pack>;
// clang-format on

/// The steps that made a program from the unscheduled loop tree, with concrete numbers.
using Trace = std::vector<Primitive>;

/// Why `primitive` is not legal on `program`; nothing when it is. Pure.
std::optional<Refusal> check(const Program& program, const Target& target,
                             const Primitive& primitive);

/// The program after the step. Throws Refusal where check() would return one.
Program apply(const Program& program, const Target& target, const Primitive& primitive);

/// "split"
std::string_view primitive_name(const Primitive& primitive);
/// `split(C, "i", 6)`: how messages write a step.
std::string to_text(const Primitive& primitive);
/// `s["C"].split("i", 6);`
std::string to_cpp(const Primitive& primitive);
/// One statement a line.
std::string to_cpp(const Trace& trace);
/// Stable across machines and runs.
uint64_t hash(const Primitive& primitive);

/// `{"step":"split","stage":"C","loop":"i","factor":6}`: options at their default are left out.
std::string to_json(const Primitive& primitive);
/// A JSON array of steps.
std::string to_json(const Trace& trace);
/// UserError says what is wrong where: not JSON, unknown step (nearest names), missing or unknown
/// field, wrong type.
Primitive primitive_from_json(std::string_view text);
Trace trace_from_json(std::string_view text);

/// Names of all primitives in the order of the variant.
std::vector<std::string> primitive_names();
/// The reference page docs/primitives.md, generated from the field lists.
std::string primitives_markdown();

}  // namespace tenon
