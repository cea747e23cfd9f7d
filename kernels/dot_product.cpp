#include "kernels/dot_product.h"

#include <tenon/ir/visit.h>

#include <algorithm>

#include "kernels/blocking.h"
#include "schedule/composites/cost.h"
#include "schedule/composites/fitting_intrinsics.h"

namespace tenon {
namespace {

const Stage* find_stage_of(const std::vector<StagePath>& paths, const std::string& name) {
  for (const StagePath& path : paths)
    if (path.stage->name == name) return path.stage;
  return nullptr;
}

/// The only dimension whose index is the variable itself; nothing when another index uses it too.
std::optional<int> dimension_of(const Load& load, const Var& v) {
  std::optional<int> found;
  for (size_t d = 0; d < load.indices.size(); ++d) {
    if (!uses_var(load.indices[d], v)) continue;
    const VarRef* ref = load.indices[d].as<VarRef>();
    if (!ref || found) return std::nullopt;
    found = static_cast<int>(d);
  }
  return found;
}

/// The parts of X and W, when both run along the reduction in steps of one element.
std::optional<DotProduct> describe(const std::vector<Expr>& loads, const Stage& stage,
                                   const Contraction& c) {
  DotProduct out;
  const Var& k = stage.axes.back().axis.var;
  const Var& lane = stage.axes[stage.indices.size() - 1].axis.var;
  const auto is_x = [&](const Expr& e) { return uses_var(e, lane); };
  if (loads.size() != 2 || is_x(loads[0]) == is_x(loads[1])) return std::nullopt;
  const Load &x = *loads[is_x(loads[0]) ? 0 : 1].as<Load>(),
             &w = *loads[is_x(loads[0]) ? 1 : 0].as<Load>();
  const auto k_of_x = dimension_of(x, k), k_of_w = dimension_of(w, k);
  const auto lane_of_x = dimension_of(x, lane);
  if (!k_of_x || !k_of_w || !lane_of_x || x.buffer->name != c.x_buffer || x.buffer == w.buffer)
    return std::nullopt;
  out.k_of_x = *k_of_x;
  out.w_buffer = w.buffer->name;
  for (int d = 0; d < static_cast<int>(w.indices.size()); ++d)
    if (d != *k_of_w) out.w_order.push_back(d);
  out.w_order.push_back(*k_of_w);
  out.w_in_order = *k_of_w + 1 == static_cast<int>(w.indices.size());
  return out;
}

/// Does it move with v along one dimension only, by neighbours?
bool neighbours_along(const Expr& e, const Var& v) {
  const Load* l = e.as<Load>();
  int moving = 0, neighbours = 0;
  for (const Expr& index : l ? l->indices : std::vector<Expr>{}) {
    moving += uses_var(index, v);
    neighbours += step_along(index, v) == 1;
  }
  return moving == 1 && neighbours == 1;
}

}  // namespace

std::optional<DotProduct> find_dot_product(const Program& program, const Contraction& c,
                                           const Target& target, DotUnit unit) {
  const std::vector<StagePath> paths = stage_paths(program.body);
  const Stage* stage = find_stage_of(paths, c.stage);
  if (c.reduce.size() != 1 || (unit == DotUnit::tiles && !c.rows)) return std::nullopt;
  for (const FittingIntrinsic& m : fitting_intrinsics(stage, target, unit == DotUnit::tiles)) {
    auto out = describe(m.match.loads, *stage, c);
    if (!out) continue;
    out->intrinsic = m.intrinsic;
    out->group = m.parts.group;
    out->cost = dot_cost(*m.intrinsic, target);
    return out;
  }
  return std::nullopt;
}

std::optional<IntrinsicRef> find_conv_dots(const Program& program, const BlockedConv& c,
                                           const Target& target, DotUnit unit) {
  const std::vector<StagePath> paths = stage_paths(program.body);
  const Stage* stage = find_stage_of(paths, c.stage);
  if (c.depthwise || !c.paired.empty() || c.reduce.empty()) return std::nullopt;
  for (const FittingIntrinsic& m : fitting_intrinsics(stage, target, unit == DotUnit::tiles)) {
    const bool tiles = unit == DotUnit::tiles;
    const int64_t whole = m.parts.group * (tiles ? m.parts.steps : 1);
    const Var& channel = stage->axes.back().axis.var;
    const bool near =
        std::all_of(m.match.loads.begin(), m.match.loads.end(),
                    [&](const Expr& load) { return neighbours_along(load, channel); });
    if (near && c.reduce.back().extent % whole == 0 &&
        (!tiles || c.lane.extent % m.parts.lanes == 0))
      return m.intrinsic;
  }
  return std::nullopt;
}

std::vector<LayoutDim> grouped_weights(const BlockedConv& c, int64_t group, int64_t width) {
  std::vector<LayoutDim> out = c.w_layout;
  LayoutDim &channel = out[out.size() - 2], &lane = out.back();
  const LayoutDim term{channel.dim, 1, group};
  channel = {channel.dim, group, channel.modulo / group};
  if (width < c.lane.extent) {
    const LayoutDim panel{lane.dim, width, c.lane.extent / width};
    lane = {lane.dim, 1, width};
    out.insert(out.begin(), panel);
  }
  out.push_back(term);
  return out;
}

double dot_cost(const Intrinsic& intrinsic, const Target& target) {
  const bool bf16_dot = parts_of(intrinsic).inputs[0]->dtype == bf16;
  return bf16_dot ? std::max(1, target.bf16_dot_cost) : 1;
}

Contraction in_groups(const Contraction& c, int64_t group, double cost) {
  Contraction out = c;
  out.step_cost = cost;
  out.reduce[0].extent = ceil_div(c.reduce[0].extent, group);
  out.in_panels = group > 1;
  return out;
}

bool prefers_dots(const Contraction& c, const DotProduct& dots, const Target& target, bool ahead) {
  if (!ahead && extent_of(c.rows) < dots.group) return false;  // a copied element is used once
  const Contraction groups = in_groups(c, dots.group, dots.cost);
  return blocked_cycles(groups, best_blocking(groups, target, ahead), target, ahead) <
         blocked_cycles(c, best_blocking(c, target, ahead), target, ahead);
}

}  // namespace tenon
