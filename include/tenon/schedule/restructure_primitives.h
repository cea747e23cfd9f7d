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

}  // namespace tenon
