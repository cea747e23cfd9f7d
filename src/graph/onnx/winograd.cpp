#include "graph/onnx/winograd.h"

#include <tenon/support/error.h>

#include <algorithm>

#include "kernels/winograd.h"
#include "schedule/composites/cost.h"

namespace tenon {

namespace {

using Numbers = std::vector<int64_t>;

bool all_are(const Numbers& numbers, int64_t value) {
  return std::all_of(numbers.begin(), numbers.end(), [&](int64_t n) { return n == value; });
}

/// Rows and columns of the result.
Numbers pixels(const Node& node, const TensorInfo& x) {
  const Numbers& pads = node.integers("pads");
  return {window_extent(x.shape.at(2), 3, 1, 1, pads[0] + pads[2]),
          window_extent(x.shape.at(3), 3, 1, 1, pads[1] + pads[3])};
}

}  // namespace

TensorInfo infer_winograd_conv(const Node& node, const Infos& in) {
  const TensorInfo &x = in.at(0), &u = in.at(1);
  TENON_CHECK(x.shape.size() == 5 && u.shape.size() == 5, "WinogradConv of ranks {} and {}",
              x.shape.size(), u.shape.size());
  const Numbers image = pixels(node, x);
  return {x.type, {x.shape[0], u.shape[2], image[0], image[1], u.shape[4]}};
}

TensorInfo infer_winograd_weights(const Node& node, const Infos& in) {
  const TensorInfo& w = in.at(0);
  const int64_t t = node.integer("tile") + 2, block = node.integer("block");
  TENON_CHECK(w.shape.size() == 4 && block > 0, "WinogradWeights of rank {} by {}", w.shape.size(),
              block);
  return {w.type, {t, t, ceil_div(w.shape[0], block), w.shape[1], block}};
}

std::optional<TransformedForm> winograd_form(const Node& node, const Infos& in) {
  const TensorInfo &x = in.at(0), &w = in.at(1);
  const bool fits = x.type == f32 && x.shape.size() == 5 && w.shape[2] == 3 && w.shape[3] == 3 &&
                    node.integer("group") == 1 && all_are(node.integers("strides"), 1) &&
                    all_are(node.integers("dilations"), 1);
  if (!fits) return std::nullopt;
  const Numbers image = pixels(node, x);
  const int64_t tile = winograd_tile(w.shape[1], w.shape[0], image[0], image[1]);
  if (tile == 0) return std::nullopt;
  TransformedForm form;
  form.weights.op = "WinogradWeights";
  form.weights.attributes = {{"tile", tile}, {"block", node.integer("block")}};
  form.node.name = node.name;
  form.node.op = "WinogradConv";
  form.node.attributes = {{"pads", node.integers("pads")}, {"channels", w.shape[0]}};
  return form;
}

}  // namespace tenon
