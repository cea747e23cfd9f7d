#pragma once
#include <tenon/schedule/fields.h>

namespace tenon {

// Primitives that move stages, stage data near its use, or change buffers; see loop_primitives.h
// for their shape.

struct ComputeAt {
  std::string stage, at_stage, loop;

  static constexpr std::string_view kName = "compute_at";
  static constexpr std::string_view kRule =
      "The stage is a producer in its first, unscheduled place and not an output; every reader of "
      "it is inside the "
      "loop, which is neither vectorized nor inside a vectorized loop. It is computed at the top "
      "of the loop's body "
      "over the box that the readers below touch, guarded where that box can leave its domain.";
  static constexpr std::string_view kBefore =
      "for i in 0..n: P(i)\nfor x.o\n  for x.i in 0..f: C(x.o*f + x.i) reads P(x.o*f + x.i .. +2)";
  static constexpr std::string_view kAfter =
      "for x.o\n  allocate P\n  for i in 0..f+2: P(x.o*f + i)\n  for x.i in 0..f: C(x.o*f + x.i)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &ComputeAt::stage, "producer to move"),
                      field("at_stage", &ComputeAt::at_stage, "stage that names the loop"),
                      field("loop", &ComputeAt::loop, "loop that it is computed in"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct ReverseComputeAt {
  std::string stage, at_stage, loop;

  static constexpr std::string_view kName = "reverse_compute_at";
  static constexpr std::string_view kRule =
      "The stage is a consumer in its first, unscheduled place. It reads what `at_stage` wrote in "
      "the same iteration, "
      "each element at the place of its own axes, and its other inputs are ready before the loop. "
      "Under enclosing "
      "reduction loops of its producer it runs only in their last iteration.";
  static constexpr std::string_view kBefore =
      "for x.o\n  for x.i in 0..f: C(x)\nfor i: D(i) reads C(i)";
  static constexpr std::string_view kAfter =
      "for x.o\n  for x.i in 0..f: C(x)\n  for i in 0..f: D(x.o*f + i) reads C";
  static constexpr auto fields() {
    return std::tuple(field("stage", &ReverseComputeAt::stage, "consumer to move"),
                      field("at_stage", &ReverseComputeAt::at_stage, "stage that names the loop"),
                      field("loop", &ReverseComputeAt::loop, "loop at whose end it is computed"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct ComputeInline {
  std::string stage;

  static constexpr std::string_view kName = "compute_inline";
  static constexpr std::string_view kRule =
      "The stage is a map (no reduction), not an output, indexed by its own axes, and what it "
      "reads exists where its "
      "readers stand. A reader may grow to at most 4000 nodes.";
  static constexpr std::string_view kBefore = "for i: P(i) = f(i)\nfor j: C(j) reads P(j+1)";
  static constexpr std::string_view kAfter = "for j: C(j) reads f(j+1)";
  static constexpr auto fields() {
    return std::tuple(
        field("stage", &ComputeInline::stage, "stage that disappears into its readers"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct CacheRead {
  std::string stage, buffer, at;
  Scope scope = Scope::global;
  std::vector<LayoutDim> layout;

  static constexpr std::string_view kName = "cache_read";
  static constexpr std::string_view kRule =
      "The stage reads the buffer and nothing under the loop writes it. The box that one iteration "
      "of `at` touches is "
      "copied by a new stage BUFFER.cache at the top of the loop (\"root\": all of it, before the "
      "stage's nest), and "
      "the stage reads the copy. `layout` gives the storage dimensions of the copy as (index / "
      "divide) % modulo.";
  static constexpr std::string_view kBefore = "for x.o\n  for x.i in 0..f: S reads B(x.o*f + x.i)";
  static constexpr std::string_view kAfter =
      "for x.o\n  allocate B.cache\n  for i in 0..f: B.cache(x.o*f + i) = B(x.o*f + i)\n"
      "  for x.i in 0..f: S reads B.cache(x.o*f + x.i)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &CacheRead::stage, "stage that reads"),
                      field("buffer", &CacheRead::buffer, "buffer to copy"),
                      field("at", &CacheRead::at, "loop of the stage, or \"root\""),
                      option("scope", &CacheRead::scope, "where the copy lives"),
                      option("layout", &CacheRead::layout,
                             "storage dimensions of the copy: {dim, divide, modulo}"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct CacheWrite {
  std::string stage, at;
  Scope scope = Scope::global;

  static constexpr std::string_view kName = "cache_write";
  static constexpr std::string_view kRule =
      "The stage writes, in one iteration of `at`, exactly a box of its output and alone touches "
      "it there. It works on "
      "a copy BUFFER.cache and a new stage STAGE.store copies the box out. Where a reduction loop "
      "of the stage "
      "encloses `at`, STAGE.load first copies partial results in, or the init in the first "
      "iteration.";
  static constexpr std::string_view kBefore =
      "for k.o  reduce\n  for x\n    for k.i  reduce: C(x) += ...";
  static constexpr std::string_view kAfter =
      "for k.o  reduce\n  for x\n    allocate C.cache\n    C.cache(x) = select(k.o == 0, init, "
      "C(x))\n"
      "    for k.i  reduce: C.cache(x) += ...\n    C(x) = C.cache(x)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &CacheWrite::stage, "stage that writes"),
                      field("at", &CacheWrite::at, "loop of the stage"),
                      option("scope", &CacheWrite::scope, "where the copy lives"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct SetScope {
  std::string buffer;
  Scope scope = Scope::global;

  static constexpr std::string_view kName = "set_scope";
  static constexpr std::string_view kRule =
      "A buffer allocated inside the program (not a parameter); the target has the scope. Lowering "
      "refuses a register "
      "buffer whose indices are not constants after unrolling, or that is too large.";
  static constexpr std::string_view kBefore = "allocate B  global";
  static constexpr std::string_view kAfter = "allocate B  register";
  static constexpr auto fields() {
    return std::tuple(field("buffer", &SetScope::buffer, "buffer to place"),
                      field("scope", &SetScope::scope, "where it lives"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct DecomposeReduction {
  std::string stage, loop;

  static constexpr std::string_view kName = "decompose_reduction";
  static constexpr std::string_view kRule =
      "The stage is a reduction with an init; no reduction loop of it is outside the loop. "
      "STAGE.init starts the "
      "elements in a nest of its own directly before the loop.";
  static constexpr std::string_view kBefore = "for x\n  for k  reduce: C(x) init 0, += ...";
  static constexpr std::string_view kAfter =
      "for x: C.init(x) = 0\nfor x\n  for k  reduce: C(x) += ...";
  static constexpr auto fields() {
    return std::tuple(
        field("stage", &DecomposeReduction::stage, "reduction"),
        field("loop", &DecomposeReduction::loop, "loop that the new nest stands before"));
  }
  Program apply(const Program& program, const Target& target) const;
};

}  // namespace tenon
