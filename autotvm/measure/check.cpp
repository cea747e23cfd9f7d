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
Comparison compare_floats(const std::string& name, const Array& shape_of, const T* e, const T* a,
                          int64_t size, double factor) {
  double squares = 0, finite = 0;
  for (int64_t i = 0; i < size; ++i) {
    const auto v = static_cast<double>(e[i]);
    if (!std::isfinite(v)) continue;
    squares += v * v;
    ++finite;
  }
  const double rms = finite > 0 ? std::sqrt(squares / finite) : 0;
  Comparison out;
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

Comparison compare_output(const std::string& name, const Array& expected, const Array& actual,
                          double factor) {
  TENON_CHECK(expected.dtype() == actual.dtype() && expected.shape() == actual.shape(),
              "output {} compared with an array of another kind", name);
  switch (expected.dtype()) {
    case f32:
      return compare_floats(name, expected, expected.data<float>(), actual.data<float>(),
                            expected.size(), factor);
    case f64:
      return compare_floats(name, expected, expected.data<double>(), actual.data<double>(),
                            expected.size(), factor);
    case f16:
    case bf16: {
      const std::vector<double> e = expected.to_doubles(), a = actual.to_doubles();
      return compare_floats(name, expected, e.data(), a.data(), expected.size(), factor);
    }
    default:
      return compare_exact(name, expected, actual);
  }
}

}  // namespace tenon
