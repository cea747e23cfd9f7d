#include <tenon/autotvm/verify.h>
#include <tenon/runtime/guard.h>
#include <tenon/support/error.h>

#include <cstring>

#include "autotvm/measure/check.h"

namespace tenon {

std::vector<Array> sample_arguments(const Task& task, uint64_t seed) {
  std::vector<Array> out;
  for (const Parameter& p : constant_parameters(sample_program(task))) {
    if (!p.is_output) {
      out.push_back(task_input(p, out.size(), seed, task.input_ranges));
      continue;
    }
    out.push_back(Array::empty(p.dtype, constant_shape(p)));
    std::memset(out.back().raw(), GuardedBuffer::kPoison, static_cast<size_t>(out.back().bytes()));
  }
  return out;
}

Comparison compare_arguments(const Task& task, std::span<const Array> expected,
                             std::span<const Array> actual) {
  const std::vector<Parameter> parameters = constant_parameters(sample_program(task));
  TENON_CHECK(expected.size() == parameters.size() && actual.size() == parameters.size(),
              "{} takes {} arguments", task.name, parameters.size());
  const double factor = tolerance_factor(sample_program(task));
  Comparison worst;
  for (size_t k = 0; k < parameters.size(); ++k) {
    if (!parameters[k].is_output) continue;
    Comparison c = compare_output(parameters[k].name, expected[k], actual[k], factor);
    if (!c.passed) return c;
    if (c.error > worst.error) worst = std::move(c);
  }
  return worst;
}

}  // namespace tenon
