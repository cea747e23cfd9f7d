#pragma once
#include <tenon/schedule/fields.h>

namespace tenon {

// Primitives that change or mark loops. Each is a plain struct: `fields()` is the only list of its
// members, and JSON, printed C++, equality, hash and docs/primitives.md follow from it. `apply`
// gives the new program or throws Refusal before anything has changed. kBefore -> kAfter is the
// picture.

struct Split {
  std::string stage, loop;
  int64_t factor = 1;
  Tail tail = Tail::guard;

  static constexpr std::string_view kName = "split";
  static constexpr std::string_view kRule =
      "The factor is at least 1. Marked loops are not split: marks come last. Where the factor "
      "does not divide the "
      "extent, `tail` says what becomes of the rest. guard: a condition protects the stages under "
      "the loop. exact: "
      "refused. shift_inward: the last tile starts earlier, at n - f, and computes some elements "
      "again; the extent is "
      "at least the factor, the loop is spatial for all stages under it, and none of them reads "
      "what it or a later one "
      "of them writes or adds to what another iteration wrote. The outer loop then neither runs "
      "in parallel nor changes "
      "places with reduction loops. pad: the temporaries written under the loop are rounded up; "
      "no output is written, "
      "and what is read for the elements added exists and is written.";
  static constexpr std::string_view kBefore = "for x in 0..n: S(x)";
  static constexpr std::string_view kAfter =
      "for x.o in 0..ceil(n/f)\n  for x.i in 0..f\n    S(x.o*f + x.i)  if x.o*f + x.i < n";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Split::stage, "stage that names the loop"),
                      field("loop", &Split::loop, "loop to split"),
                      field("factor", &Split::factor, "extent of the inner loop"),
                      option("tail", &Split::tail, "guard, exact, shift_inward or pad"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct Tile {
  std::string stage, outer, inner;
  int64_t outer_factor = 1, inner_factor = 1;

  static constexpr std::string_view kName = "tile";
  static constexpr std::string_view kRule =
      "Two splits (with a guard where the tile does not divide) and a reorder; their rules hold.";
  static constexpr std::string_view kBefore = "for x in 0..n\n  for y in 0..m: S(x, y)";
  static constexpr std::string_view kAfter =
      "for x.o\n  for y.o\n    for x.i in 0..f\n      for y.i in 0..g: S(x.o*f + x.i, y.o*g + y.i)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Tile::stage, "stage that names the loops"),
                      field("outer", &Tile::outer, "outer loop"),
                      field("inner", &Tile::inner, "loop inside it"),
                      field("outer_factor", &Tile::outer_factor, "extent of the tile along outer"),
                      field("inner_factor", &Tile::inner_factor, "extent of the tile along inner"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct Fuse {
  std::string stage, outer, inner;

  static constexpr std::string_view kName = "fuse";
  static constexpr std::string_view kRule =
      "`inner` stands directly inside `outer`, nothing between them; both are spatial or both are "
      "reduce loops; the "
      "inner extent is a constant; neither is marked.";
  static constexpr std::string_view kBefore = "for x in 0..n\n  for y in 0..m: S(x, y)";
  static constexpr std::string_view kAfter = "for x_y in 0..n*m: S(x_y // m, x_y % m)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Fuse::stage, "stage that names the loops"),
                      field("outer", &Fuse::outer, "outer loop"),
                      field("inner", &Fuse::inner, "loop directly inside it"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct Reorder {
  std::string stage;
  std::vector<std::string> loops;

  static constexpr std::string_view kName = "reorder";
  static constexpr std::string_view kRule =
      "The loops named take, in this order, the places they hold now; others stay. From the first "
      "to the last place "
      "nothing stands between the loops, and two iterations of them touch no common element, "
      "except that a "
      "commutative reduction may change its order.";
  static constexpr std::string_view kBefore = "for x\n  for y\n    for z: S(x, y, z)";
  static constexpr std::string_view kAfter =
      "reorder({z, x}):\nfor z\n  for y\n    for x: S(x, y, z)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Reorder::stage, "stage that names the loops"),
                      field("loops", &Reorder::loops, "loops from the outside in, each once"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct Parallel {
  std::string stage, loop;

  static constexpr std::string_view kName = "parallel";
  static constexpr std::string_view kRule =
      "A spatial loop; two of its iterations touch no common element that one of them writes.";
  static constexpr std::string_view kBefore = "for x in 0..n: S(x)";
  static constexpr std::string_view kAfter = "for x in 0..n  parallel: S(x)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Parallel::stage, "stage that names the loop"),
                      field("loop", &Parallel::loop, "loop whose iterations threads share"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct Vectorize {
  std::string stage, loop;
  Tail tail = Tail::exact;

  static constexpr std::string_view kName = "vectorize";
  static constexpr std::string_view kRule =
      "A loop of constant extent whose iterations touch no common element that one of them "
      "writes; nothing "
      "is allocated inside it, and no loop round or inside it is vectorized. The extent is a "
      "multiple of the lanes "
      "of the widest type stored, unless a guard of an earlier split covers the loop or tail is "
      "mask. The innermost "
      "loop of a reduction by a built-in combiner may be vectorized too: its lanes are combined "
      "into the one element "
      "at the end of each vector, which reassociates floats. Elsewhere a reduction loop needs "
      "rfactor first.";
  static constexpr std::string_view kBefore = "for x in 0..n: S(x)";
  static constexpr std::string_view kAfter = "for x in 0..n  vectorize: S(x)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Vectorize::stage, "stage that names the loop"),
                      field("loop", &Vectorize::loop, "loop that becomes vectors"),
                      option("tail", &Vectorize::tail, "exact or mask"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct Unroll {
  std::string stage, loop;

  static constexpr std::string_view kName = "unroll";
  static constexpr std::string_view kRule =
      "A constant extent; the unrolled loops round and inside it give at most 1024 copies of the "
      "body.";
  static constexpr std::string_view kBefore = "for x in 0..n: S(x)";
  static constexpr std::string_view kAfter = "for x in 0..n  unroll: S(x)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Unroll::stage, "stage that names the loop"),
                      field("loop", &Unroll::loop, "loop that becomes straight code"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct Partition {
  std::string stage, loop;

  static constexpr std::string_view kName = "partition";
  static constexpr std::string_view kRule =
      "A guard, or the condition of a select (padding), depends on the loop. Lowering peels it "
      "into a "
      "body without the condition and tails.";
  static constexpr std::string_view kBefore = "for x.o in 0..3: S(x.o)  if x.o*f + x.i < n";
  static constexpr std::string_view kAfter =
      "for x.o in 0..3  partition: S(x.o)  if x.o*f + x.i < n";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Partition::stage, "stage that names the loop"),
                      field("loop", &Partition::loop, "loop to peel"));
  }
  Program apply(const Program& program, const Target& target) const;
};

}  // namespace tenon
