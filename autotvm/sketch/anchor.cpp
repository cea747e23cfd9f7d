#include "autotvm/sketch/anchor.h"

#include <tenon/ir/ops.h>

#include <algorithm>
#include <cstdlib>

namespace tenon {
namespace {

OperandDim dim_of_index(const Expr& index, const std::vector<Var>& vars) {
  OperandDim out;
  for (size_t n = 0; n < vars.size(); ++n) {
    if (!uses_var(index, vars[n])) continue;
    out.axes.push_back(n);
    out.steps.push_back(step_along(index, vars[n]));
  }
  return out;
}

/// Both loads' axes; another index along one dimension makes it a window.
void join(Operand& operand, const Load& load, const std::vector<Var>& vars) {
  for (size_t d = 0; d < load.indices.size(); ++d) {
    const OperandDim more = dim_of_index(load.indices[d], vars);
    OperandDim& dim = operand.dims[d];
    for (size_t n = 0; n < more.axes.size(); ++n) {
      const auto known = std::find(dim.axes.begin(), dim.axes.end(), more.axes[n]);
      if (known == dim.axes.end()) {
        dim.axes.push_back(more.axes[n]);
        dim.steps.push_back(more.steps[n]);
      } else if (dim.steps[static_cast<size_t>(known - dim.axes.begin())] != more.steps[n]) {
        dim.steps[static_cast<size_t>(known - dim.axes.begin())] = 0;
      }
    }
  }
  operand.one_element = false;
}

void add_operand(AnchorNest& nest, const Program& program, const Load& load,
                 const std::vector<Var>& vars) {
  if (load.buffer->name == nest.output) return;
  const auto known = std::find_if(nest.operands.begin(), nest.operands.end(),
                                  [&](const Operand& o) { return o.buffer == load.buffer->name; });
  if (known != nest.operands.end()) {
    join(*known, load, vars);
    return;
  }
  Operand operand;
  operand.buffer = load.buffer->name;
  operand.dtype = load.buffer->dtype;
  operand.constant = is_constant(program, operand.buffer);
  operand.computed = std::none_of(program.params.begin(), program.params.end(),
                                  [&](const Param& p) { return p.buffer->name == operand.buffer; });
  for (size_t d = 0; d < load.indices.size(); ++d) {
    operand.dims.push_back(dim_of_index(load.indices[d], vars));
    operand.dims.back().extent = as_int(load.buffer->shape[d]).value_or(0);
  }
  nest.operands.push_back(std::move(operand));
}

std::optional<AnchorNest> read_nest(const Program& program, const StagePath& path) {
  const Stage& s = *path.stage;
  if (!s.combiner || s.values.size() != 1 || !combiner_op(*s.combiner) || s.init.empty())
    return std::nullopt;
  const auto loops = constant_nest(path);
  if (!loops) return std::nullopt;
  AnchorNest nest;
  nest.stage = s.name;
  nest.output = s.outputs[0]->name;
  nest.dtype = s.outputs[0]->dtype;
  nest.axes = loops->loops;
  for (const AxisBinding& b : s.axes) {
    if (b.kind == AxisKind::sequential) return std::nullopt;
    nest.spatial += b.kind == AxisKind::spatial;
  }
  if (nest.spatial == 0 || nest.spatial == nest.axes.size()) return std::nullopt;
  std::vector<const Load*> seen;  // an element read twice is one
  walk(s.values[0], [&](const Expr& e) {
    const Load* load = e.as<Load>();
    const auto equal = [&](const Load* other) {
      return other->buffer.get() == load->buffer.get() &&
             std::equal(other->indices.begin(), other->indices.end(), load->indices.begin(),
                        [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
    };
    if (load && std::none_of(seen.begin(), seen.end(), equal)) {
      seen.push_back(load);
      add_operand(nest, program, *load, loops->vars);
    }
    return true;
  });
  return nest;
}

/// The axis moves the operand by less than what the reductions reach along the same dimension.
bool windows_overlap(const AnchorNest& nest, const Operand& o, size_t axis) {
  for (const OperandDim& dim : o.dims) {
    int64_t step = 0, reach = 0;
    for (size_t n = 0; n < dim.axes.size(); ++n) {
      if (dim.axes[n] == axis) step = std::abs(dim.steps[n]);
      if (nest.is_reduction(dim.axes[n]))
        reach += std::abs(dim.steps[n]) * (nest.axes[dim.axes[n]].extent - 1);
    }
    if (step > 0 && reach >= step) return true;
  }
  return false;
}

}  // namespace

double Operand::bytes() const {
  double bytes = static_cast<double>(byte_size(dtype));
  for (const OperandDim& dim : dims) bytes *= static_cast<double>(dim.extent);
  return bytes;
}

bool Operand::moves(size_t axis) const {
  return std::any_of(dims.begin(), dims.end(), [&](const OperandDim& d) {
    return std::find(d.axes.begin(), d.axes.end(), axis) != d.axes.end();
  });
}

std::optional<size_t> Operand::dim_of(size_t axis, int64_t extent) const {
  std::optional<size_t> found;
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto place = std::find(dims[d].axes.begin(), dims[d].axes.end(), axis);
    if (place == dims[d].axes.end()) continue;
    const auto own = static_cast<size_t>(place - dims[d].axes.begin());
    if (found || dims[d].steps[own] != 1) return std::nullopt;
    for (size_t n = 0; n < dims[d].steps.size(); ++n)
      if (n != own && (dims[d].steps[n] == 0 || dims[d].steps[n] % extent != 0))
        return std::nullopt;
    found = d;
  }
  return one_element ? found : std::nullopt;
}

int64_t Operand::step_in_rows(size_t axis) const {
  int64_t step = 0;
  for (size_t d = 0; d < dims.size(); ++d)
    for (size_t n = 0; n < dims[d].axes.size(); ++n) {
      if (dims[d].axes[n] != axis) continue;
      if (d + 1 < dims.size()) return 0;
      step = dims[d].steps[n];
    }
  return step;
}

bool AnchorNest::reuses_along(size_t axis) const {
  return std::any_of(operands.begin(), operands.end(), [&](const Operand& o) {
    return !o.moves(axis) || windows_overlap(*this, o, axis);
  });
}

size_t AnchorNest::longest_reduction() const {
  size_t longest = spatial;
  for (size_t n = spatial; n < axes.size(); ++n)
    if (axes[n].extent > axes[longest].extent) longest = n;
  return longest;
}

std::optional<AnchorNest> find_anchor_nest(const Program& program, const std::string& stage) {
  for (const StagePath& path : stage_paths(program.body))
    if (path.stage->name == stage) return read_nest(program, path);
  return std::nullopt;
}

}  // namespace tenon
