#pragma once
#include <tenon/compile/compile.h>
#include <tenon/runtime/guard.h>
#include <tenon/te/te.h>

#include <algorithm>
#include <functional>
#include <map>

// Formulas beside plain C++ loops in double, on shapes that divide nothing.

namespace tenon::test {

/// Input values by name.
using Inputs = std::map<std::string, std::vector<double>>;

/// A formula and what it should give.
struct Case {
  std::string name;
  std::vector<Tensor> outputs;
  /// From the inputs to the outputs in order.
  std::function<std::vector<std::vector<double>>(const Inputs&)> want;
  /// Allowed error as a multiple of the largest magnitude of an output: rounding steps times 2^-24.
  double tolerance = 1e-6;
};

/// Every known target whose code runs here.
inline std::vector<Target> runnable_targets() {
  std::vector<Target> targets;
  for (const std::string& name : Target::known_names()) {
    if (Target::parse(name).runs_on(Target::host())) targets.push_back(Target::parse(name));
  }
  return targets;
}

inline Array guarded_copy(const Array& a, GuardAt at) {
  Array g = guarded_array(a.dtype(), a.shape(), at);
  std::copy_n(static_cast<const char*>(a.raw()), a.bytes(), static_cast<char*>(g.raw()));
  return g;
}

/// The kernel's arguments: random inputs and poisoned outputs, each flush against a forbidden page.
struct GuardedArguments {
  std::vector<Array> all;
  Inputs inputs;
  size_t outputs_from = 0;

  GuardedArguments(const Program& program, GuardAt at, uint64_t seed) {
    for (const Param& p : program.params) {
      const Shape shape = const_shape(p.buffer->shape).value();
      if (p.role == ParamRole::output) {
        all.push_back(guarded_array(p.buffer->dtype, shape, at));
      } else {
        all.push_back(guarded_copy(random(p.buffer->dtype, shape, seed++), at));
        inputs[p.buffer->name] = all.back().to_doubles();
        outputs_from = all.size();
      }
    }
  }
};

}  // namespace tenon::test
