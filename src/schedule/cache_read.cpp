#include <tenon/schedule/stage_primitives.h>

#include <algorithm>

#include "schedule/copy.h"
#include "schedule/kernel_rules.h"
#include "schedule/place.h"

namespace tenon {
namespace {

/// stage NAME: copy[dims] = buffer[dims]
Stage copy_stage(const std::string& name, const Buffer& copy, const Buffer& from,
                 const std::vector<std::string>& names) {
  Stage out;
  out.name = name;
  std::vector<Expr> at;
  for (size_t d = 0; d < names.size(); ++d) {
    const Axis axis(names[d], from->shape[d]);
    out.axes.push_back({axis, AxisKind::spatial, axis});
    at.push_back(axis);
  }
  out.outputs = {copy};
  out.indices = at;
  out.values = {load(from, at)};
  return out;
}

/// Is the condition one of these, or does it follow from them?
bool follows(const Expr& condition, const std::vector<Expr>& from, const Guards& guards,
             Simplifier& math) {
  if (std::any_of(from.begin(), from.end(),
                  [&](const Expr& c) { return structural_equal(c, condition); }))
    return true;
  const Guards forms = affine_guards({condition}, math);
  return !forms.empty() && std::all_of(forms.begin(), forms.end(), [&](const Affine& form) {
    const Interval values = bounds(form, math, guards);
    return values.max && *values.max <= 0;
  });
}

/// Loops that both stages are in.
size_t shared_loops(const StagePath& a, const StagePath& b) {
  size_t n = 0;
  while (n < a.loops.size() && n < b.loops.size() && a.loops[n] == b.loops[n]) ++n;
  return n;
}

/// The copy reads all of the box, whatever the reader's guards say, so every element of it must
/// have been written. A writer that shares no loop with the reader is done; of one that does, one
/// iteration of the shared loops makes a box, and the copy's must lie inside that.
void check_computed(const Program& program, const StagePath& reader, const LoopBox& box,
                    const Buffer& buffer, const std::string& mark) {
  const std::vector<StagePath> writers = writers_of(program, buffer);
  const size_t shared = writers.empty() ? 0 : shared_loops(reader, writers.back());
  if (shared == 0) return;
  const LoopBox there = exact_box(writers.back(), shared);
  Simplifier math = math_for(reader);
  const Guards guards = affine_guards(box.conditions, math);
  for (const Expr& c : there.conditions)
    if (!follows(c, box.conditions, guards, math))
      refuse(Rule::cache_read_where,
             fmt::format("{} is computed only where {}, and \"{}\" is not known to run only there",
                         buffer->name, print(c), reader.stage->name),
             "cache it at another loop", mark);
  for (size_t d = 0; d < box.dims.size(); ++d) {
    if (there.dims[d].whole) continue;
    const Interval apart = bounds(box.dims[d].min - there.dims[d].min, math, guards);
    const auto have = as_int(there.dims[d].extent), need = as_int(box.dims[d].extent);
    if (have && need && apart.bounded() && *apart.min >= 0 && *apart.max + *need <= *have) continue;
    refuse(Rule::cache_read_part,
           fmt::format("only a part of {} is computed there, and it cannot be proved that "
                       "dimension {} of the copy lies "
                       "inside it",
                       buffer->name, d),
           "cache it at another loop", mark);
  }
}

/// No writer comes after the reader in a loop that both are in: then the buffer is still incomplete
/// where it is read.
void check_complete(const Program& program, const StagePath& reader, const Buffer& buffer,
                    const std::string& mark) {
  bool after = false;
  for (const StagePath& p : stage_paths(program.body)) {
    if (after && writes(*p.stage, buffer) && !p.loops.empty() && is_under(reader, p.loops[0]))
      refuse(Rule::cache_read_incomplete,
             fmt::format("stage \"{}\" writes {} after stage \"{}\" has read it, in one loop",
                         p.stage->name, buffer->name, reader.stage->name),
             {}, mark);
    after = after || p.stage->name == reader.stage->name;
  }
}

size_t first_inside(const StagePath& path, const std::string& at) {
  return at == "root" ? 0 : find_loop(path, at) + 1;
}

bool runs_reduction_outside(const StagePath& path, size_t first) {
  for (size_t n = 0; n < first; ++n)
    if (binds_reduce(*path.stage, path.loops[n]->var)) return true;
  return false;
}

/// `root` with the statement that is, or starts with, the outermost loop of the stage (or the
/// stage) replaced.
Stmt replace_nest(const Stmt& root, const StagePath& path,
                  const std::function<Stmt(const Stmt&)>& f) {
  if (!path.loops.empty())
    return replace_loop(root, path.loops[0]->var,
                        [&](const For& l) { return f(make_stmt(For(l))); });
  return replace_stage(root, path.stage->name,
                       [&](const Stage& s) { return f(make_stmt(Stage(s))); });
}

void check_not_written_inside(const Program& program, const StagePath& path, size_t first,
                              const Buffer& buffer, const std::string& mark) {
  const For* place = first > 0            ? path.loops[first - 1]
                     : path.loops.empty() ? nullptr
                                          : path.loops[0];
  for (const StagePath& w : writers_of(program, buffer))
    if (w.stage->name == path.stage->name || (place && is_under(w, place)))
      refuse(Rule::cache_read_stale,
             fmt::format("stage \"{}\" writes {} under the same loop, so a copy made at its top "
                         "would be stale",
                         w.stage->name, buffer->name),
             w.stage->name == path.stage->name ? "use cache_write for what a stage writes"
                                               : "cache it at a loop inside",
             mark);
}

}  // namespace

/// for x.o: for x.i: S reads B   ->   for x.o: { allocate B.cache; for i: B.cache = B; for x.i: S
/// reads B.cache }
Program CacheRead::apply(const Program& program, const Target& target) const {
  const StagePath path = find_stage(program, stage);
  const size_t first = tenon::first_inside(path, at);
  const std::string mark = first > 0 ? full_name(path, first - 1) : "";
  const Buffer from = find_buffer(program, buffer);
  const bool with_init = !runs_reduction_outside(path, first);
  const std::vector<std::vector<Expr>> loads = loads_of(*path.stage, from, with_init);
  check_not_written_inside(program, path, first, from, mark);
  if (loads.empty())
    refuse(Rule::cache_read_unread, fmt::format("stage \"{}\" does not read {}", stage, buffer), {},
           mark);
  if (first > 0) check_not_vectorized(path, first - 1, "a copy");
  check_layout(layout, from->shape.size(), buffer);
  check_scope(target, scope, mark);

  BoxBuilder builder(from->shape);
  if (first > 0) builder.add(path, first, loads);
  LoopBox box = builder.finish();
  check_scope_size(buffer, scope, sides(box), mark);
  Simplifier math = math_for(path);
  box.conditions = outer_conditions(path.stage->spatial_guard, path, first, math);
  check_complete(program, path, from, mark);
  check_computed(program, path, box, from, mark);

  const std::string copy_name = fresh_name(program, buffer + ".cache");
  BufferNode node{copy_name, from->dtype, from->shape, scope, layout, {}, nullptr};
  const Buffer copy(std::move(node));
  const Stmt nest = nest_over_box(
      copy_stage(copy_name, copy, from, dim_names(program, *path.stage, from)), box, math);

  Program out = program;
  BufferMap renamed;
  renamed.emplace(from, copy);
  out.body = replace_stage(program.body, stage, [&](const Stage& s) {
    Stage reader = s;
    for (Expr& e : reader.indices) e = replace_buffers(e, renamed);
    for (Expr& e : reader.values) e = replace_buffers(e, renamed);
    if (with_init)
      for (Expr& e : reader.init) e = replace_buffers(e, renamed);
    return make_stmt(std::move(reader));
  });
  if (first > 0) {
    out.body = surround_body(out.body, path.loops[first - 1]->var, {copy}, nest, {});
  } else {
    out.body = replace_nest(out.body, path, [&](const Stmt& s) {
      return make_stmt(Allocate{copy, seq({nest, s})});
    });
  }
  return out;
}

}  // namespace tenon
