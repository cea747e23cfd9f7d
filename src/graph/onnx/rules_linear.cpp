#include <tenon/support/text.h>

#include <algorithm>

#include "graph/onnx/rules.h"

namespace tenon {

namespace {

/// A window over spatial axes, every attribute resolved.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;  // pads: begins, then ends
  size_t rank() const { return kernel.size(); }
};

std::vector<int64_t> per_axis(Resolver& r, const std::string& name, size_t rank, int64_t least) {
  std::vector<int64_t> numbers =
      r.has(name) ? r.node().integers(name) : std::vector<int64_t>(rank, 1);
  if (numbers.size() != rank)
    r.fail(fmt::format("{} has {} entries for {} spatial axes", name, numbers.size(), rank));
  for (int64_t n : numbers)
    if (n < least || n > INT32_MAX) r.fail(fmt::format("{} has an entry {}", name, n));
  return numbers;
}

int64_t span(const Window& w, size_t d) { return (w.kernel[d] - 1) * w.dilations[d] + 1; }

/// auto_pad SAME: as many outputs as ceil(extent / stride), the odd cell at the end (UPPER) or the
/// begin (LOWER).
void same_pads(Window& w, const std::vector<int64_t>& spatial, bool upper) {
  for (size_t d = 0; d < w.rank(); ++d) {
    const int64_t outputs = (spatial[d] + w.strides[d] - 1) / w.strides[d];
    const int64_t total =
        std::max<int64_t>(0, (outputs - 1) * w.strides[d] + span(w, d) - spatial[d]);
    w.pads[d] = upper ? total / 2 : total - total / 2;
    w.pads[d + w.rank()] = total - w.pads[d];
  }
}

void check_pads(Resolver& r, const std::vector<int64_t>& pads, size_t rank) {
  if (pads.size() != 2 * rank)
    r.fail(fmt::format("pads has {} entries for {} spatial axes", pads.size(), rank));
  for (int64_t pad : pads)
    if (pad < 0 || pad > INT32_MAX) r.fail(fmt::format("pads has an entry {}", pad));
}

Window window(Resolver& r, std::vector<int64_t> kernel, const std::vector<int64_t>& spatial) {
  const size_t rank = spatial.size();
  Window w{
      std::move(kernel), per_axis(r, "strides", rank, 1), per_axis(r, "dilations", rank, 1), {}};
  if (w.kernel.size() != rank)
    r.fail(fmt::format("the kernel has {} extents for {} spatial axes", w.kernel.size(), rank));
  for (size_t d = 0; d < rank; ++d) {
    if (w.kernel[d] < 1 || w.kernel[d] > INT32_MAX || spatial[d] > INT32_MAX)
      r.fail(fmt::format("a kernel of {} over {} cells", w.kernel[d], spatial[d]));
    if (span(w, d) > INT32_MAX)
      r.fail(fmt::format("a kernel of {} with dilation {}", w.kernel[d], w.dilations[d]));
  }
  w.pads.assign(2 * rank, 0);
  const std::string& mode = r.node().text("auto_pad");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    same_pads(w, spatial, mode == "SAME_UPPER");
  } else if (mode == "NOTSET") {
    if (r.has("pads")) w.pads = r.node().integers("pads");
    check_pads(r, w.pads, rank);
  } else if (mode != "VALID") {
    r.fail("auto_pad is \"" + mode + "\", it must be NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  }
  return w;
}

std::vector<int64_t> spatial_extents(Resolver& r, ValueId x) {
  const std::vector<int64_t> shape = r.shape(x);
  if (shape.size() < 3)
    r.fail(fmt::format("the input has rank {}, it needs batch, channels and spatial axes",
                       shape.size()));
  return {shape.begin() + 2, shape.end()};
}

Attributes attributes_of(const Window& w) {
  return {{"strides", w.strides}, {"dilations", w.dilations}, {"pads", w.pads}};
}

/// conv + bias[c] as an addition of its own, which fuses back as an epilogue.
ValueId add_bias(Resolver& r, ValueId y, int i) {
  if (!r.has_input(i)) return y;
  const ValueId bias = r.input(i);
  if (r.shape(bias) != std::vector<int64_t>{r.shape(y)[1]})
    r.fail(fmt::format("the bias has shape {}, the output has {} channels",
                       shape_text(r.shape(bias)), r.shape(y)[1]));
  std::vector<int64_t> shape(static_cast<size_t>(r.rank(y)) - 1, 1);
  shape[0] = r.shape(y)[1];
  return r.emit("Add", {y, r.reshape(bias, shape)});
}

/// The kernel's extents come from the weights; the attribute may only repeat them.
Window conv_window(Resolver& r) {
  const std::vector<int64_t> x = spatial_extents(r, r.input(0)), w = spatial_extents(r, r.input(1));
  if (r.has("kernel_shape") && r.node().integers("kernel_shape") != w)
    r.fail(fmt::format("kernel_shape is [{}], the weights have [{}]",
                       fmt::join(r.node().integers("kernel_shape"), ","), fmt::join(w, ",")));
  return window(r, w, x);
}

int64_t group(Resolver& r) {
  const int64_t group = r.node().integer("group");
  if (group < 1 || group > INT32_MAX) r.fail(fmt::format("group is {}", group));
  return group;
}

/// Emits `op` with the window and its own attributes.
void pool(Resolver& r, const std::string& op, Attributes attributes) {
  const Window w = window(r, r.node().integers("kernel_shape"), spatial_extents(r, r.input(0)));
  for (const auto& [name, numbers] : attributes_of(w)) attributes[name] = numbers;
  attributes["kernel"] = w.kernel;
  attributes["ceil_mode"] = r.node().integer("ceil_mode");
  attributes.emplace("count_include_pad", int64_t{0});
  r.result(0, r.emit(op, attributes, {r.input(0)}));
}

}  // namespace

/// Vectors become a row or a column and lose it again.
void resolve_matmul(Resolver& r) {
  ValueId a = r.input(0), b = r.input(1);
  if (r.rank(a) == 0 || r.rank(b) == 0) r.fail("scalars cannot be multiplied as matrices");
  const bool row = r.rank(a) == 1, column = r.rank(b) == 1;
  if (row) a = r.reshape(a, {1, r.shape(a)[0]});
  if (column) b = r.reshape(b, {r.shape(b)[0], 1});
  const ValueId y = r.emit("MatMul", {a, b});
  std::vector<int64_t> shape = r.shape(y);
  if (row) shape.erase(shape.end() - 2);
  if (column) shape.pop_back();
  r.result(0, r.reshape(y, shape));
}

/// alpha * op(a) @ op(b) + beta * c as its parts.
void resolve_gemm(Resolver& r) {
  const auto matrix = [&](int i, const char* transposed) {
    const ValueId id = r.input(i);
    if (r.rank(id) != 2) r.fail(fmt::format("input {} has rank {}, it needs 2", i, r.rank(id)));
    if (r.node().integer(transposed) == 0) return id;
    return r.emit("Transpose", {{"perm", std::vector<int64_t>{1, 0}}}, {id});
  };
  const double alpha = r.node().real("alpha"), beta = r.node().real("beta");
  ValueId y = r.emit("MatMul", {matrix(0, "transA"), matrix(1, "transB")});
  if (alpha != 1) y = r.emit("Mul", {y, r.scalar_like(y, alpha)});
  if (r.has_input(2) && beta != 0) {
    ValueId c = r.input(2);
    const auto shape = broadcast_shapes(r.shape(c), r.shape(y));
    if (shape != r.shape(y))
      r.fail(fmt::format("c of shape {} does not broadcast to {}", shape_text(r.shape(c)),
                         shape_text(r.shape(y))));
    if (beta != 1) c = r.emit("Mul", {c, r.scalar_like(c, beta)});
    y = r.emit("Add", {y, c});
  }
  r.result(0, y);
}

void resolve_conv(Resolver& r) {
  const Window w = conv_window(r);
  Attributes attributes = attributes_of(w);
  attributes["group"] = group(r);
  r.result(0, add_bias(r, r.emit("Conv", attributes, {r.input(0), r.input(1)}), 2));
}

/// output = stride * (extent - 1) + output_padding + span - pads; output_shape asks for it and
/// distributes the pads.
void resolve_conv_transpose(Resolver& r) {
  const std::vector<int64_t> x = spatial_extents(r, r.input(0)), k = spatial_extents(r, r.input(1));
  const std::string mode = r.node().text("auto_pad");
  const size_t rank = x.size();
  if (k.size() != rank)
    r.fail(fmt::format("the kernel has {} extents for {} spatial axes", k.size(), rank));
  for (size_t d = 0; d < rank; ++d)
    if (k[d] < 1 || k[d] > INT32_MAX || x[d] > INT32_MAX)
      r.fail(fmt::format("a kernel of {} over {} cells", k[d], x[d]));
  Window w{k, per_axis(r, "strides", rank, 1), per_axis(r, "dilations", rank, 1),
           std::vector<int64_t>(2 * rank, 0)};
  if (r.has("pads") && mode == "NOTSET") w.pads = r.node().integers("pads");
  check_pads(r, w.pads, rank);
  std::vector<int64_t> extra(rank, 0), output(rank);
  if (r.has("output_padding")) extra = per_axis(r, "output_padding", rank, 0);
  const bool asked = r.has("output_shape"), same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (asked) output = per_axis(r, "output_shape", rank, 1);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t full = w.strides[d] * (x[d] - 1) + extra[d] + span(w, d);
    if (same && !asked) output[d] = x[d] * w.strides[d];
    if (same || asked) {
      const int64_t total = std::max<int64_t>(0, full - output[d]);
      w.pads[d] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pads[d + rank] = total - w.pads[d];
    } else {
      output[d] = full - w.pads[d] - w.pads[d + rank];
    }
    if (output[d] < 1)
      r.fail(fmt::format("spatial axis {} of the output would have extent {}", d, output[d]));
  }
  Attributes attributes = attributes_of(w);
  attributes["group"] = group(r);
  attributes["output"] = output;
  r.result(0, add_bias(r, r.emit("ConvTranspose", attributes, {r.input(0), r.input(1)}), 2));
}

std::string refuse_max_pool(const Node& node, int64_t) {
  if (node.outputs.size() > 1 && node.outputs[1] != kAbsent) return "the second output (indices)";
  return "";
}

void resolve_max_pool(Resolver& r) { pool(r, "MaxPool", {}); }

void resolve_average_pool(Resolver& r) {
  pool(r, "AveragePool", {{"count_include_pad", r.node().integer("count_include_pad")}});
}

void resolve_lp_pool(Resolver& r) { pool(r, "LpPool", {{"p", r.node().integer("p")}}); }

}  // namespace tenon
