#include "autotvm/measure/check.h"

#include <tenon/ir/bind_symbols.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/support/hash.h>
#include <tenon/support/rng.h>
#include <tenon/support/text.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace tenon {
namespace {

double rounding_unit(DType t) {
  switch (t) {
    case f16:
      return 0x1p-11;
    case bf16:
      return 0x1p-8;
    case f32:
      return 0x1p-24;
    case f64:
      return 0x1p-53;
    default:
      return 0;
  }
}

double extent_of(const Axis& axis) {
  const std::optional<int64_t> extent = as_int(axis.extent);
  return extent ? static_cast<double>(*extent) : 1;
}

/// [2,3,5] position 17 -> "[1,0,2]"
std::string element_text(const Shape& shape, int64_t position) {
  std::vector<std::string> out(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    out[d] = std::to_string(position % shape[d]);
    position /= shape[d];
  }
  return "[" + join(out, ",") + "]";
}

Comparison failure(const std::string& name, const Array& a, int64_t at, double error,
                   const std::string& is, const std::string& expected) {
  return {false, error,
          fmt::format("{}{} is {}, expected {}", name, element_text(a.shape(), at), is, expected)};
}

Comparison compare_exact(const std::string& name, const Array& expected, const Array& actual) {
  const auto bytes = static_cast<size_t>(byte_size(expected.dtype()));
  const char *e = static_cast<const char*>(expected.raw()),
             *a = static_cast<const char*>(actual.raw());
  if (expected.bytes() == 0 || std::memcmp(e, a, static_cast<size_t>(expected.bytes())) == 0)
    return {};
  for (int64_t i = 0; i < expected.size(); ++i) {
    if (std::memcmp(e + i * static_cast<int64_t>(bytes), a + i * static_cast<int64_t>(bytes),
                    bytes) == 0)
      continue;
    auto text = [i](const Array& array) {
      return round_trip(array.view(i, {1}).to_doubles().front());
    };
    return failure(name, expected, i, std::numeric_limits<double>::quiet_NaN(), text(actual),
                   text(expected));
  }
  return {};
}

/// Not a number on either side, or infinite: equal or wrong.
bool is_special(double e, double a) { return !std::isfinite(e) || !std::isfinite(a); }
bool same_special(double e, double a) { return e == a || (std::isnan(e) && std::isnan(a)); }

template <class T>
double rms_of(const T* e, int64_t size) {
  double squares = 0, finite = 0;
  for (int64_t i = 0; i < size; ++i) {
    const auto v = static_cast<double>(e[i]);
    if (!std::isfinite(v)) continue;
    squares += v * v;
    ++finite;
  }
  return finite > 0 ? std::sqrt(squares / finite) : 0;
}

/// The largest |a - e| / max(|e|, rms), in lanes so that it takes as long as reading memory does;
/// nothing where an element is not finite, or that is more than `limit`: then each counts by
/// itself.
template <class T>
std::optional<double> quick_error(const T* e, const T* a, int64_t size, double limit, double rms) {
  constexpr int64_t kLanes = 16;
  const T floor = std::max(static_cast<T>(rms), std::numeric_limits<T>::min());
  T worst[kLanes] = {};
  bool sane = true;
  int64_t i = 0;
  auto take = [&](int64_t at, T& most) {
    const T size_e = std::abs(e[at]);
    const T error = std::abs(a[at] - e[at]) / (size_e > floor ? size_e : floor);
    most = error > most ? error : most;
    return error <= std::numeric_limits<T>::max();  // no NaN, no infinity
  };
  for (; i + kLanes <= size; i += kLanes) {
    bool all = true;
    for (int64_t l = 0; l < kLanes; ++l) all &= take(i + l, worst[l]);
    sane &= all;
  }
  for (; i < size; ++i) sane &= take(i, worst[0]);
  const auto error = static_cast<double>(*std::max_element(worst, worst + kLanes));
  return sane && error <= limit ? std::optional(error) : std::nullopt;
}

template <class T>
Comparison compare_floats(const std::string& name, const Array& shape_of, const T* e, const T* a,
                          int64_t size, double factor, double rms) {
  constexpr double kSurely = 0.999;  // the lanes round
  Comparison out;
  if (const auto error = quick_error(e, a, size, kSurely * factor, rms)) {
    out.error = *error / factor;
    return out;
  }
  int64_t worst = -1;
  for (int64_t i = 0; i < size; ++i) {
    const auto x = static_cast<double>(e[i]), y = static_cast<double>(a[i]);
    if (is_special(x, y)) {
      if (same_special(x, y)) continue;
      return failure(name, shape_of, i, std::numeric_limits<double>::quiet_NaN(), round_trip(y),
                     round_trip(x));
    }
    const double difference = std::abs(y - x);
    if (difference == 0) continue;
    const double error = difference / (factor * std::max(std::abs(x), rms));
    if (error > out.error) {
      out.error = error;
      worst = i;
    }
  }
  if (out.error <= 1) return out;
  return failure(name, shape_of, worst, out.error, round_trip(static_cast<double>(a[worst])),
                 fmt::format("{} (off by {:.3g} times what rounding allows)",
                             round_trip(static_cast<double>(e[worst])), out.error));
}

}  // namespace

Shape constant_shape(const Parameter& parameter) {
  Shape shape;
  for (const Extent& e : parameter.shape) {
    TENON_CHECK(e.symbol < 0, "{} has a symbolic extent", parameter.name);
    shape.push_back(e.value);
  }
  return shape;
}

Array task_input(const Parameter& parameter, size_t position, uint64_t seed,
                 const InputRanges& ranges) {
  const Shape shape = constant_shape(parameter);
  const uint64_t own_seed = hash_combine(seed, position);
  auto range = ranges.find(parameter.name);
  if (range == ranges.end()) return random(parameter.dtype, shape, own_seed);
  Rng rng(own_seed);
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (double& v : values)
    v = static_cast<double>(rng.between(range->second.first, range->second.second));
  return from_doubles(parameter.dtype, shape, values);
}

Program sample_program(const Task& task) {
  for (const Var& v : task.program.symbols) {
    if (task.sample_sizes.count(v.name())) continue;
    throw UserError(
        fmt::format("{}: the symbolic extent \"{}\" has no sample size; schedules are measured at "
                    "numbers\n  try: task.sample_sizes[\"{}\"] = {}",
                    task.name, v.name(), v.name(), v.range()->high));
  }
  return bind_symbols(task.program, task.sample_sizes);
}

std::vector<Parameter> constant_parameters(const Program& program) {
  std::vector<Parameter> out;
  for (const Param& p : program.params) {
    const std::optional<std::vector<int64_t>> shape = const_shape(p.buffer->shape);
    if (!shape) {
      throw UserError(fmt::format(
          "{}: {} has a symbolic extent; measuring needs numbers\n  try: Task::sample_sizes",
          program.name, p.buffer->name));
    }
    Parameter parameter{p.buffer->name, p.buffer->dtype, {}, p.role == ParamRole::output};
    for (int64_t extent : *shape) parameter.shape.emplace_back(extent);
    out.push_back(std::move(parameter));
  }
  return out;
}

std::vector<int64_t> argument_offsets(const std::vector<Parameter>& parameters) {
  constexpr int64_t kLine = 64;
  std::vector<int64_t> out = {0};
  for (const Parameter& p : parameters) {
    const int64_t bytes = element_count(constant_shape(p)) * byte_size(p.dtype);
    out.push_back(out.back() + (bytes + kLine - 1) / kLine * kLine);
  }
  return out;
}

double points_of(const Program& program) {
  double points = 0;
  for (const StagePath& path : stage_paths(program.body)) {
    double own = 1;
    for (const AxisBinding& binding : path.stage->axes) own *= extent_of(binding.axis);
    points += own;
  }
  return points;
}

double tolerance_factor(const Program& unscheduled) {
  double joined = 0, unit = 0;
  for (const Param& p : unscheduled.params) unit = std::max(unit, rounding_unit(p.buffer->dtype));
  for (const StagePath& path : stage_paths(unscheduled.body)) {
    double own = 1;
    for (const AxisBinding& binding : path.stage->axes) {
      if (binding.kind != AxisKind::spatial) own *= extent_of(binding.axis);
    }
    joined += own;
    for (const Buffer& b : path.stage->outputs) unit = std::max(unit, rounding_unit(b->dtype));
  }
  return 32 * unit * std::sqrt(16 + joined);
}

double output_rms(const Array& expected) {
  if (expected.dtype() == f32) return rms_of(expected.data<float>(), expected.size());
  if (!is_float(expected.dtype())) return 0;
  const std::vector<double> e = expected.to_doubles();
  return rms_of(e.data(), expected.size());
}

Comparison compare_output(const std::string& name, const Array& expected, const Array& actual,
                          double factor, double rms) {
  TENON_CHECK(expected.dtype() == actual.dtype() && expected.shape() == actual.shape(),
              "output {} compared with an array of another kind", name);
  switch (expected.dtype()) {
    case f32:
      return compare_floats(name, expected, expected.data<float>(), actual.data<float>(),
                            expected.size(), factor, rms);
    case f64:
      return compare_floats(name, expected, expected.data<double>(), actual.data<double>(),
                            expected.size(), factor, rms);
    case f16:
    case bf16: {
      const std::vector<double> e = expected.to_doubles(), a = actual.to_doubles();
      return compare_floats(name, expected, e.data(), a.data(), expected.size(), factor, rms);
    }
    default:
      return compare_exact(name, expected, actual);
  }
}

}  // namespace tenon
