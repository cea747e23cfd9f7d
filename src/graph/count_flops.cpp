#include <tenon/graph/groups.h>
#include <tenon/ir/visit.h>

namespace tenon {

namespace {

bool is_arithmetic(const Expr& e) {
  if (!is_float(e.dtype())) return false;
  return e.as<Binary>() != nullptr || e.as<Unary>() != nullptr || e.as<Call>() != nullptr;
}

double stage_flops(const Stage& stage) {
  double points = 1, operations = stage.combiner ? static_cast<double>(stage.values.size()) : 0;
  for (const AxisBinding& binding : stage.axes)
    points *= static_cast<double>(as_int(binding.axis.extent).value_or(1));
  for (const Expr& value : stage.values)
    walk(value, [&](const Expr& e) {
      operations += is_arithmetic(e) ? 1 : 0;
      return true;
    });
  return points * operations;
}

}  // namespace

double count_flops(const Program& program) {
  double flops = 0;
  walk(
      program.body,
      [&](const Stmt& s) {
        if (const Stage* stage = s.as<Stage>()) flops += stage_flops(*stage);
        return true;
      },
      [](const Expr&) { return false; });
  return flops;
}

}  // namespace tenon
