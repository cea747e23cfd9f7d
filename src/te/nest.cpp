#include "te/nest.h"

#include <fmt/format.h>
#include <tenon/ir/ops.h>

#include <set>

namespace tenon {

Stmt nest(Stage stage) {
  std::vector<Var> loops;
  std::set<std::string> names;
  for (AxisBinding& binding : stage.axes) {
    std::string name = binding.axis.var.name();
    for (int n = 2; !names.insert(name).second; ++n)
      name = fmt::format("{}{}", binding.axis.var.name(), n);
    loops.emplace_back(name);
    binding.value = loops.back();
  }
  const std::vector<AxisBinding> axes = stage.axes;
  Stmt body = make_stmt(std::move(stage));
  for (size_t n = axes.size(); n-- > 0;) {
    For loop;
    loop.var = loops[n];
    loop.min = int_imm(0);
    loop.extent = axes[n].axis.extent;
    loop.kind = axes[n].kind;
    loop.body = body;
    body = make_stmt(std::move(loop));
  }
  return body;
}

}  // namespace tenon
