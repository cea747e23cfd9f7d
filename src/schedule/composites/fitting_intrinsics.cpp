#include "schedule/composites/fitting_intrinsics.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>

namespace tenon {
namespace {

bool has_instruction(const Intrinsic& intrinsic, const IntrinsicParts& parts,
                     const Target& target) {
  const int64_t lanes = parts.is_tile() ? parts.lanes : target.lanes(parts.output->dtype);
  return std::any_of(intrinsic.implementations.begin(), intrinsic.implementations.end(),
                     [&](const IntrinsicImplementation& code) {
                       return code.lanes == lanes &&
                              std::all_of(code.features.begin(), code.features.end(),
                                          [&](const auto& f) { return target.has_feature(f); });
                     });
}

bool starts_at_zero(const Stage& stage) {
  return stage.init.size() == 1 && (as_int(stage.init[0]) == 0 || as_float(stage.init[0]) == 0.0);
}

/// The rows of a tile are those of the formula's first input, which only matters where the two
/// differ in type.
bool rows_first(const std::vector<Expr>& loads, const Stage& stage) {
  const Var& lane = stage.axes[stage.indices.size() - 1].axis.var;
  return loads.size() == 2 && (loads[0].dtype() == loads[1].dtype() || !uses_var(loads[0], lane));
}

}  // namespace

std::vector<FittingIntrinsic> fitting_intrinsics(const Stage* stage, const Target& target,
                                                 bool tiles) {
  std::vector<FittingIntrinsic> out;
  if (!stage || !stage->combiner || stage->values.size() != 1) return out;
  if (tiles && !starts_at_zero(*stage)) return out;
  for (const auto& intrinsic : intrinsics()) {
    const IntrinsicParts parts = parts_of(*intrinsic);
    if (parts.is_tile() != tiles || parts.output->dtype != stage->outputs[0]->dtype ||
        !has_instruction(*intrinsic, parts, target) ||
        combiner_op(*parts.stage->combiner) != combiner_op(*stage->combiner))
      continue;
    FormulaMatch match = match_formula(parts, stage->values[0]);
    if (!match.difference.empty() || (tiles && !rows_first(match.loads, *stage))) continue;
    out.push_back({intrinsic, parts, std::move(match)});
  }
  return out;
}

}  // namespace tenon
