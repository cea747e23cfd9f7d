#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "graph_testing.h"

namespace tenon {

namespace {

using Index = std::vector<int64_t>;

Index unravel(int64_t flat, const Shape& shape) {
  Index index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return index;
}

int64_t ravel(const Index& index, const Shape& shape) {
  int64_t flat = 0;
  for (size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
  return flat;
}

/// One operand as doubles, read with broadcasting.
struct Operand {
  std::vector<double> elements;
  Shape shape;

  double at(const Index& index) const {
    Index own(shape.size());
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t i = index[index.size() - shape.size() + d];
      own[d] = shape[d] == 1 ? 0 : i;
    }
    return elements[static_cast<size_t>(ravel(own, shape))];
  }
};

using Binary = double (*)(double, double);
using Unary = double (*)(double);

const std::map<std::string, Binary> kBinary = {
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"Max", [](double a, double b) { return a < b || std::isnan(b) ? b : a; }},
    {"Min", [](double a, double b) { return b < a || std::isnan(b) ? b : a; }},
    {"Pow", [](double a, double b) { return std::pow(a, b); }},
    {"FloorMod", [](double a, double b) { return a - b * std::floor(a / b); }},
    {"Equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
    {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
};

const std::map<std::string, Unary> kUnary = {
    {"Identity", [](double a) { return a; }},
    {"Cast", [](double a) { return a; }},
    {"Not", [](double a) { return a == 0 ? 1.0 : 0.0; }},
    {"Relu", [](double a) { return a < 0 ? 0 : a; }},
    {"Neg", [](double a) { return -a; }},
    {"Exp", [](double a) { return std::exp(a); }},
    {"Floor", [](double a) { return std::floor(a); }},
    {"Sqrt", [](double a) { return std::sqrt(a); }},
};

class Plain {
 public:
  Plain(const Graph& graph, const Node& node) : node_(node) {
    for (ValueId id : node.inputs) {
      const Array& array = *graph.value(id).constant;
      inputs_.push_back({array.to_doubles(), array.shape()});
    }
    shape_ = graph.value(node.outputs[0]).shape();
    type_ = *graph.value(node.outputs[0]).type;
  }

  Array run() {
    std::vector<double> elements;
    for (int64_t i = 0; i < element_count(shape_); ++i)
      elements.push_back(element(unravel(i, shape_)));
    return from_doubles(type_, shape_, elements);
  }

 private:
  double in(size_t k, const Index& index) const { return inputs_[k].at(index); }

  double element(const Index& i) {
    const std::string& op = node_.op;
    if (auto found = kUnary.find(op); found != kUnary.end()) return found->second(in(0, i));
    if (auto found = kBinary.find(op); found != kBinary.end())
      return found->second(in(0, i), in(1, i));
    if (op == "Div") return is_float(type_) ? in(0, i) / in(1, i) : std::trunc(in(0, i) / in(1, i));
    if (op == "Where") return in(0, i) != 0 ? in(1, i) : in(2, i);
    if (op == "Reshape") return inputs_[0].elements[static_cast<size_t>(ravel(i, shape_))];
    if (op == "Expand") return in(0, i);
    if (op == "Iota") return in(0, {}) + static_cast<double>(i[0]) * in(1, {});
    if (op == "Slice") return slice(i);
    if (op == "Transpose") return transpose(i);
    if (op == "Concat") return concat(i);
    if (op == "Gather") return gather(i);
    if (op == "Pad") return pad(i);
    if (op == "ReduceSum") return reduce_sum(i);
    if (op == "MatMul") return matmul(i);
    if (op == "Conv") return conv(i);
    if (op == "BatchNormalization") return batch_norm(i);
    FAIL("no plain loop for " << op);
    return 0;
  }

  double slice(Index i) {
    for (size_t d = 0; d < i.size(); ++d)
      i[d] = node_.integers("starts")[d] + i[d] * node_.integers("steps")[d];
    return in(0, i);
  }

  double transpose(const Index& i) {
    Index from(i.size());
    for (size_t d = 0; d < i.size(); ++d)
      from[static_cast<size_t>(node_.integers("perm")[d])] = i[d];
    return in(0, from);
  }

  double concat(Index i) {
    const auto axis = static_cast<size_t>(node_.integer("axis"));
    size_t k = 0;
    while (i[axis] >= inputs_[k].shape[axis]) i[axis] -= inputs_[k++].shape[axis];
    return in(k, i);
  }

  double gather(const Index& i) {
    const auto axis = node_.integer("axis"), rank = static_cast<int64_t>(inputs_[1].shape.size());
    Index from(i.begin(), i.begin() + axis);
    auto at = static_cast<int64_t>(in(1, Index(i.begin() + axis, i.begin() + axis + rank)));
    if (at < 0) at += inputs_[0].shape[static_cast<size_t>(axis)];
    from.push_back(at);
    from.insert(from.end(), i.begin() + axis + rank, i.end());
    return in(0, from);
  }

  double pad(Index i) {
    for (size_t d = 0; d < i.size(); ++d) {
      i[d] -= node_.integers("pads")[d];
      if (i[d] < 0 || i[d] >= inputs_[0].shape[d]) return in(1, {});
    }
    return in(0, i);
  }

  double reduce_sum(const Index& i) {
    const std::vector<int64_t>& axes = node_.integers("axes");
    double sum = 0;
    const Shape& shape = inputs_[0].shape;
    for (int64_t flat = 0; flat < element_count(shape); ++flat) {
      const Index from = unravel(flat, shape);
      Index kept;
      for (size_t d = 0; d < from.size(); ++d) {
        const bool reduced = std::count(axes.begin(), axes.end(), static_cast<int64_t>(d)) > 0;
        if (!reduced) kept.push_back(from[d]);
        if (reduced && node_.integer("keepdims")) kept.push_back(0);
      }
      if (kept == i) sum += in(0, from);
    }
    return sum;
  }

  double matmul(const Index& i) {
    const size_t rank = i.size();
    double sum = 0;
    for (int64_t k = 0; k < inputs_[0].shape.back(); ++k) {
      Index a = i, b = i;
      a[rank - 1] = k;
      b[rank - 2] = k;
      sum += in(0, a) * in(1, b);
    }
    return sum;
  }

  double conv(const Index& i) {  // two spatial axes
    const Shape& w = inputs_[1].shape;
    const int64_t per_group = w[0] / node_.integer("group");
    const auto &strides = node_.integers("strides"), &pads = node_.integers("pads"),
               &dilations = node_.integers("dilations");
    double sum = 0;
    for (int64_t c = 0; c < w[1]; ++c)
      for (int64_t y = 0; y < w[2]; ++y)
        for (int64_t x = 0; x < w[3]; ++x) {
          const Index from{i[0], i[1] / per_group * w[1] + c,
                           i[2] * strides[0] - pads[0] + y * dilations[0],
                           i[3] * strides[1] - pads[1] + x * dilations[1]};
          const Shape& s = inputs_[0].shape;
          const bool inside = from[2] >= 0 && from[2] < s[2] && from[3] >= 0 && from[3] < s[3];
          if (inside) sum += in(0, from) * in(1, {i[1], c, y, x});
        }
    return sum;
  }

  double batch_norm(const Index& i) {
    return (in(0, i) - in(3, i)) / std::sqrt(in(4, i) + node_.real("epsilon")) * in(1, i) +
           in(2, i);
  }

  const Node& node_;
  std::vector<Operand> inputs_;
  Shape shape_;
  DType type_ = f32;
};

}  // namespace

Array evaluate_plainly(const Graph& graph, const Node& node) { return Plain(graph, node).run(); }

}  // namespace tenon
