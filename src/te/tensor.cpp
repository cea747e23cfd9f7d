#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>
#include <tenon/te/te.h>

#include "te/checks.h"
#include "te/formula.h"

namespace tenon {
namespace {

Tensor outside_tensor(std::string name, DType dtype, std::vector<Expr> extents, ParamRole role) {
  if (name.empty()) throw UserError("input: a tensor needs a name");
  const std::string where = fmt::format("input \"{}\"", name);
  for (size_t d = 0; d < extents.size(); ++d) {
    check_extent(fmt::format("{} of {}: dimension {}", where, extents_text(extents), d),
                 extents[d]);
  }
  check_points(where, extents, Points::memory);
  auto origin = std::make_shared<Formula>();
  origin->name = name;
  origin->role = role;
  BufferNode node;
  node.name = std::move(name);
  node.dtype = dtype;
  node.shape = std::move(extents);
  node.origin = origin;
  return {Buffer(std::move(node)), role};
}

}  // namespace

int64_t Tensor::extent(int d) const {
  if (d < 0 || d >= rank())
    throw UserError(fmt::format("tensor \"{}\" has {} dimensions; dimension {} does not exist",
                                name(), rank(), d));
  auto value = as_int(shape()[d]);
  if (!value)
    throw UserError(
        fmt::format("tensor \"{}\": dimension {} is symbolic ({}); a constant is needed here",
                    name(), d, print(shape()[d])));
  return *value;
}

std::vector<int64_t> Tensor::extents() const {
  std::vector<int64_t> all(rank());
  for (int d = 0; d < rank(); ++d) all[d] = extent(d);
  return all;
}

Expr Tensor::at(std::vector<Expr> indices) const {
  if (!defined()) throw UserError("an undefined tensor is read");
  if (static_cast<int>(indices.size()) != rank())
    throw UserError(fmt::format("tensor \"{}\" has {} dimensions and is read with {} indices",
                                name(), rank(), indices.size()));
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined() || !is_int(indices[d].dtype()))
      throw UserError(
          fmt::format("tensor \"{}\": index {} is {}; an index is an integer", name(), d,
                      indices[d].defined() ? tenon::name(indices[d].dtype()) : "undefined"));
    if (indices[d].dtype() != i64) indices[d] = cast(i64, indices[d]);
  }
  return load(buffer_, std::move(indices));
}

Var symbol(std::string name, SymbolRange range) {
  constexpr int64_t kMostExtent = int64_t{1} << 40;
  if (name.empty()) throw UserError("symbol: a symbolic extent needs a name");
  if (range.low < 0 || range.low > range.high || range.high > kMostExtent)
    throw UserError(
        fmt::format("symbol \"{}\": the range [{}, {}] is not one of extents; 0 <= low <= high <= "
                    "2^40 is needed",
                    name, range.low, range.high));
  return Var::symbol(std::move(name), range);
}

Tensor input(std::string name, DType dtype, Extents shape) {
  return outside_tensor(std::move(name), dtype, std::move(shape.list), ParamRole::input);
}

Tensor constant(std::string name, DType dtype, Extents shape) {
  return outside_tensor(std::move(name), dtype, std::move(shape.list), ParamRole::constant);
}

std::vector<Tensor> tensors_of(Formula definition) {
  auto formula = std::make_shared<Formula>(std::move(definition));
  std::vector<Tensor> tensors;
  for (size_t n = 0; n < formula->values.size(); ++n) {
    BufferNode node;
    node.name =
        formula->values.size() == 1 ? formula->name : fmt::format("{}.v{}", formula->name, n);
    node.dtype = formula->values[n].dtype();
    for (const Axis& axis : formula->axes) node.shape.push_back(axis.extent);
    node.origin = formula;
    tensors.emplace_back(Buffer(std::move(node)), ParamRole::output);
    formula->outputs.push_back(tensors.back().buffer().weak());
  }
  return tensors;
}

std::vector<Tensor> compute_tuple(std::string name, std::vector<Axis> axes,
                                  std::vector<Expr> values) {
  if (name.empty()) throw UserError("compute: a tensor needs a name");
  const std::string where = fmt::format("compute \"{}\"", name);
  if (values.empty()) throw UserError(fmt::format("{}: no value is given", where));
  check_axes(where, axes);
  for (const Expr& value : values) check_formula(where, axes, value);
  Formula formula;
  formula.name = std::move(name);
  formula.axes = std::move(axes);
  formula.values = std::move(values);
  return tensors_of(std::move(formula));
}

Tensor compute(std::string name, std::vector<Axis> axes, Expr value) {
  return compute_tuple(std::move(name), std::move(axes), {std::move(value)})[0];
}

}  // namespace tenon
