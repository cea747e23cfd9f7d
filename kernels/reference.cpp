#include "kernels/reference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>

namespace tenon {
namespace {

using Shape = std::vector<int64_t>;

int64_t at_or(const Shape& numbers, size_t d, int64_t fallback) {
  return numbers.empty() ? fallback : numbers[d];
}

/// Position of tap k of window o in dimension d of the input; may lie outside.
int64_t tap(int64_t o, int64_t k, int64_t stride, int64_t dilation, int64_t pad) {
  return o * stride + k * dilation - pad;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double relu(double x) { return std::isnan(x) ? x : std::max(x, 0.0); }
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

const std::map<std::string, std::function<double(double)>, std::less<>>& unary_functions() {
  static const std::map<std::string, std::function<double(double)>, std::less<>> functions = {
      {"identity", [](double x) { return x; }},
      {"neg", [](double x) { return -x; }},
      {"abs", [](double x) { return std::fabs(x); }},
      {"sign", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : x; }},
      {"square", [](double x) { return x * x; }},
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"round", [](double x) { return std::nearbyint(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"reciprocal", [](double x) { return 1 / x; }},
      {"exp", [](double x) { return std::exp(x); }},
      {"log", [](double x) { return std::log(x); }},
      {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},
      {"tan", [](double x) { return std::tan(x); }},
      {"asin", [](double x) { return std::asin(x); }},
      {"acos", [](double x) { return std::acos(x); }},
      {"atan", [](double x) { return std::atan(x); }},
      {"sinh", [](double x) { return std::sinh(x); }},
      {"cosh", [](double x) { return std::cosh(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"asinh", [](double x) { return std::asinh(x); }},
      {"acosh", [](double x) { return std::acosh(x); }},
      {"atanh", [](double x) { return std::atanh(x); }},
      {"erf", [](double x) { return std::erf(x); }},
      {"sigmoid", sigmoid},
      {"silu", [](double x) { return x * sigmoid(x); }},
      {"relu", relu},
      {"leaky_relu", [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"thresholded_relu", [](double x) { return x > 1 ? x : 0; }},
      {"elu", [](double x) { return x > 0 ? x : std::expm1(x); }},
      {"celu", [](double x) { return x > 0 ? x : std::expm1(x); }},
      {"selu",
       [](double x) {
         return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
       }},
      {"softplus", softplus},
      {"softsign", [](double x) { return x / (1 + std::fabs(x)); }},
      {"mish", [](double x) { return x * std::tanh(softplus(x)); }},
      {"gelu", [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
      {"hard_sigmoid", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }},
      {"hard_swish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }},
      {"shrink", [](double x) { return x < -0.5  ? x
                                       : x > 0.5 ? x
                                                 : 0; }},
      {"is_nan", [](double x) { return std::isnan(x) ? 1.0 : 0.0; }},
      {"is_inf", [](double x) { return std::isinf(x) ? 1.0 : 0.0; }},
      {"not", [](double x) { return x == 0 ? 1.0 : 0.0; }},
      {"bit_not", [](double x) { return -x - 1; }},
  };
  return functions;
}

/// Start, step and end of a reduction over doubles.
struct Folding {
  double start;
  double (*step)(double, double);
};

Folding folding(std::string_view op) {
  const double inf = std::numeric_limits<double>::infinity();
  if (op == "max") return {-inf, [](double a, double x) { return std::isnan(x) || x > a ? x : a; }};
  if (op == "min") return {inf, [](double a, double x) { return std::isnan(x) || x < a ? x : a; }};
  if (op == "prod") return {1, [](double a, double x) { return a * x; }};
  if (op == "l1") return {0, [](double a, double x) { return a + std::fabs(x); }};
  if (op == "l2" || op == "sum_square") return {0, [](double a, double x) { return a + x * x; }};
  if (op == "log_sum_exp") return {0, [](double a, double x) { return a + std::exp(x); }};
  return {0, [](double a, double x) { return a + x; }};
}

bool contains(const Shape& axes, size_t d, size_t rank) {
  for (int64_t axis : axes)
    if (static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis) == d) return true;
  return false;
}

}  // namespace

RefArray::RefArray(std::vector<int64_t> extents) : shape(std::move(extents)) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  values.assign(static_cast<size_t>(count), 0.0);
}

int64_t RefArray::offset(const std::vector<int64_t>& at) const {
  int64_t index = 0;
  for (size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + at[d];
  return index;
}

RefArray ref_matmul(const RefArray& a, const RefArray& b) {
  const bool batched = a.shape.size() == 3;
  const int64_t batch = batched ? a.shape[0] : 1, m = a.shape[a.shape.size() - 2],
                k = a.shape.back(), n = b.shape.back();
  RefArray c(batched ? Shape{batch, m, n} : Shape{m, n});
  for (int64_t t = 0; t < batch; ++t)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double total = 0;
        for (int64_t r = 0; r < k; ++r)
          total += a.values[static_cast<size_t>((t * m + i) * k + r)] *
                   b.values[static_cast<size_t>((t * k + r) * n + j)];
        c.values[static_cast<size_t>((t * m + i) * n + j)] = total;
      }
  return c;
}

RefArray ref_conv(const RefArray& x, const RefArray& w, const RefArray* bias,
                  const ConvOptions& options) {
  const size_t spatial = x.shape.size() - 2;
  const int64_t out_each = w.shape[0] / options.groups, in_each = w.shape[1];
  Shape shape = {x.shape[0], w.shape[0]};
  Shape inner = {in_each};
  for (size_t d = 0; d < spatial; ++d) {
    inner.push_back(w.shape[2 + d]);
    shape.push_back(window_extent(x.shape[2 + d], w.shape[2 + d], at_or(options.strides, d, 1),
                                  at_or(options.dilations, d, 1),
                                  at_or(options.pads_begin, d, 0) + at_or(options.pads_end, d, 0)));
  }
  RefArray y(shape);
  each_point(shape, [&](const Shape& o) {
    double total = bias ? bias->values[static_cast<size_t>(o[1])] : 0;
    each_point(inner, [&](const Shape& k) {
      Shape from = {o[0], o[1] / out_each * in_each + k[0]}, tap_at = {o[1], k[0]};
      for (size_t d = 0; d < spatial; ++d) {
        from.push_back(tap(o[2 + d], k[1 + d], at_or(options.strides, d, 1),
                           at_or(options.dilations, d, 1), at_or(options.pads_begin, d, 0)));
        if (from.back() < 0 || from.back() >= x.shape[2 + d]) return;
        tap_at.push_back(k[1 + d]);
      }
      total += x[from] * w[tap_at];
    });
    y[o] = total;
  });
  return y;
}

RefArray ref_blocked(const RefArray& x, int64_t block) {
  const Shape& d = x.shape;
  RefArray y({d[0], (d[1] + block - 1) / block, d[2], d[3], block});
  each_point(d, [&](const Shape& at) {
    y[{at[0], at[1] / block, at[2], at[3], at[1] % block}] = x[at];
  });
  return y;
}

RefArray ref_unblocked(const RefArray& x, int64_t channels) {
  const Shape& d = x.shape;
  RefArray y({d[0], channels, d[2], d[3]});
  each_point(y.shape, [&](const Shape& at) {
    y[at] = x[{at[0], at[1] / d[4], at[2], at[3], at[1] % d[4]}];
  });
  return y;
}

RefArray ref_pool(std::string_view op, const RefArray& x, const PoolOptions& options) {
  const size_t spatial = x.shape.size() - 2;
  Shape shape = {x.shape[0], x.shape[1]};
  for (size_t d = 0; d < spatial; ++d)
    shape.push_back(pool_extent(x.shape[2 + d], options.kernel[d], at_or(options.strides, d, 1),
                                at_or(options.dilations, d, 1), at_or(options.pads_begin, d, 0),
                                at_or(options.pads_end, d, 0), options.ceil_mode));
  RefArray y(shape);
  each_point(shape, [&](const Shape& o) {
    double best = -std::numeric_limits<double>::infinity(), total = 0;
    int64_t counted = 0;
    each_point(options.kernel, [&](const Shape& k) {
      Shape from = {o[0], o[1]};
      bool inside = true, padded = true;
      for (size_t d = 0; d < spatial; ++d) {
        const int64_t extent = x.shape[2 + d];
        from.push_back(tap(o[2 + d], k[d], at_or(options.strides, d, 1),
                           at_or(options.dilations, d, 1), at_or(options.pads_begin, d, 0)));
        inside = inside && from.back() >= 0 && from.back() < extent;
        padded = padded && from.back() < extent + at_or(options.pads_end, d, 0);
      }
      counted += options.count_include_pad ? padded : inside;
      if (!inside) return;
      total += x[from];
      if (x[from] > best || std::isnan(x[from])) best = x[from];
    });
    y[o] = op == "max" ? best : total / static_cast<double>(counted);
  });
  return y;
}

RefArray ref_reduce(std::string_view op, const RefArray& x, const std::vector<int64_t>& axes,
                    bool keep) {
  const size_t rank = x.shape.size();
  Shape kept, shown;
  double count = 1;
  for (size_t d = 0; d < rank; ++d) {
    const bool over = contains(axes, d, rank);
    kept.push_back(over ? 1 : x.shape[d]);
    if (!over || keep) shown.push_back(kept.back());
    if (over) count *= static_cast<double>(x.shape[d]);
  }
  RefArray y(kept);
  const Folding f = folding(op);
  std::fill(y.values.begin(), y.values.end(), f.start);
  each_point(x.shape, [&](const Shape& at) {
    Shape to = at;
    for (size_t d = 0; d < rank; ++d)
      if (kept[d] == 1) to[d] = 0;
    y[to] = f.step(y[to], x[at]);
  });
  for (double& v : y.values) {
    if (op == "mean") v /= count;
    if (op == "l2") v = std::sqrt(v);
    if (op == "log_sum" || op == "log_sum_exp") v = std::log(v);
  }
  y.shape = shown;
  return y;
}

RefArray ref_arg(bool maximum, const RefArray& x, int64_t axis) {
  const size_t d =
      static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.shape.size()) : axis);
  Shape rest = x.shape;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(d));
  RefArray y(rest);
  each_point(rest, [&](const Shape& at) {
    Shape from = at;
    from.insert(from.begin() + static_cast<std::ptrdiff_t>(d), 0);
    double best = x[from];
    for (int64_t n = 1; n < x.shape[d]; ++n) {
      from[d] = n;
      if (maximum ? x[from] > best : x[from] < best) {
        best = x[from];
        y[at] = static_cast<double>(n);
      }
    }
  });
  return y;
}

RefArray ref_softmax(const RefArray& x, int64_t axis, bool logarithm) {
  RefArray top = ref_reduce("max", x, {axis}, true);
  RefArray y = x;
  each_point(x.shape, [&](const Shape& at) {
    Shape row = at;
    for (size_t d = 0; d < row.size(); ++d)
      if (top.shape[d] == 1) row[d] = 0;
    y[at] = x[at] - top[row];
  });
  RefArray total = ref_reduce("log_sum_exp", y, {axis}, true);
  each_point(x.shape, [&](const Shape& at) {
    Shape row = at;
    for (size_t d = 0; d < row.size(); ++d)
      if (total.shape[d] == 1) row[d] = 0;
    y[at] -= total[row];
    if (!logarithm) y[at] = std::exp(y[at]);
  });
  return y;
}

RefArray ref_attention(const RefArray& q, const RefArray& k, const RefArray& v,
                       const RefArray* mask, double scale, bool causal) {
  RefArray scores = ref_matmul(q, ref_transpose(k, {0, 2, 1}));
  const int64_t m = scores.shape[1], n = scores.shape[2];
  each_point(scores.shape, [&](const Shape& at) {
    scores[at] *= scale;
    if (mask) scores[at] += (*mask)[{at[1], at[2]}];
    if (causal && at[2] > at[1] + n - m) scores[at] = -std::numeric_limits<double>::infinity();
  });
  return ref_matmul(ref_softmax(scores, 2, false), v);
}

RefArray ref_layer_norm(const RefArray& x, const RefArray& scale, const RefArray& bias,
                        double epsilon) {
  RefArray y = x;
  const size_t columns = static_cast<size_t>(x.shape.back());
  for (size_t row = 0; row + columns <= x.values.size() && columns > 0; row += columns) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < columns; ++c) mean += x.values[row + c] / static_cast<double>(columns);
    for (size_t c = 0; c < columns; ++c)
      variance += std::pow(x.values[row + c] - mean, 2) / static_cast<double>(columns);
    for (size_t c = 0; c < columns; ++c)
      y.values[row + c] =
          (x.values[row + c] - mean) / std::sqrt(variance + epsilon) * scale.values[c] +
          bias.values[c];
  }
  return y;
}

RefArray ref_batch_norm(const RefArray& x, const RefArray& scale, const RefArray& bias,
                        const RefArray& mean, const RefArray& variance, double epsilon) {
  RefArray y = x;
  each_point(x.shape, [&](const Shape& at) {
    const size_t c = static_cast<size_t>(at[1]);
    y[at] = (x[at] - mean.values[c]) / std::sqrt(variance.values[c] + epsilon) * scale.values[c] +
            bias.values[c];
  });
  return y;
}

double ref_unary(std::string_view op, double x) {
  const auto found = unary_functions().find(op);
  return found == unary_functions().end() ? std::numeric_limits<double>::quiet_NaN()
                                          : found->second(x);
}

double ref_binary(std::string_view op, double a, double b, bool floats) {
  const auto whole = [](double v) { return static_cast<int64_t>(v); };
  if (op == "add") return a + b;
  if (op == "sub") return a - b;
  if (op == "mul") return a * b;
  if (op == "div") return floats ? a / b : static_cast<double>(whole(a) / whole(b));
  if (op == "mod") return a - b * std::floor(a / b);
  if (op == "pow") return std::pow(a, b);
  if (op == "min") return std::isnan(a) || a < b ? a : b;
  if (op == "max") return std::isnan(a) || a > b ? a : b;
  if (op == "prelu") return a < 0 ? a * b : a;
  if (op == "equal") return a == b;
  if (op == "not_equal" || op == "xor") return a != b;
  if (op == "less") return a < b;
  if (op == "less_equal") return a <= b;
  if (op == "greater") return a > b;
  if (op == "greater_equal") return a >= b;
  if (op == "and") return a != 0 && b != 0;
  if (op == "or") return a != 0 || b != 0;
  if (op == "bit_and") return static_cast<double>(whole(a) & whole(b));
  if (op == "bit_or") return static_cast<double>(whole(a) | whole(b));
  if (op == "bit_xor") return static_cast<double>(whole(a) ^ whole(b));
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tenon
