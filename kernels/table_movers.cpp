#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "kernels/axes.h"
#include "kernels/movers.h"
#include "kernels/pad.h"
#include "kernels/table_parts.h"

namespace tenon {
namespace {

using Inputs = std::vector<RefArray>;
using Shape = std::vector<int64_t>;

constexpr int64_t kMostParts = 8;

double no_flops(const KernelArgs&) { return 0; }

/// One number for each dimension of shape=; a single one stands for all.
Shape each_dimension(const KernelArgs& a, const std::string& kernel, const std::string& name,
                     const std::string& example) {
  Shape numbers = number_list(a, kernel, name, example);
  const size_t rank = a.shape("shape").size();
  if (numbers.size() == 1) numbers.assign(rank, numbers[0]);
  if (numbers.size() != rank)
    throw UserError(fmt::format("{}: {}={} has {} numbers for the {} dimensions of {}\n  try: {}",
                                kernel, name, a.word(name), numbers.size(), rank,
                                shape_text(a.shape("shape")), example));
  return numbers;
}

/// The default permutation swaps the last two dimensions.
Shape permutation(const KernelArgs& a) {
  if (a.word("perm") != "last") return number_list(a, "transpose", "perm", "perm=0,2,1");
  Shape perm;
  for (size_t d = 0; d < a.shape("shape").size(); ++d) perm.push_back(static_cast<int64_t>(d));
  if (perm.size() > 1) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return perm;
}

KernelEntry transpose_entry() {
  return {
      "transpose",
      "X with its dimensions in another order",
      {shape_arg("shape", "of X, as 1024x1024"),
       word_arg("perm", "last: the last two swapped; or as 0,2,1", "last")},
      {"X"},
      [](const KernelArgs& a) {
        return std::vector<Tensor>{transpose(a.tensor("X", a.shape("shape")), permutation(a), "Y")};
      },
      no_flops,
      [](const KernelArgs& a, const Inputs& in) { return ref_transpose(in[0], permutation(a)); }};
}

std::vector<KernelArg> image_args() {
  return {number_arg("n", "images", "1"), number_arg("c", "channels"), number_arg("h", "height"),
          number_arg("w", "width"), number_arg("block", "channels in a block", "16", 1)};
}

/// [n, c, h, w], and the same in blocks of channels.
Shape image_shape(const KernelArgs& a) {
  return {a.number("n"), a.number("c"), a.number("h"), a.number("w")};
}

Shape blocked_shape(const KernelArgs& a) {
  const int64_t block = a.number("block");
  return {a.number("n"), (a.number("c") + block - 1) / block, a.number("h"), a.number("w"), block};
}

KernelEntry block_channels_entry() {
  return {
      "block_channels",
      "X[n,c,h,w] with channels in blocks: Y[n,c/block,h,w,block]",
      image_args(),
      {"X"},
      [](const KernelArgs& a) {
        return std::vector<Tensor>{
            block_channels(a.tensor("X", image_shape(a)), a.number("block"), "Y")};
      },
      no_flops,
      [](const KernelArgs& a, const Inputs& in) { return ref_blocked(in[0], a.number("block")); }};
}

KernelEntry unblock_channels_entry() {
  return {
      "unblock_channels",
      "channels out of blocks: X[n,c/block,h,w,block] -> Y[n,c,h,w]",
      image_args(),
      {"X"},
      [](const KernelArgs& a) {
        return std::vector<Tensor>{
            unblock_channels(a.tensor("X", blocked_shape(a)), a.number("c"), "Y")};
      },
      no_flops,
      [](const KernelArgs& a, const Inputs& in) { return ref_unblocked(in[0], a.number("c")); }};
}

KernelEntry reshape_entry() {
  return {
      "reshape",
      "the elements of X in row-major order under another shape",
      {shape_arg("shape", "of X, as 64x56x56"), shape_arg("to", "the new shape, as 64x3136")},
      {"X"},
      [](const KernelArgs& a) {
        return std::vector<Tensor>{reshape(a.tensor("X", a.shape("shape")), a.shape("to"), "Y")};
      },
      no_flops,
      [](const KernelArgs& a, const Inputs& in) {
        // Without elements X is not read.
        return in.empty() ? RefArray(a.shape("to")) : ref_reshape(in[0], a.shape("to"));
      }};
}

std::string part_name(size_t n) { return fmt::format("X{}", n); }

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (size_t n = 0; n < static_cast<size_t>(kMostParts); ++n) names.push_back(part_name(n));
  return names;
}

/// The shape of each part.
std::vector<Shape> part_shapes(const KernelArgs& a) {
  const Shape shape = a.shape("shape");
  Shape sizes = number_list(a, "concat", "parts", "parts=4, or parts=64,32");
  const size_t d =
      static_cast<size_t>(normal_axis("concat", a.number("axis"), static_cast<int>(shape.size())));
  const bool count = sizes.size() == 1;
  const int64_t parts = count ? sizes[0] : static_cast<int64_t>(sizes.size());
  if (parts < 1 || parts > kMostParts)
    throw UserError(
        fmt::format("concat: parts={} asks for {} parts; there can be 1 to {}\n  try: parts=4, or "
                    "parts=64,32 for two of these extents",
                    a.word("parts"), parts, kMostParts));
  if (count) sizes.assign(static_cast<size_t>(parts), shape[d]);
  std::vector<Shape> shapes(sizes.size(), shape);
  for (size_t n = 0; n < sizes.size(); ++n) {
    if (sizes[n] < 0)
      throw UserError(
          fmt::format("concat: parts={}: an extent must be 0 or more", a.word("parts")));
    shapes[n][d] = sizes[n];
  }
  return shapes;
}

KernelEntry concat_entry() {
  return {
      "concat",
      "X0, X1, ... one after the other along an axis",
      {shape_arg("shape", "of each part, as 64x56x56"),
       number_arg("axis", "where they are joined; negative from the end", "0", -8),
       word_arg("parts", "how many (8 at most), or their extents along the axis as 64,32", "2")},
      part_names(),
      [](const KernelArgs& a) {
        std::vector<Tensor> parts;
        for (const Shape& shape : part_shapes(a))
          parts.push_back(a.tensor(part_name(parts.size()), shape));
        return std::vector<Tensor>{concat(parts, a.number("axis"), "Y")};
      },
      no_flops,
      [](const KernelArgs& a, const Inputs& in) {
        Inputs parts;  // the program does not read those without elements
        size_t next = 0;
        for (const Shape& shape : part_shapes(a)) {
          const bool empty = std::count(shape.begin(), shape.end(), 0) > 0;
          parts.push_back(empty ? RefArray(shape) : in.at(next++));
        }
        return ref_concat(parts, a.number("axis"));
      }};
}

struct Cut {
  Shape starts, steps, extents;
};

Cut cut(const KernelArgs& a) {
  const Shape shape = a.shape("shape");
  Cut c;
  c.steps = each_dimension(a, "slice", "steps", "steps=1,2");
  if (std::count(c.steps.begin(), c.steps.end(), 0) > 0)
    throw UserError(fmt::format("slice: steps={}: a step must not be 0", a.word("steps")));
  if (a.word("starts") != "ends") c.starts = each_dimension(a, "slice", "starts", "starts=0,3");
  if (a.word("extents") != "all") c.extents = each_dimension(a, "slice", "extents", "extents=4,8");
  for (size_t d = 0; d < shape.size(); ++d) {
    if (a.word("starts") == "ends") c.starts.push_back(c.steps[d] > 0 ? 0 : shape[d] - 1);
    const int64_t left = c.steps[d] > 0 ? shape[d] - c.starts[d] : c.starts[d] + 1;
    const int64_t step = std::abs(c.steps[d]);
    if (a.word("extents") == "all")
      c.extents.push_back(std::max<int64_t>(0, (left + step - 1) / step));
    if (c.extents[d] < 0)
      throw UserError(
          fmt::format("slice: extents={}: an extent must be 0 or more", a.word("extents")));
  }
  return c;
}

KernelEntry slice_entry() {
  return {"slice",
          "every steps-th element of X from starts on, as many as extents says",
          {shape_arg("shape", "of X, as 64x56x56"),
           word_arg("starts",
                    "first element of each dimension, as 0,1,1; ends: from its begin, or "
                    "its end with a negative step",
                    "ends"),
           word_arg("steps", "one for all dimensions, or as 1,2,-2", "1"),
           word_arg("extents", "all that are left, or as 64,28,28", "all")},
          {"X"},
          [](const KernelArgs& a) {
            const Cut c = cut(a);
            return std::vector<Tensor>{
                slice(a.tensor("X", a.shape("shape")), c.starts, c.steps, c.extents, "Y")};
          },
          no_flops,
          [](const KernelArgs& a, const Inputs& in) {
            const Cut c = cut(a);
            return ref_slice(in[0], c.starts, c.steps, c.extents);
          }};
}

struct Border {
  Shape before, after;
  PadMode mode;
};

Border border(const KernelArgs& a) {
  const std::string& mode = a.word("mode");
  return {each_dimension(a, "pad", "before", "before=0,1,1"),
          each_dimension(a, "pad", "after", "after=0,1,1"),
          mode == "reflect" ? PadMode::reflect
          : mode == "edge"  ? PadMode::edge
          : mode == "wrap"  ? PadMode::wrap
                            : PadMode::constant};
}

KernelEntry pad_entry() {
  return {
      "pad",
      "X with elements added round it (negative: cut off)",
      {shape_arg("shape", "of X, as 64x56x56"),
       word_arg("before", "elements in front: one for all dimensions, or as 0,1,1", "1"),
       word_arg("after", "elements behind", "1"),
       word_arg("mode", "what they are", "constant", {"constant", "reflect", "edge", "wrap"}),
       number_arg("value", "of a constant pad", "0", std::numeric_limits<int64_t>::min())},
      {"X"},
      [](const KernelArgs& a) {
        const Border b = border(a);
        return std::vector<Tensor>{pad(a.tensor("X", a.shape("shape")), b.before, b.after, b.mode,
                                       imm(static_cast<double>(a.number("value")), a.type()), "Y")};
      },
      no_flops,
      [](const KernelArgs& a, const Inputs& in) {
        const Border b = border(a);
        return ref_pad(in[0], b.before, b.after, b.mode, static_cast<double>(a.number("value")));
      }};
}

KernelEntry gather_entry() {
  return {"gather",
          "the slices of X along an axis that the positions I name",
          {shape_arg("shape", "of X, as 1000x64"), shape_arg("indices", "shape of I, as 128"),
           number_arg("axis", "that I counts along; negative from the end", "0", -8),
           word_arg("index", "type of I", "i64", {"i64", "i32"})},
          {"X", "I"},
          [](const KernelArgs& a) {
            return std::vector<Tensor>{
                gather(a.tensor("X", a.shape("shape")),
                       a.tensor("I", a.word("index") == "i32" ? i32 : i64, a.shape("indices")),
                       a.number("axis"), "Y")};
          },
          no_flops,
          [](const KernelArgs& a, const Inputs& in) {
            return ref_gather(in[0], in[1], a.number("axis"));
          },
          [](const KernelArgs& a) {
            const Shape shape = a.shape("shape");
            const int axis =
                normal_axis("gather", a.number("axis"), static_cast<int>(shape.size()));
            const int64_t n = std::max<int64_t>(shape[static_cast<size_t>(axis)], 1);
            return std::map<std::string, std::pair<int64_t, int64_t>>{{"I", {-n, n - 1}}};
          }};
}

KernelEntry expand_entry() {
  return {"expand",
          "X broadcast to a shape by numpy's rules",
          {shape_arg("shape", "of X, as 64x1x1"), shape_arg("to", "the shape, as 64x56x56")},
          {"X"},
          [](const KernelArgs& a) {
            return std::vector<Tensor>{expand(a.tensor("X", a.shape("shape")), a.shape("to"), "Y")};
          },
          no_flops,
          [](const KernelArgs& a, const Inputs& in) { return ref_expand(in[0], a.shape("to")); }};
}

KernelEntry tile_entry() {
  return {
      "tile",
      "copies of X side by side",
      {shape_arg("shape", "of X, as 64x56x56"),
       word_arg("repeats", "copies: one for all dimensions, or as 1,2,2", "2")},
      {"X"},
      [](const KernelArgs& a) {
        return std::vector<Tensor>{tile(a.tensor("X", a.shape("shape")),
                                        each_dimension(a, "tile", "repeats", "repeats=1,2"), "Y")};
      },
      no_flops,
      [](const KernelArgs& a, const Inputs& in) {
        return ref_tile(in[0], each_dimension(a, "tile", "repeats", "repeats=1,2"));
      }};
}

}  // namespace

std::vector<KernelEntry> mover_entries() {
  return {transpose_entry(), block_channels_entry(), unblock_channels_entry(),
          reshape_entry(),   concat_entry(),         slice_entry(),
          pad_entry(),       gather_entry(),         expand_entry(),
          tile_entry()};
}

}  // namespace tenon
