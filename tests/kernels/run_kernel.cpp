#include "run_kernel.h"

#include <fmt/format.h>
#include <tenon/compile/compile.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/runtime/guard.h>
#include <tenon/support/rng.h>
#include <tenon/support/text.h>

#include <cmath>
#include <cstring>

#include "interp/interp.h"

namespace tenon {
namespace {

std::vector<int64_t> shape_of(const Param& p) { return *const_shape(p.buffer->shape); }

RefArray to_reference(const Array& a) { return RefArray(a.shape(), a.to_doubles()); }

}  // namespace

double program_points(const Program& program) {
  double total = 0;
  for (const StagePath& path : stage_paths(program.body)) {
    double points = 1;
    for (const For* loop : path.loops)
      points *= static_cast<double>(as_int(loop->extent).value_or(1));
    total += points;
  }
  return total;
}

std::vector<RefArray> random_inputs(const Program& program, uint64_t seed) {
  std::vector<RefArray> inputs;
  for (const Param& p : program.params) {
    if (p.role == ParamRole::output) continue;
    Array a = random(p.buffer->dtype, shape_of(p), seed + inputs.size());
    inputs.push_back(to_reference(a));
  }
  return inputs;
}

RefArray run_interpreted(const Program& program, const std::vector<RefArray>& inputs) {
  std::vector<Array> arrays;
  std::vector<HostBuffer> buffers;
  size_t next = 0, first_output = program.params.size();
  for (const Param& p : program.params) {
    if (p.role == ParamRole::output) {
      first_output = std::min(first_output, arrays.size());
      arrays.push_back(full(p.buffer->dtype, shape_of(p), 77));
    } else {
      const RefArray& in = inputs.at(next++);
      arrays.push_back(from_doubles(p.buffer->dtype, shape_of(p), in.values));
    }
    buffers.push_back({arrays.back().raw()});
  }
  interpret(program, buffers);
  return to_reference(arrays[first_output]);
}

RefArray run_compiled(const Program& program, const std::vector<RefArray>& inputs,
                      const Target& target) {
  const Kernel kernel = compile(program, target);
  RefArray result;
  for (GuardAt at : {GuardAt::end, GuardAt::start}) {
    std::vector<Array> arrays;
    size_t next = 0, first_output = program.params.size();
    for (const Param& p : program.params) {
      arrays.push_back(guarded_array(p.buffer->dtype, shape_of(p), at));
      if (p.role == ParamRole::output) {
        first_output = std::min(first_output, arrays.size() - 1);
        continue;
      }
      const Array values = from_doubles(p.buffer->dtype, shape_of(p), inputs.at(next++).values);
      if (values.bytes() > 0)
        std::memcpy(arrays.back().raw(), values.raw(), static_cast<size_t>(values.bytes()));
    }
    kernel.run(kernel.prepacked(arrays), default_pool());
    result = to_reference(arrays[first_output]);
  }
  return result;
}

std::string difference(const RefArray& a, const RefArray& b, double bound) {
  if (a.shape != b.shape)
    return fmt::format("shapes {} and {}", shape_text(a.shape), shape_text(b.shape));
  for (size_t n = 0; n < a.values.size(); ++n) {
    const double x = a.values[n], y = b.values[n];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!(std::fabs(x - y) <= bound * (1 + std::fabs(y))))
      return fmt::format("element {} of {}: {} and {}", n, a.values.size(), x, y);
  }
  return {};
}

}  // namespace tenon
