#pragma once
#include <tenon/schedule/fields.h>

namespace tenon {

// Marks beyond those of loop_primitives.h: they change no statement, only what lowering makes of a
// loop or a buffer. A loop that has one is neither split nor fused.

struct StorageAlign {
  std::string buffer;
  int64_t dim = 0, factor = 1, offset = 0;

  static constexpr std::string_view kName = "storage_align";
  static constexpr std::string_view kRule =
      "A buffer allocated inside the program, not in registers. `dim` counts the dimensions of its "
      "storage (those of its layout, where it has one) and is not the last, whose stride is 1; 0 "
      "<= "
      "offset < factor. Lowering pads rows until the stride of `dim`, in elements, leaves the rest "
      "`offset` when divided by `factor`.";
  static constexpr std::string_view kBefore = "allocate T[6, 64]\n  T[i, j] at i*64 + j";
  static constexpr std::string_view kAfter =
      "storage_align(T, 0, 32, 1):\nallocate T[6, 64]  align(stride0%32 == 1)\n  T[i, j] at i*65 "
      "+ j";
  static constexpr auto fields() {
    return std::tuple(field("buffer", &StorageAlign::buffer, "buffer to pad"),
                      field("dim", &StorageAlign::dim, "dimension of the storage"),
                      field("factor", &StorageAlign::factor, "what the stride is divided by"),
                      field("offset", &StorageAlign::offset, "the rest of that division"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct Prefetch {
  std::string stage, buffer, loop;
  int64_t distance = 1;
  std::string over;

  static constexpr std::string_view kName = "prefetch";
  static constexpr std::string_view kRule =
      "The stages under the loop read the buffer, which exists outside it and is not in registers. "
      "The box that "
      "they touch in one iteration is bounded and moves with the loop; "
      "the loop is neither vectorized nor inside a vectorized loop. Each iteration asks for the "
      "lines of the box `distance` iterations ahead; past the end that does nothing. With `over`, "
      "a "
      "loop further inside, they are asked for little by little, an equal part at each of its "
      "iterations, so that they are no burst. At most 256 cache lines are asked for at once.";
  static constexpr std::string_view kBefore = "for k in 0..n\n  for j: C(j) reads B(k, j)";
  static constexpr std::string_view kAfter =
      "for k in 0..n  prefetch(B)=4\n  for j: C(j) reads B(k, j)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Prefetch::stage, "stage that names the loop"),
                      field("buffer", &Prefetch::buffer, "buffer to fetch from"),
                      field("loop", &Prefetch::loop, "loop whose iterations ask"),
                      field("distance", &Prefetch::distance, "iterations ahead, at least 1"),
                      option("over", &Prefetch::over, "loop whose iterations share the lines out"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct DoubleBuffer {
  std::string stage, buffer, loop;

  static constexpr std::string_view kName = "double_buffer";
  static constexpr std::string_view kRule =
      "The buffer is allocated in the loop's body, not in registers, and filled at its top by "
      "nests "
      "that write nothing else and read nothing that the body writes. The loop is serial. "
      "Lowering keeps two copies "
      "and fills the next iteration's before this iteration's work. A later step that would break "
      "this is refused.";
  static constexpr std::string_view kBefore =
      "for x in 0..n\n  allocate T\n  for i: T(i) = B(x, i)\n  for i: S reads T(i)";
  static constexpr std::string_view kAfter =
      "for x in 0..n  double_buffer(T)=1\n  allocate T\n  for i: T(i) = B(x, i)\n  for i: S reads "
      "T(i)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &DoubleBuffer::stage, "stage that names the loop"),
                      field("buffer", &DoubleBuffer::buffer, "buffer to have twice"),
                      field("loop", &DoubleBuffer::loop, "loop that allocates it"));
  }
  Program apply(const Program& program, const Target& target) const;
};

struct Annotate {
  std::string stage, loop, key;
  int64_t value = 0;

  static constexpr std::string_view kName = "annotate";
  static constexpr std::string_view kRule =
      "A key that starts with \"user.\" is a free note: letters, digits, '.', '_' and '-', at most "
      "64; it means nothing to Tenon and stays with the loop. Of the others lowering knows "
      "\"no_partition\" (value 1): the loop is never cut for guards; and \"stream\" (value 1): "
      "outputs that the loop writes and does not read go to memory past the caches, in whole "
      "vectors, where these are aligned. That is for a CPU, and for a loop that stays one: not "
      "vectorized nor unrolled. A key given again takes the new value.";
  static constexpr std::string_view kBefore = "for x in 0..n: S(x)";
  static constexpr std::string_view kAfter = "for x in 0..n  user.group=3: S(x)";
  static constexpr auto fields() {
    return std::tuple(field("stage", &Annotate::stage, "stage that names the loop"),
                      field("loop", &Annotate::loop, "loop to annotate"),
                      field("key", &Annotate::key, "what the note is called"),
                      field("value", &Annotate::value, "what it says"));
  }
  Program apply(const Program& program, const Target& target) const;
};

}  // namespace tenon
