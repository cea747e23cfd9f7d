#include <tenon/ir/notes.h>
#include <tenon/schedule/mark_primitives.h>

#include <algorithm>

#include "schedule/mark.h"
#include "schedule/place.h"

namespace tenon {
namespace {

constexpr int64_t kMaxDistance = 1 << 20;
constexpr int64_t kMaxLines = 256;
constexpr int64_t kManyLines = 1 << 30;  // counted no further
constexpr int64_t kLineBytes = 64;

/// What the stages under the loop touch of the buffer in one iteration.
LoopBox box_under(const StagePath& path, size_t at, const Buffer& buffer) {
  BoxBuilder builder(buffer->shape);
  for (const StagePath& p : stage_paths(path.loops[at]->body)) {
    StagePath whole{path.loops, p.stage};
    whole.loops.resize(at + 1);
    whole.loops.insert(whole.loops.end(), p.loops.begin(), p.loops.end());
    builder.add(whole, at + 1, loads_of(*p.stage, buffer, true));
    if (writes(*p.stage, buffer))
      builder.add(whole, at + 1, {over_loops(*p.stage, p.stage->indices)});
  }
  return builder.finish();
}

/// `times`: how many iterations share the lines of the box.
void check_box(const LoopBox& box, const Buffer& buffer, const For& loop, int64_t times,
               const std::string& mark) {
  const size_t innermost =
      buffer->layout.empty() ? box.dims.size() - 1 : static_cast<size_t>(buffer->layout.back().dim);
  bool moves = false;
  int64_t lines = 1;
  for (size_t d = 0; d < box.dims.size(); ++d) {
    const std::optional<int64_t> extent = as_int(box.dims[d].extent);
    if (!extent)
      refuse(Rule::prefetch_unbounded,
             fmt::format("how much of dimension {} of {} an iteration of \"{}\" touches is not "
                         "known before the call",
                         d, buffer->name, loop.var.name()),
             "choose a loop inside", mark);
    moves = moves || (!box.dims[d].whole && uses_var(to_expr(box.dims[d].min), loop.var));
    const int64_t step = d == innermost ? kLineBytes / byte_size(buffer->dtype) : 1;
    lines = std::min(lines, kManyLines) * std::min((*extent + step - 1) / step, kManyLines);
  }
  if (!moves)
    refuse(Rule::prefetch_still,
           fmt::format("the iterations of loop \"{}\" all touch the same box of {}, as far as is "
                       "known: there is nothing to fetch ahead",
                       loop.var.name(), buffer->name),
           "choose a loop that its indices depend on", mark);
  lines = (lines + times - 1) / times;
  if (lines > kMaxLines)
    refuse(Rule::prefetch_limit,
           fmt::format("one iteration of \"{}\" touches {} cache lines of {} or more{}; the limit "
                       "is {}",
                       loop.var.name(), lines, buffer->name,
                       times > 1 ? " for each that shares them out" : "", kMaxLines),
           "choose a loop inside", mark);
}

/// How often `over` runs in one iteration of path.loops[at].
int64_t times_inside(const StagePath& path, size_t at, size_t over) {
  if (over <= at)
    refuse(Rule::prefetch_over,
           fmt::format("loop \"{}\" is not inside loop \"{}\": it cannot share out its lines",
                       path.loops[over]->var.name(), path.loops[at]->var.name()),
           "choose a loop inside", full_name(path, over));
  int64_t times = 1;
  for (size_t n = at + 1; n <= over; ++n) {
    const std::optional<int64_t> extent = extent_of(*path.loops[n]);
    if (!extent)
      refuse(Rule::prefetch_over,
             fmt::format("how often loop \"{}\" runs is not known before the call: its iterations "
                         "share out no lines",
                         path.loops[n]->var.name()),
             "choose another loop", full_name(path, n));
    times = std::min(times * std::max<int64_t>(*extent, 1), kManyLines);
  }
  return times;
}

}  // namespace

/// for k in 0..n: S reads B(k, ..)   ->   for k in 0..n  prefetch(B)=4: S reads B(k, ..)
/// and, with `over` = i, inside of it       for i in 0..m  prefetch_part(B)=1
Program Prefetch::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const size_t at = find_loop(path, loop);
  const std::string mark = full_name(path, at);
  const Buffer from = find_buffer(program, buffer);
  if (distance < 1 || distance > kMaxDistance)
    refuse(Rule::prefetch_distance,
           fmt::format("the distance is {}; it is from 1 to {} iterations", distance, kMaxDistance),
           {}, mark);
  const size_t asks = over.empty() ? at : find_loop(path, over);
  const int64_t times = over.empty() ? 1 : times_inside(path, at, asks);
  for (size_t n = 0; n <= asks; ++n)
    if (path.loops[n]->mark == LoopMark::vectorize)
      refuse(Rule::prefetch_vectorized,
             fmt::format("loop \"{}\" is vectorized; its lanes run at once, none before another",
                         path.loops[n]->var.name()),
             "choose a loop outside it", mark);
  if (from->scope == Scope::reg)
    refuse(Rule::prefetch_register,
           fmt::format("{} is in registers; there is nothing to fetch", buffer), {}, mark);
  if (!exists_at(program, path.loops[at]->var, from))
    refuse(Rule::prefetch_missing,
           fmt::format("{} is allocated inside loop \"{}\"; another iteration's is not there yet",
                       buffer, loop),
           "prefetch what fills it", mark);
  const std::vector<StagePath> under = stage_paths(path.loops[at]->body);
  if (std::none_of(under.begin(), under.end(),
                   [&](const StagePath& p) { return reads(*p.stage, from); }))
    refuse(Rule::prefetch_unread, fmt::format("no stage under loop \"{}\" reads {}", loop, buffer),
           {}, mark);
  if (from->shape.empty())
    refuse(Rule::prefetch_still,
           fmt::format("{} is one element; there is nothing to fetch ahead", buffer), {}, mark);
  check_box(box_under(path, at, from), from, *path.loops[at], times, mark);
  const Program out = with_note(program, path.loops[at]->var, prefetch_note(buffer), distance);
  return over.empty() ? out : with_note(out, path.loops[asks]->var, prefetch_part_note(buffer), 1);
}

}  // namespace tenon
