#include "graph/onnx/blocked.h"

#include <tenon/support/error.h>

#include <algorithm>

namespace tenon {

namespace {

using Numbers = std::vector<int64_t>;

constexpr int64_t kReorderAdds = 128, kImageChannels = 4;

int64_t blocks_of(int64_t channels, int64_t block) { return (channels + block - 1) / block; }

/// Of one or two spatial dimensions.
bool is_image(const TensorInfo& x) {
  return x.type == f32 && (x.shape.size() == 3 || x.shape.size() == 4);
}

int64_t product(const Numbers& numbers, size_t from = 0) {
  int64_t out = 1;
  for (size_t n = from; n < numbers.size(); ++n) out *= numbers[n];
  return out;
}

/// Convolutions whose channels fill at least half of the lanes; few input channels are read as they
/// are.
std::optional<BlockedForm> blocked_conv(const Node& node, const Infos& in, int64_t block) {
  const TensorInfo &x = in.at(0), &w = in.at(1);
  if (!is_image(x)) return std::nullopt;
  const int64_t groups = node.integer("group"), c_in = x.shape[1], c_out = w.shape[0];
  const int64_t in_each = w.shape[1], out_each = c_out / groups;
  const bool depthwise = in_each == 1 && out_each == 1;
  const bool whole = groups == 1 || (in_each % block == 0 && out_each % block == 0);
  if (c_out * 2 < block || !(depthwise || whole)) return std::nullopt;
  const bool plain = c_in * 2 < block || c_in <= kImageChannels;
  // Reordering X costs about as much as so many multiply-adds an element.
  const int64_t adds = c_out * product(w.shape, 2) / product(node.integers("strides"));
  const bool pays = plain || (!depthwise && adds >= kReorderAdds);
  const bool full = blocks_of(c_out, block) * block * 8 <= c_out * 9;  // few lanes of no channel
  BlockedForm form{node, {!plain, false}, pays && full};
  form.node.op = "BlockedConv";
  form.node.attributes["block"] = block;
  return form;
}

/// Two-dimensional transposed convolutions without groups and dilations whose channels fill at
/// least half of the lanes.
std::optional<BlockedForm> blocked_conv_transpose(const Node& node, const Infos& in,
                                                  int64_t block) {
  const TensorInfo &x = in.at(0), &w = in.at(1);
  if (!is_image(x) || x.shape.size() != 4 || node.integer("group") != 1) return std::nullopt;
  const Numbers& dilations = node.integers("dilations");
  const bool dense =
      std::all_of(dilations.begin(), dilations.end(), [](int64_t d) { return d == 1; });
  if (!dense || w.shape[1] * 2 < block || w.shape[0] * 2 < block) return std::nullopt;
  BlockedForm form{node, {true, false}, true};
  form.node.op = "BlockedConvTranspose";
  form.node.attributes["block"] = block;
  return form;
}

/// Windows over [n, c/block, h, w, block] are those of one more spatial dimension, the lanes.
std::optional<BlockedForm> blocked_pool(const Node& node, const Infos& in, int64_t) {
  if (!is_image(in.at(0))) return std::nullopt;
  BlockedForm form{node, {true}};
  for (const char* name : {"kernel", "strides", "dilations"}) {
    Numbers numbers = node.integers(name);
    numbers.push_back(1);
    form.node.attributes[name] = numbers;
  }
  Numbers pads = node.integers("pads");
  pads.insert(pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2), 0);
  pads.push_back(0);
  form.node.attributes["pads"] = pads;
  return form;
}

/// Over the image alone, dimensions kept.
std::optional<BlockedForm> blocked_reduce(const Node& node, const Infos& in, int64_t) {
  const Numbers& axes = node.integers("axes");
  const bool image = !axes.empty() &&
                     std::all_of(axes.begin(), axes.end(), [](int64_t axis) { return axis >= 2; });
  if (!is_image(in.at(0)) || !image || node.integer("keepdims") == 0) return std::nullopt;
  return BlockedForm{node, {true}};
}

/// Along channels, where all parts but the last are whole blocks; along the image.
std::optional<BlockedForm> blocked_concat(const Node& node, const Infos& in, int64_t block) {
  const int64_t axis = node.integer("axis");
  if (axis < 1) return std::nullopt;
  for (size_t n = 0; n < in.size(); ++n) {
    const bool fits = axis != 1 || n + 1 == in.size() || in[n].shape.at(1) % block == 0;
    if (!is_image(in[n]) || !fits) return std::nullopt;
  }
  return BlockedForm{node, std::vector<bool>(in.size(), true)};
}

/// [n, c, image..] -> [n, ceil(c/block), image.., block], and back.
TensorInfo in_blocks(TensorInfo x, int64_t block) {
  x.shape.at(1) = blocks_of(x.shape.at(1), block);
  x.shape.push_back(block);
  return x;
}

TensorInfo plain(TensorInfo x, int64_t channels) {
  x.shape.at(1) = channels;
  x.shape.pop_back();
  return x;
}

}  // namespace

TensorInfo infer_block_channels(const Node& node, const Infos& in) {
  const TensorInfo& x = in.at(0);
  const int64_t block = node.integer("block");
  TENON_CHECK(x.shape.size() >= 3 && block > 0, "BlockChannels of rank {} by {}", x.shape.size(),
              block);
  return in_blocks(x, block);
}

TensorInfo infer_unblock_channels(const Node& node, const Infos& in) {
  const TensorInfo& x = in.at(0);
  TENON_CHECK(x.shape.size() >= 4, "UnblockChannels of rank {}", x.shape.size());
  return plain(x, node.integer("channels"));
}

TensorInfo infer_blocked_conv(const Node& node, const Infos& in) {
  TensorInfo x = in.at(0);
  const int64_t channels = in.at(1).shape.at(1) * node.integer("group");
  if (x.shape.size() > in[1].shape.size()) x = plain(x, channels);
  return in_blocks(infer_conv(node, {x, in[1]}), node.integer("block"));
}

TensorInfo infer_blocked_conv_transpose(const Node& node, const Infos& in) {
  const TensorInfo x = plain(in.at(0), in.at(1).shape.at(0));
  return in_blocks(infer_conv_transpose(node, {x, in[1]}), node.integer("block"));
}

BlockedRule blocked_form_of(const Operator& row) {
  if (row.op == "Conv") return blocked_conv;
  if (row.op == "ConvTranspose") return blocked_conv_transpose;
  if (row.op == "MaxPool" || row.op == "AveragePool") return blocked_pool;
  if (row.op == "Concat") return blocked_concat;
  const bool reduces = row.op.substr(0, 6) == "Reduce";
  return reduces ? blocked_reduce : nullptr;
}

ValueId append_node(Graph& graph, std::vector<Node>& nodes, Node node, std::vector<ValueId> inputs,
                    const std::string& name) {
  node.inputs = std::move(inputs);
  const TensorInfo info = operator_of(node).infer(node, input_infos(graph, node));
  Value value;
  value.name = name;
  value.type = info.type;
  value.dims = Dims(info.shape.begin(), info.shape.end());
  const ValueId id = graph.add_value(std::move(value));
  node.outputs = {id};
  nodes.push_back(std::move(node));
  return id;
}

ValueId append_block_channels(Graph& graph, std::vector<Node>& nodes, ValueId x, size_t rank,
                              int64_t block) {
  const std::string name = graph.value(x).name + ".blocked";
  Numbers shape = graph.value(x).shape();
  if (shape.size() < rank) {
    shape.insert(shape.begin(), 1);
    x = append_node(graph, nodes, {name + ".shape", "Reshape", {{"shape", shape}}, {}, {}}, {x},
                    name + ".shape");
  }
  return append_node(graph, nodes, {name, "BlockChannels", {{"block", block}}, {}, {}}, {x}, name);
}

void append_unblock_channels(Graph& graph, std::vector<Node>& nodes, ValueId blocked,
                             ValueId plain) {
  const Value& value = graph.value(plain);
  nodes.push_back({value.name + ".plain",
                   "UnblockChannels",
                   {{"channels", value.shape().at(1)}},
                   {blocked},
                   {plain}});
}

}  // namespace tenon
