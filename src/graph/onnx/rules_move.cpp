#include <algorithm>

#include "graph/onnx/rules.h"

namespace tenon {

namespace {

/// Slice along one axis: [start, start + count).
ValueId slice_axis(Resolver& r, ValueId x, size_t axis, int64_t start, int64_t count) {
  std::vector<int64_t> shape = r.shape(x), starts(shape.size(), 0), steps(shape.size(), 1);
  starts[axis] = count == 0 ? 0 : start;
  shape[axis] = count;
  return r.emit("Slice", {{"starts", starts}, {"steps", steps}, {"shape", shape}}, {x});
}

struct Range1 {
  int64_t start, step, count;
};

/// numpy's slice rule on an axis of extent n: negative bounds count from the end, then both are
/// clamped.
Range1 clamp_slice(int64_t start, int64_t end, int64_t step, int64_t n) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto clamp = [&](int64_t at) {
    return at < 0 ? std::max(at + n, low) : std::min(at, high);
  };
  start = clamp(start);
  end = clamp(end);
  const int64_t distance = step > 0 ? end - start : start - end;
  if (distance <= 0) return {0, 1, 0};
  // The magnitude as an unsigned number: -step overflows for the lowest integer.
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : ~static_cast<uint64_t>(step) + 1;
  const auto count = static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride + 1);
  return {start, count == 1 ? 1 : step, count};
}

std::vector<int64_t> split_sizes(Resolver& r, int64_t extent, size_t outputs) {
  if (auto given = r.integers_of("split", 1)) {
    int64_t sum = 0;
    bool fits = given->size() == outputs;
    for (int64_t size : *given)
      fits = fits && size >= 0 && !__builtin_add_overflow(sum, size, &sum);
    if (!fits || sum != extent)
      r.fail(fmt::format("sizes [{}] for {} outputs do not add up to the extent {}",
                         fmt::join(*given, ","), outputs, extent));
    return *given;
  }
  const auto n = static_cast<int64_t>(outputs);
  if (r.has("num_outputs") && r.node().integer("num_outputs") != n)
    r.fail(fmt::format("num_outputs is {}, the node has {}", r.node().integer("num_outputs"), n));
  if (!r.has("num_outputs") && extent % n != 0)
    r.fail(fmt::format("extent {} does not split into {} equal parts", extent, n));
  const int64_t size = (extent + n - 1) / n;
  std::vector<int64_t> sizes;
  for (int64_t left = extent, i = 0; i < n; ++i, left -= sizes.back())
    sizes.push_back(std::min(size, left));
  return sizes;
}

/// Pads of all axes from those of some: the begins of `axes`, then their ends.
std::vector<int64_t> spread_pads(Resolver& r, const std::vector<int64_t>& pads,
                                 const std::vector<int64_t>& axes, size_t rank) {
  if (pads.size() != 2 * axes.size())
    r.fail(fmt::format("{} pads for {} axes; each axis needs two", pads.size(), axes.size()));
  std::vector<int64_t> all(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(r.axis(axes[i], static_cast<int64_t>(rank)));
    all[d] = pads[i];
    all[d + rank] = pads[i + axes.size()];
  }
  return all;
}

std::vector<int64_t> iota(size_t n) {
  std::vector<int64_t> numbers(n);
  for (size_t i = 0; i < n; ++i) numbers[i] = static_cast<int64_t>(i);
  return numbers;
}

ValueId transpose(Resolver& r, ValueId x, const std::vector<int64_t>& perm) {
  return r.emit("Transpose", {{"perm", perm}}, {x});
}

constexpr int64_t kFarDiagonal = int64_t{1} << 48;  // beyond every extent
constexpr int64_t kMostBlock = 128;                 // of what exists, 8 is large

int64_t block_size(Resolver& r) {
  const int64_t block = r.node().integer("blocksize");
  if (block < 1 || block > kMostBlock)
    r.fail(fmt::format("blocksize is {}; it must be in 1..{}", block, kMostBlock));
  if (r.rank(r.input(0)) != 4)
    r.fail(fmt::format("the input has rank {}, it needs 4", r.rank(r.input(0))));
  return block;
}

}  // namespace

void resolve_transpose(Resolver& r) {
  const ValueId x = r.input(0);
  std::vector<int64_t> perm = iota(static_cast<size_t>(r.rank(x)));
  if (r.has("perm")) {
    perm = r.node().integers("perm");
  } else {
    std::reverse(perm.begin(), perm.end());
  }
  r.result(0, perm == iota(static_cast<size_t>(r.rank(x))) ? x : transpose(r, x, perm));
}

void resolve_concat(Resolver& r) {
  if (!r.has("axis")) r.fail("it has no axis");
  std::vector<ValueId> parts;
  for (int i = 0; i < r.input_count(); ++i) parts.push_back(r.input(i));
  const int64_t axis = r.axis(r.node().integer("axis"), r.rank(parts[0]));
  r.result(0, parts.size() == 1 ? parts[0] : r.emit("Concat", {{"axis", axis}}, parts));
}

/// One Slice per output.
void resolve_split(Resolver& r) {
  const ValueId x = r.input(0);
  const auto axis = static_cast<size_t>(r.axis(r.node().integer("axis"), r.rank(x)));
  const std::vector<int64_t> sizes = split_sizes(r, r.shape(x)[axis], r.node().outputs.size());
  int64_t start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (r.wants_output(static_cast<int>(i)))
      r.result(static_cast<int>(i), slice_axis(r, x, axis, start, sizes[i]));
    start += sizes[i];
  }
}

/// Bounds are attributes ahead of opset 10, then inputs.
void resolve_slice(Resolver& r) {
  const ValueId x = r.input(0);
  std::vector<int64_t> shape = r.shape(x);
  const auto starts = r.integers_of("starts", 1), ends = r.integers_of("ends", 2);
  if (!starts || !ends) r.fail("it has no starts or no ends");
  const auto axes = r.integers_of("axes", 3).value_or(iota(starts->size()));
  const auto steps = r.integers_of("steps", 4).value_or(std::vector<int64_t>(starts->size(), 1));
  if (ends->size() != starts->size() || axes.size() != starts->size() ||
      steps.size() != starts->size())
    r.fail(fmt::format("{} starts, {} ends, {} axes and {} steps", starts->size(), ends->size(),
                       axes.size(), steps.size()));
  r.axes(axes, r.rank(x));
  std::vector<int64_t> from(shape.size(), 0), step(shape.size(), 1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d = static_cast<size_t>(r.axis(axes[i], r.rank(x)));
    if (steps[i] == 0) r.fail(fmt::format("the step on axis {} is 0", d));
    const Range1 range = clamp_slice((*starts)[i], (*ends)[i], steps[i], shape[d]);
    from[d] = range.start;
    step[d] = range.step;
    shape[d] = range.count;
  }
  const bool whole = shape == r.shape(x) && step == std::vector<int64_t>(shape.size(), 1);
  r.result(0,
           whole ? x : r.emit("Slice", {{"starts", from}, {"steps", step}, {"shape", shape}}, {x}));
}

std::string refuse_pad(const Node& node, int64_t) {
  const std::string& mode = node.text("mode");
  if (mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap") return "";
  return "attribute mode = \"" + mode + "\" (supported: constant, reflect, edge, wrap)";
}

/// Pads and value are attributes ahead of opset 11, then inputs; axes came with 18. The second
/// input of the canonical Pad is the value.
void resolve_pad(Resolver& r) {
  const ValueId x = r.input(0);
  const auto rank = static_cast<size_t>(r.rank(x));
  const auto given = r.integers_of("pads", 1);
  if (!given) r.fail("it has no pads");
  std::vector<int64_t> axes = iota(rank);
  if (r.has_input(3)) axes = r.needed_integers(3, "axes");
  const std::vector<int64_t> pads = spread_pads(r, *given, axes, rank);
  const ValueId value = r.has_input(2)
                            ? r.reshape(r.input(2), {})
                            : r.scalar_like(x, r.has("value") ? r.node().real("value") : 0.0);
  const bool none = pads == std::vector<int64_t>(2 * rank, 0);
  r.result(0,
           none ? x : r.emit("Pad", {{"pads", pads}, {"mode", r.node().text("mode")}}, {x, value}));
}

void resolve_gather(Resolver& r) {
  const ValueId data = r.input(0);
  const int64_t axis = r.axis(r.node().integer("axis"), r.rank(data));
  r.result(0, r.emit(r.node().op, {{"axis", axis}}, {data, r.input(1)}));
}

void resolve_gather_nd(Resolver& r) {
  r.result(
      0, r.emit("GatherND", {{"batch", r.node().integer("batch_dims")}}, {r.input(0), r.input(1)}));
}

void resolve_depth_to_space(Resolver& r) {
  const int64_t b = block_size(r);
  const int64_t channels = r.shape(r.input(0))[1];
  const std::string& mode = r.node().text("mode");
  if (channels % (b * b) != 0)
    r.fail(fmt::format("{} channels are no multiple of blocksize squared, {}", channels, b * b));
  if (mode != "DCR" && mode != "CRD") r.fail("mode is \"" + mode + "\", it must be DCR or CRD");
  r.result(0, r.emit("DepthToSpace", {{"block", b}, {"depth_first", int64_t{mode == "DCR"}}},
                     {r.input(0)}));
}

void resolve_space_to_depth(Resolver& r) {
  const int64_t b = block_size(r);
  const std::vector<int64_t> s = r.shape(r.input(0));
  if (s[2] % b != 0 || s[3] % b != 0)
    r.fail(fmt::format("{}x{} is no multiple of blocksize {}", s[2], s[3], b));
  const std::string& mode = r.node().text("mode");
  if (mode == "DCR") return r.result(0, r.emit("SpaceToDepth", {{"block", b}}, {r.input(0)}));
  if (mode != "CRD") r.fail("mode is \"" + mode + "\", it must be DCR or CRD");
  const ValueId cut = r.reshape(r.input(0), {s[0], s[1], s[2] / b, b, s[3] / b, b});
  const ValueId turned =
      r.emit("Transpose", {{"perm", std::vector<int64_t>{0, 1, 3, 5, 2, 4}}}, {cut});
  r.result(0, r.reshape(turned, {s[0], s[1] * b * b, s[2] / b, s[3] / b}));
}

/// The diagonal k is an optional input.
void resolve_trilu(Resolver& r) {
  const ValueId x = r.input(0);
  int64_t diagonal = 0;
  if (r.has_input(1)) {
    const std::vector<int64_t> given = r.needed_integers(1, "diagonal");
    if (given.size() != 1) r.fail(fmt::format("the diagonal has {} elements", given.size()));
    diagonal = std::clamp(given[0], -kFarDiagonal, kFarDiagonal);
  }
  if (r.rank(x) < 2) r.fail(fmt::format("the input has rank {}, it needs 2", r.rank(x)));
  r.result(
      0, r.emit("Triangle",
                {{"diagonal", diagonal}, {"upper", int64_t{r.node().integer("upper") != 0}}}, {x}));
}

}  // namespace tenon
