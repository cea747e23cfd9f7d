#pragma once
#include <tenon/ir/intrinsic.h>
#include <tenon/schedule/fields.h>
#include <tenon/te/te.h>

namespace tenon {

/// An intrinsic whose formula is how `formula` is computed: a tensor over one axis (the lanes) that
/// is a reduction over one axis of constant extent, or a map. See ir/intrinsic.h for the rules.
///
///     Tensor A = input("A", i16, {16, 2}), B = input("B", i16, {16, 2});
///     Axis i("i", 16), r("r", 2);
///     Tensor C = compute("C", {i}, sum(cast(i32, A(i, r)) * cast(i32, B(i, r)), r));
///     declare_intrinsic("dot2_i16", C,
///                       {{{"avx512bw"}, 16, "llvm.x86.avx512.pmaddw.d.512", {"A", "B"}}});
IntrinsicRef declare_intrinsic(std::string name, const Tensor& formula,
                               std::vector<IntrinsicImplementation> implementations);

// Primitives that make loops into calls of what a machine can do; see loop_primitives.h for their
// shape.

struct Tensorize {
  std::string stage, loop;
  IntrinsicRef intrinsic;

  static constexpr std::string_view kName = "tensorize";
  static constexpr std::string_view kRule =
      "What the stage computes under the loop is the intrinsic's formula, up to names and the "
      "order "
      "of commuting operands: the loop runs over the lanes and is spatial, of constant extent; "
      "directly inside it is one loop with as many iterations as the formula combines (none where "
      "it is a map), and in that only the stage. In memory each operand has the elements of a lane "
      "next to each other and the lanes in order, or is the same for all lanes. Guards and lanes "
      "that do not fill a vector are masked; a target that lacks the intrinsic runs the formula on "
      "plain vectors. Of a product of tiles the loop runs over the rows, inside it are the loops "
      "over "
      "lanes, steps and elements of a lane in whole tiles without guards, more loops of the sum "
      "before the steps and one loop over tiles of rows around the rows where there are some; the "
      "sums start at 0 and stay in tiles until the last step. The tensorized nest is not changed "
      "afterwards.";
  static constexpr std::string_view kBefore =
      "for x in 0..n\n  for r in 0..4  reduce: C(x) += i32(A(r)) * i32(B(x, r))";
  static constexpr std::string_view kAfter =
      "for x in 0..n  tensorize dot4_u8i8_i32\n"
      "  for r in 0..4  reduce  unroll: C(x) += i32(A(r)) * i32(B(x, r))";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Tensorize::stage, "stage that computes the formula"),
                      field("loop", &Tensorize::loop, "loop over the lanes"),
                      field("intrinsic", &Tensorize::intrinsic,
                            "a declaration, or the name of one of intrinsics()"));
  }
  Program apply(const Program& program, const Target& target) const;
};

}  // namespace tenon
