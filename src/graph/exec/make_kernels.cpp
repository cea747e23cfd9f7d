#include <tenon/support/error.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "graph/exec/network_state.h"
#include "kernels/templates.h"

namespace tenon {

namespace {

/// {"model":"net","kernel":"conv.3","x0_0":1,"x0_1":3,...}: where the kernel is from, and the
/// extents of its parameters, by which records of one family are compared.
std::string args_json(const std::string& model, const std::string& kernel, const Program& program) {
  nlohmann::ordered_json args = {{"model", model}, {"kernel", kernel}};
  for (const Param& param : program.params) {
    const std::vector<Expr>& shape = param.buffer->shape;
    for (size_t d = 0; d < shape.size(); ++d)
      args[fmt::format("{}_{}", param.buffer->name, d)] = as_int(shape[d]).value_or(-1);
  }
  return args.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

GroupKernel make_kernel(const Network::State& state, const GroupFormula& formula,
                        const Program& program) {
  const Target& target = state.options.target;
  Task task("graph." + formula.name, program, templates_for(program, target), target);
  task.flops = formula.flops;
  return {formula.name, std::move(task), {}, 0, "", {}};
}

/// Position of each kernel when sorted by work over the whole network, ties in order of first use.
std::vector<size_t> by_work(const std::vector<GroupKernel>& kernels) {
  std::vector<size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return kernels[a].task.flops * kernels[a].uses > kernels[b].task.flops * kernels[b].uses;
  });
  return order;
}

}  // namespace

void make_kernels(Network::State& state) {
  std::map<std::string, size_t> known;  // program text -> kernel
  std::vector<GroupKernel> kernels;
  for (const Group& group : state.groups) {
    const GroupFormula formula = group_formula(state.graph, group);
    const Program program = merge_dimensions(formula.program);
    const auto [at, fresh] = known.emplace(print(program), kernels.size());
    if (fresh) {
      kernels.push_back(make_kernel(state, formula, program));
      for (int i : group.nodes)
        kernels.back().nodes.push_back(state.graph.nodes[static_cast<size_t>(i)].name);
    }
    ++kernels[at->second].uses;
    state.steps.push_back({at->second, formula.arguments, {}, {}});
  }
  const std::vector<size_t> order = by_work(kernels);
  std::vector<size_t> place(kernels.size());
  for (size_t k = 0; k < order.size(); ++k) {
    place[order[k]] = k;
    state.kernels.push_back(std::move(kernels[order[k]]));
    GroupKernel& kernel = state.kernels[k];
    kernel.name += fmt::format(".{}", k);
    kernel.task.args = args_json(state.name, kernel.name, kernel.task.program);
  }
  for (Step& step : state.steps) step.kernel = place[step.kernel];
  state.compiled.resize(state.kernels.size());
}

void make_defaults(Network::State& state) {
  state.defaults.resize(state.kernels.size());
  state.pool->for_ranges(
      static_cast<int64_t>(state.kernels.size()), [&](int64_t begin, int64_t end, int32_t) {
        for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k)
          state.defaults[k] = default_schedule(state.kernels[k].task).trace();
      });
}

}  // namespace tenon
