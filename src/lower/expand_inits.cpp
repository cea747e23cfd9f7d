#include <tenon/ir/intrinsic.h>
#include <tenon/ir/notes.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <map>

#include "lower/passes.h"

namespace tenon {
namespace {

bool binds(const Stage& stage, const Var& loop, AxisKind kind) {
  for (const AxisBinding& b : stage.axes) {
    if ((b.kind == AxisKind::spatial) == (kind == AxisKind::spatial) && uses_var(b.value, loop)) {
      return true;
    }
  }
  return false;
}

// Index of the outermost loop that binds a reduce axis; the number of loops when there is none.
size_t outermost_reduce_loop(const StagePath& path) {
  size_t k = 0;
  while (k < path.loops.size() && !binds(*path.stage, path.loops[k]->var, AxisKind::reduce)) ++k;
  return k;
}

Stmt init_nest(const StagePath& path, size_t first) {
  const Stage& stage = *path.stage;
  VarMap fresh;
  std::vector<For> loops;
  for (size_t k = first; k < path.loops.size(); ++k) {
    For copy = *path.loops[k];
    const bool guarded = stage.spatial_guard.defined() && uses_var(stage.spatial_guard, copy.var);
    if (!binds(stage, copy.var, AxisKind::spatial) && !guarded) continue;
    TENON_CHECK(!binds(stage, copy.var, AxisKind::reduce),
                "loop {} of stage {} binds spatial and reduce axes", copy.var.name(), stage.name);
    copy.min = substitute(copy.min, fresh);
    copy.extent = substitute(copy.extent, fresh);
    copy.kind = AxisKind::spatial;
    const bool tile = copy.intrinsic && parts_of(*copy.intrinsic).is_tile();
    if (copy.mark == LoopMark::tensorize) copy.mark = tile ? LoopMark::serial : LoopMark::vectorize;
    copy.intrinsic = nullptr;
    for (const std::string_view mark : {"prefetch", "double_buffer"})
      for (const std::string& b : noted_buffers(copy.notes, mark))
        copy.notes.erase(fmt::format("{}({})", mark, b));
    copy.notes.erase(std::string(kStreamNote));  // the update reads what the nest stores
    copy.var = Var(copy.var.name());
    fresh[path.loops[k]->var] = copy.var;
    loops.push_back(std::move(copy));
  }
  Stage init;
  init.name = stage.name + ".init";
  for (const AxisBinding& b : stage.axes) {
    if (b.kind == AxisKind::spatial) {
      init.axes.push_back({b.axis, b.kind, substitute(b.value, fresh)});
    }
  }
  init.spatial_guard = substitute(stage.spatial_guard, fresh);
  init.outputs = stage.outputs;
  init.indices = stage.indices;
  init.values = stage.init;
  Stmt nest = make_stmt(std::move(init));
  for (size_t k = loops.size(); k-- > 0;) {
    loops[k].body = nest;
    nest = make_stmt(std::move(loops[k]));
  }
  return nest;
}

// The nests to put before a statement, by the address of its For or Stage; used for look-ups only.
using Nests = std::map<const void*, std::vector<Stmt>>;

Stmt place(const Stmt& s, const Nests& nests) {
  const For* loop = s.as<For>();
  const Stage* stage = s.as<Stage>();
  Stmt out;
  if (stage && !stage->init.empty()) {
    Stage update = *stage;
    update.init.clear();
    out = make_stmt(std::move(update));
  } else {
    out = map_children(
        s, [&](const Stmt& c) { return place(c, nests); }, [](const Expr& e) { return e; });
  }
  auto it = nests.find(loop ? static_cast<const void*>(loop) : static_cast<const void*>(stage));
  if (it == nests.end()) return out;
  std::vector<Stmt> parts = it->second;
  parts.push_back(out);
  return seq(std::move(parts));
}

}  // namespace

Program expand_inits(const Program& program) {
  Nests nests;
  for (const StagePath& path : stage_paths(program.body)) {
    if (path.stage->init.empty()) continue;
    const size_t k = outermost_reduce_loop(path);
    const void* before = k < path.loops.size() ? static_cast<const void*>(path.loops[k])
                                               : static_cast<const void*>(path.stage);
    nests[before].push_back(init_nest(path, k));
  }
  Program out = program;
  if (program.body.defined()) out.body = place(program.body, nests);
  return out;
}

}  // namespace tenon
