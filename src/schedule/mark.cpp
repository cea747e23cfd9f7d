#include "schedule/mark.h"

#include <tenon/ir/notes.h>

#include <algorithm>

#include "schedule/dependence.h"

namespace tenon {
namespace {

/// What the iterations of a loop over a reduce or sequential axis have to do with each other.
std::string bound_together(const Stage& stage, const Var& loop) {
  if (!stage.combiner)
    return fmt::format(
        "loop \"{}\" runs along the scan of stage \"{}\": each iteration needs the one before",
        loop.name(), stage.name);
  if (is_scatter(stage))
    return fmt::format(
        "loop \"{}\" runs over the sources of scatter \"{}\": two iterations may meet in one "
        "element",
        loop.name(), stage.name);
  return fmt::format(
      "loop \"{}\" is a reduction loop of stage \"{}\": its iterations combine into one element",
      loop.name(), stage.name);
}

}  // namespace

Program with_mark(const Program& program, const Var& loop, LoopMark mark) {
  Program out = program;
  out.body = replace_loop(program.body, loop, [&](const For& l) {
    For marked = l;
    marked.mark = mark;
    return make_stmt(std::move(marked));
  });
  return out;
}

Program with_note(const Program& program, const Var& loop, const std::string& key, int64_t value) {
  Program out = program;
  out.body = replace_loop(program.body, loop, [&](const For& l) {
    For noted = l;
    noted.notes[key] = value;
    return make_stmt(std::move(noted));
  });
  return out;
}

std::string mark_text(const For& loop) {
  if (loop.mark != LoopMark::serial) return std::string(name(loop.mark));
  for (const auto& [key, value] : loop.notes)
    if (key != kPartitionNote) return fmt::format("{}={}", key, value);
  return "";
}

void check_unmarked(const StagePath& path, size_t at, LoopMark wanted) {
  const For& loop = *path.loops[at];
  if (loop.mark == LoopMark::serial || loop.mark == wanted) return;
  refuse(Rule::mark_other,
         fmt::format("loop \"{}\" is already marked {}", loop.var.name(), name(loop.mark)), {},
         full_name(path, at));
}

void check_iterations(const StagePath& path, size_t at, std::string_view primitive) {
  const For& loop = *path.loops[at];
  const std::string mark = full_name(path, at);
  // By kind: where a scan's axis is left one value, its binding no longer names the loop.
  const auto in_order = [&](const Stage& s) {
    return loop.kind == AxisKind::sequential &&
           std::any_of(s.axes.begin(), s.axes.end(),
                       [](const AxisBinding& b) { return b.kind == AxisKind::sequential; });
  };
  for (const StagePath& p : stage_paths(loop.body))
    if (in_order(*p.stage) || binds_reduce(*p.stage, loop.var))
      refuse(
          Rule::iterations_meet,
          fmt::format("{}; {} needs a spatial loop", bound_together(*p.stage, loop.var), primitive),
          p.stage->combiner && !is_scatter(*p.stage)
              ? fmt::format(
                    "{} of a spatial loop, or rfactor({}, \"{}\") first, which makes it one",
                    primitive, p.stage->name, loop.var.name())
              : fmt::format("{} of a spatial loop", primitive),
          mark);
  if (auto why = conflict_between_iterations(path, at, Accumulation::conflicts))
    refuse(Rule::iterations_meet,
           fmt::format("{}; {} needs independent iterations", *why, primitive), {}, mark);
}

}  // namespace tenon
