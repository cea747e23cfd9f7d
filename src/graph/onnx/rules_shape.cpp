#include <tenon/support/text.h>

#include <algorithm>
#include <cmath>

#include "graph/onnx/rules.h"
#include "graph/passes/constants.h"

namespace tenon {

namespace {

int64_t product(const std::vector<int64_t>& shape, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t i = begin; i < end; ++i) count *= shape[i];
  return count;
}

void need_extents(const Resolver& r, const std::vector<int64_t>& shape) {
  for (int64_t extent : shape)
    if (extent < 0)
      r.fail("shape [" + fmt::format("{}", fmt::join(shape, ",")) + "] has a negative extent");
}

}  // namespace

/// Attributes start and end (opset 15) count from the end when negative and are clamped.
void resolve_shape(Resolver& r) {
  const std::vector<int64_t> shape = r.shape(r.input(0));
  const auto rank = static_cast<int64_t>(shape.size());
  const auto clamp = [&](int64_t at) {
    return std::clamp(at < 0 ? at + rank : at, int64_t{0}, rank);
  };
  const int64_t start = clamp(r.node().integer("start"));
  const int64_t end = r.has("end") ? clamp(r.node().integer("end")) : rank;
  const std::vector<int64_t> part(shape.begin() + start, shape.begin() + std::max(start, end));
  r.result(0, r.integer_constant(part));
}

void resolve_size(Resolver& r) {
  const int64_t count = element_count(r.shape(r.input(0)));
  r.result(0, r.constant(from_vector<int64_t>({}, {count})));
}

/// 0 copies the input's extent (unless allowzero), one -1 takes what is left.
void resolve_reshape(Resolver& r) {
  const ValueId x = r.input(0);
  std::vector<int64_t> shape =
      r.has("shape") ? r.node().integers("shape") : r.needed_integers(1, "extents");
  const std::vector<int64_t> from = r.shape(x), asked = shape;
  size_t open = shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && r.node().integer("allowzero") == 0) {
      if (i >= from.size())
        r.fail(
            fmt::format("extent {} of the shape is 0, but the input has rank {}", i, from.size()));
      shape[i] = from[i];
    } else if (shape[i] == -1) {
      if (open != shape.size()) r.fail(fmt::format("shape [{}] has two -1", fmt::join(asked, ",")));
      open = i;
    } else if (shape[i] < 0) {
      r.fail(fmt::format("extent {} of the shape is {}", i, shape[i]));
    }
  }
  if (open != shape.size()) {
    shape[open] = 1;
    const int64_t rest = element_count(shape), all = element_count(from);
    if (rest == 0 || all % rest != 0)
      r.fail(fmt::format("shape [{}] does not divide the {} elements of the input",
                         fmt::join(asked, ","), all));
    shape[open] = all / rest;
  }
  r.result(0, r.reshape(x, shape));
}

void resolve_flatten(Resolver& r) {
  const ValueId x = r.input(0);
  const std::vector<int64_t> shape = r.shape(x);
  const int64_t rank = r.rank(x), asked = r.node().integer("axis");
  const auto axis = static_cast<size_t>(asked == rank ? rank : r.axis(asked, rank));
  r.result(0, r.reshape(x, {product(shape, 0, axis), product(shape, axis, shape.size())}));
}

/// Axes are an attribute ahead of opset 13, then an input; none given: all of extent 1.
void resolve_squeeze(Resolver& r) {
  const ValueId x = r.input(0);
  const std::vector<int64_t> shape = r.shape(x);
  const auto given = r.integers_of("axes", 1);
  std::vector<int64_t> axes, kept;
  if (given) axes = r.axes(*given, r.rank(x));
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) != axes.end();
    if (named && shape[d] != 1)
      r.fail(fmt::format("axis {} has extent {}, only 1 can be squeezed", d, shape[d]));
    if (given ? !named : shape[d] != 1) kept.push_back(shape[d]);
  }
  r.result(0, r.reshape(x, kept));
}

void resolve_unsqueeze(Resolver& r) {
  const ValueId x = r.input(0);
  const auto given = r.integers_of("axes", 1);
  if (!given) r.fail("it has no axes");
  std::vector<int64_t> shape = r.shape(x);
  for (int64_t a : r.axes(*given, r.rank(x) + static_cast<int64_t>(given->size())))
    shape.insert(shape.begin() + a, 1);
  r.result(0, r.reshape(x, shape));
}

void resolve_identity(Resolver& r) { r.result(0, r.input(0)); }

/// Inference, and training that drops nothing: the identity, and a mask of ones. Other training
/// draws random numbers, which a compiled network does not.
void resolve_dropout(Resolver& r) {
  const ValueId x = r.input(0);
  if (r.has_input(2)) {
    const std::vector<int64_t> training = r.needed_integers(2, "whether it trains");
    const double ratio = r.has_input(1) ? r.real(r.input(1)).value_or(1) : 0.5;
    if (training != std::vector<int64_t>{0} && ratio != 0)
      r.fail("training mode drops at random, which is not supported");
  }
  r.result(0, x);
  if (r.wants_output(1)) {
    const DType type = r.opset() < 10 ? r.type(x) : boolean;  // the mask's type changed at 10
    r.result(1, r.emit("Expand", {{"shape", r.shape(x)}}, {r.scalar(type, 1)}));
  }
}

/// The result's shape is the broadcast of both: an extent of 1 in `shape` keeps the input's.
void resolve_expand(Resolver& r) {
  const ValueId x = r.input(0);
  const std::vector<int64_t> asked = r.needed_integers(1, "extents");
  need_extents(r, asked);
  const auto shape = broadcast_shapes(r.shape(x), asked);
  if (!shape)
    r.fail(fmt::format("shape {} does not broadcast to {}", shape_text(r.shape(x)),
                       shape_text(asked)));
  r.result(0, *shape == r.shape(x) ? x : r.emit("Expand", {{"shape", *shape}}, {x}));
}

void resolve_tile(Resolver& r) {
  const ValueId x = r.input(0);
  const std::vector<int64_t> repeats = r.needed_integers(1, "repeats");
  if (static_cast<int>(repeats.size()) != r.rank(x))
    r.fail(fmt::format("{} repeats for {} axes", repeats.size(), r.rank(x)));
  need_extents(r, repeats);
  r.result(0, r.emit("Tile", {{"repeats", repeats}}, {x}));
}

std::string refuse_constant(const Node& node, int64_t) {
  if (node.attributes.size() == 1) return "";
  return fmt::format(
      "{} values (supported: value, value_int, value_ints, value_float or value_floats)",
      node.attributes.size());
}

void resolve_constant(Resolver& r) {
  const Attribute& value = r.node().attributes.begin()->second;
  const auto count = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  Array array;
  if (auto* tensor = std::get_if<Array>(&value)) array = *tensor;
  if (auto* number = std::get_if<int64_t>(&value)) array = from_vector<int64_t>({}, {*number});
  if (auto* real = std::get_if<double>(&value)) array = full(f32, {}, *real);
  if (auto* list = std::get_if<std::vector<int64_t>>(&value))
    array = from_vector<int64_t>({count(*list)}, *list);
  if (auto* list = std::get_if<std::vector<double>>(&value))
    array = from_doubles(f32, {count(*list)}, *list);
  r.result(0, r.constant(array));
}

std::string refuse_constant_of_shape(const Node& node, int64_t) {
  auto found = node.attributes.find("value");
  if (found == node.attributes.end() || std::get<Array>(found->second).size() == 1) return "";
  return fmt::format("attribute value has {} elements, it must have one",
                     std::get<Array>(found->second).size());
}

void resolve_constant_of_shape(Resolver& r) {
  const std::vector<int64_t> shape = r.needed_integers(0, "extents");
  need_extents(r, shape);
  const Array value = r.has("value") ? std::get<Array>(r.node().attributes.at("value")).reshaped({})
                                     : zeros(f32, {});
  r.result(0, r.emit("Expand", {{"shape", shape}}, {r.constant(value)}));
}

/// start, limit and step must be known: they decide the extent.
void resolve_range(Resolver& r) {
  std::vector<double> bounds;
  for (int i = 0; i < 3; ++i) {
    const std::optional<double> bound = r.real(r.input(i));
    if (!bound)
      r.fail("start, limit and step must be constants of one element: they decide the extent");
    bounds.push_back(*bound);
  }
  if (bounds[2] == 0 || !std::isfinite(bounds[2])) r.fail(fmt::format("step is {}", bounds[2]));
  const double count = std::ceil((bounds[1] - bounds[0]) / bounds[2]);
  if (!(count < 1e15))
    r.fail(fmt::format("range {} to {} by {} is too long", bounds[0], bounds[1], bounds[2]));
  const auto extent = static_cast<int64_t>(std::max(0.0, count));
  r.result(0, r.emit("Iota", {{"count", extent}}, {r.input(0), r.input(2)}));
}

}  // namespace tenon
