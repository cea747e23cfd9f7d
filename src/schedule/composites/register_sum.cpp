#include "schedule/composites/register_sum.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/schedule/roles.h>

#include <algorithm>

#include "schedule/composites/nests.h"

namespace tenon {
namespace {

bool is_parameter(const Program& program, const std::string& buffer) {
  for (const Param& p : program.params)
    if (p.buffer->name == buffer) return true;
  return false;
}

/// Whether the lanes of stage's innermost loop are those of the sum that it reads: only then can
/// the sum stay in registers. Y(i,j) = C(i,j) + b(j): yes; Y(i,j) = X(i,j) - C(i), with C's lanes
/// along i: no.
bool reads_along_lanes(const Schedule& s, const std::string& stage, const std::string& sum) {
  const std::vector<StagePath> paths = stage_paths(s.program().body);
  const auto path = std::find_if(paths.begin(), paths.end(),
                                 [&](const StagePath& p) { return p.stage->name == stage; });
  if (path == paths.end() || path->loops.empty()) return true;
  const Var& lane = path->loops.back()->var;
  const auto moves = [&](const Expr& index) {
    return std::any_of(path->stage->axes.begin(), path->stage->axes.end(),
                       [&](const AxisBinding& a) {
                         return uses_var(a.value, lane) && uses_var(index, a.axis.var);
                       });
  };
  bool along = true;
  for (const Expr& value : path->stage->values)
    walk(value, [&](const Expr& e) {
      if (auto* l = e.as<Load>(); l && l->buffer->name == sum)
        for (size_t d = 0; d < l->indices.size(); ++d)
          along = along && moves(l->indices[d]) == (d + 1 == l->indices.size());
      return true;
    });
  return along;
}

/// Whether there are maps to compute at the tile's end and all of them read the sum along its
/// lanes.
bool can_stay_in_registers(const Schedule& s, const std::string& sum, const Loop& tile_loop) {
  Schedule trial = s;
  const std::vector<std::string> after = fuse_epilogue(trial, tile_loop);
  return !after.empty() && std::all_of(after.begin(), after.end(), [&](const std::string& stage) {
    return reads_along_lanes(trial, stage, sum);
  });
}

}  // namespace

size_t place_sum(Schedule& s, const std::string& anchor, const std::string& sum,
                 const Loop& tile_loop, std::vector<std::string>& done) {
  const bool stays = !is_parameter(s.program(), sum) && can_stay_in_registers(s, sum, tile_loop);
  if (!stays) done.push_back(s[anchor].cache_write(tile_loop, {Scope::reg}).store);
  const size_t in_tile = done.size();
  for (const std::string& stage : fuse_epilogue(s, tile_loop)) {
    done.push_back(stage);
    if (!stays) finish_map_in_loop(s, stage, tile_loop);
  }
  if (!stays) return in_tile;
  s.apply(SetScope{sum, Scope::reg});
  return done.size();
}

}  // namespace tenon
