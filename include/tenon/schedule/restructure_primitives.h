#pragma once
#include <tenon/schedule/fields.h>

namespace tenon {

// Primitives that give a stage another shape: new stages, new axes; see loop_primitives.h for their
// form.

struct RFactor {
  std::string stage, loop;
  int64_t dim = -1;

  static constexpr std::string_view kName = "rfactor";
  static constexpr std::string_view kRule =
      "The stage is a reduction whose combiner commutes, indexed by its own axes, and the loop is "
      "one of its "
      "reduction loops; the loops of its nest are not marked, and no other stage under them "
      "touches what it writes. "
      "The iterations of the loop become independent: a new stage STAGE.rf, started from the "
      "combiner's identity, has "
      "the loop as a spatial axis (dimension `dim` of its buffers BUFFER.rf), and the stage "
      "combines the parts in the "
      "loop's order, starting from its own init, which so counts once. Float reductions are "
      "reassociated: results may "
      "differ by rounding.";
  static constexpr std::string_view kBefore =
      "for x\n  for k.o  reduce\n    for k.i  reduce: C(x) init c, += f(x, k.o*f + k.i)";
  static constexpr std::string_view kAfter =
      "rfactor(k.i):\nallocate C.rf\n"
      "for x\n  for k.o  reduce\n    for k.i: C.rf(x, k.i) init 0, += f(x, k.o*f + k.i)\n"
      "for x\n  for k.i  reduce: C(x) init c, += C.rf(x, k.i)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &RFactor::stage, "reduction"),
                      field("loop", &RFactor::loop, "reduction loop that becomes an axis"),
                      option("dim", &RFactor::dim,
                             "place of the new dimension among those of the buffer; -1: last"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct ReverseComputeInline {
  std::string stage;

  static constexpr std::string_view kName = "reverse_compute_inline";
  static constexpr std::string_view kRule =
      "The stage is a map that reads, each element once at the place of its own axes (or at the "
      "quotient and the remainder of one by a number), the buffers "
      "of one other map: "
      "the last stage that writes one of its inputs. Nothing else touches these buffers, they are "
      "no outputs, its other "
      "inputs are complete before, and nothing touches its own outputs before it. The other map "
      "then writes the outputs "
      "of the stage, which disappears. A reduction takes it in the copy that cache_write makes "
      "(STAGE.store).";
  static constexpr std::string_view kBefore = "for i: P(i) = f(i)\nfor j: D(j) = g(P(j))";
  static constexpr std::string_view kAfter = "for i: D(i) = g(f(i))";
  static constexpr auto fields() {
    return std::tuple(field("stage", &ReverseComputeInline::stage,
                            "consumer that disappears into what it reads"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct PadEinsum {
  std::string stage;
  std::vector<int64_t> paddings;

  static constexpr std::string_view kName = "pad_einsum";
  static constexpr std::string_view kRule =
      "The stage is an unscheduled sum of products. Each axis is rounded up to a multiple of its "
      "padding (1: it stays), "
      "inputs along such axes are copied into BUFFER.pad with zeros in the rest, and where a "
      "spatial axis grows the "
      "stage writes STAGE.pad, which STAGE.store copies out. An input speaks of such an axis only "
      "as one whole index, "
      "and the terms added to a sum are 0: along a reduction axis that grows every product has an "
      "input (of floats: all "
      "its inputs) that is 0 there.";
  static constexpr std::string_view kBefore =
      "for i in 0..n\n  for k in 0..m  reduce: C(i) += A(i, k) * x(k)";
  static constexpr std::string_view kAfter =
      "pad_einsum({4, 8}): with N = ceil(n/4)*4, M = ceil(m/8)*8\n"
      "for i in 0..N, k in 0..M: A.pad(i, k) = select(i < n && k < m, A(i, k), 0)\n"
      "for k in 0..M: x.pad(k) = select(k < m, x(k), 0)\n"
      "for i in 0..N\n  for k in 0..M  reduce: C.pad(i) += A.pad(i, k) * x.pad(k)\n"
      "for i in 0..n: C(i) = C.pad(i)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &PadEinsum::stage, "sum of products"),
                      field("paddings", &PadEinsum::paddings,
                            "for each axis, spatial ones first, what its extent becomes a "
                            "multiple of"));
  }
  Program apply(const Program& program, const Target& target) const;
};

}  // namespace tenon
