#include <tenon/schedule/stage_primitives.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "schedule/place.h"

namespace tenon {
namespace {

constexpr int64_t kMaxNodes = 4000;

int64_t count_nodes(const Stage& stage) {
  int64_t nodes = 0;
  auto count = [&](const Expr&) {
    ++nodes;
    return true;
  };
  for (const Expr& e : stage.indices) walk(e, count);
  for (const Expr& e : stage.values) walk(e, count);
  for (const Expr& e : stage.init) walk(e, count);
  return nodes;
}

void check_producer(const Program& program, const Stage& stage) {
  if (stage.combiner)
    refuse(Rule::inline_map,
           fmt::format("stage \"{}\" is a {}; only a map can be inlined", stage.name,
                       is_scatter(stage) ? "scatter" : "reduction"),
           "compute it at a loop of its reader");
  for (const Buffer& b : stage.outputs) {
    if (is_output(program, b))
      refuse(Rule::inline_output,
             fmt::format("{} is an output of the program; an output is never inlined", b->name));
    if (writers_of(program, b).size() != 1)
      refuse(Rule::two_writers,
             fmt::format("another stage also writes {}; inlining \"{}\" would lose it", b->name,
                         stage.name));
  }
  if (!indexed_by_axes(stage) || stage.indices.size() != stage.axes.size())
    refuse(Rule::inline_map, why_not_indexed(stage), "inline before the stages that caches make");
}

/// Every reader comes after the stage; one before it reads what an earlier iteration of a common
/// loop left.
void check_order(const Program& program, const Stage& stage) {
  for (const StagePath& p : stage_paths(program.body)) {
    if (p.stage->name == stage.name) return;
    for (const Buffer& b : stage.outputs)
      if (reads(*p.stage, b))
        refuse(Rule::inline_order,
               fmt::format("stage \"{}\" reads {} before \"{}\" writes it again", p.stage->name,
                           b->name, stage.name));
  }
}

/// The reader with each load of an output replaced by the producer's value at its indices.
Stage inlined(const Stage& reader, const Stage& producer) {
  const ExprFn expand = [&](const Expr& e) {
    const Load* l = e.as<Load>();
    if (!l) return e;
    const auto found = std::find(producer.outputs.begin(), producer.outputs.end(), l->buffer);
    if (found == producer.outputs.end()) return e;
    TENON_CHECK(l->indices.size() <= producer.axes.size(), "{} has too few axes", producer.name);
    VarMap at;
    for (size_t d = 0; d < l->indices.size(); ++d)
      at.emplace(producer.axes[d].axis.var, l->indices[d]);
    return substitute(producer.values[static_cast<size_t>(found - producer.outputs.begin())], at);
  };
  Stage out = reader;
  for (Expr& e : out.indices) e = rewrite(e, expand);
  for (Expr& e : out.values) e = rewrite(e, expand);
  for (Expr& e : out.init) e = rewrite(e, expand);
  return out;
}

}  // namespace

/// for i: P(i) = f(i);  for j: C(j) reads P(j+1)   ->   for j: C(j) reads f(j+1)
Program ComputeInline::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const Stage& producer = *path.stage;
  check_producer(program, producer);
  check_order(program, producer);
  Program out = program;
  for (const Buffer& b : producer.outputs)
    for (const StagePath& reader : readers_of(program, b))
      for (const Buffer& input : inputs_of(producer))
        if (!exists_for(program, reader.stage->name, input))
          refuse(Rule::inline_input_missing,
                 fmt::format(
                     "stage \"{}\" reads {}, which does not exist where its reader \"{}\" stands",
                     stage, input->name, reader.stage->name));
  out.body = replace_stage(program.body, stage, [](const Stage&) { return Stmt(); });
  for (const Buffer& b : producer.outputs) out.body = drop_allocate(out.body, b);
  out.body = map_stages(out.body, [&](const Stage& s) {
    const bool reader = std::any_of(producer.outputs.begin(), producer.outputs.end(),
                                    [&](const Buffer& b) { return reads(s, b); });
    if (!reader) return s;
    Stage grown = inlined(s, producer);
    if (const int64_t nodes = count_nodes(grown); nodes > kMaxNodes)
      refuse(Rule::inline_limit,
             fmt::format("stage \"{}\" would grow to {} nodes by inlining \"{}\"; the limit is {}",
                         s.name, nodes, stage, kMaxNodes),
             fmt::format("compute \"{}\" at a loop of \"{}\" instead", stage, s.name));
    return grown;
  });
  return out;
}

}  // namespace tenon
