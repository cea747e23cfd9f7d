#include <tenon/schedule/stage_primitives.h>

#include "schedule/place.h"

namespace tenon {
namespace {

/// Returns the axes of the producer in the order of its loops.
std::vector<size_t> check_producer(const Program& program, const StagePath& producer) {
  const Stage& stage = *producer.stage;
  for (const Buffer& b : stage.outputs) {
    if (is_output(program, b))
      refuse(Rule::compute_at_output,
             fmt::format(
                 "{} is an output of the program; compute_at moves a producer into its readers",
                 b->name),
             "use reverse_compute_at to put it at the end of a loop of what it reads");
    if (is_scatter(stage)) refuse(Rule::own_indices, why_not_indexed(stage));
    if (writers_of(program, b).size() != 1)
      refuse(Rule::two_writers, fmt::format("another stage also writes {}", b->name),
             "compute_at before decompose_reduction");
  }
  std::vector<size_t> order = check_plain(producer, "compute_at");
  if (!indexed_by_axes(stage)) refuse(Rule::own_indices, why_not_indexed(stage));
  return order;
}

/// Position in the reader's path of the first loop inside `at`. The init of a reduction runs above
/// its reduction loops, so a reader whose init needs the producer has none of them at or outside
/// `at`.
size_t first_inside(const StagePath& reader, const For* at, const Buffer& buffer) {
  size_t n = 0;
  bool in_init = false;
  for (const Expr& e : reader.stage->init)
    walk(e, [&](const Expr& part) {
      const Load* l = part.as<Load>();
      in_init = in_init || (l && l->buffer == buffer);
      return true;
    });
  for (; n < reader.loops.size(); ++n) {
    if (in_init && binds_reduce(*reader.stage, reader.loops[n]->var))
      refuse(Rule::compute_at_init_above,
             fmt::format("the init of \"{}\" reads {} above its reduction loop \"{}\"",
                         reader.stage->name, buffer->name, reader.loops[n]->var.name()),
             "choose a loop outside it", full_name(reader, n));
    if (reader.loops[n] == at) return n + 1;
  }
  return n;
}

LoopBox region(const Program& program, const Stage& producer, const For* at) {
  BoxBuilder builder(producer.outputs[0]->shape);
  for (const Buffer& b : producer.outputs)
    for (const StagePath& reader : readers_of(program, b)) {
      if (!is_under(reader, at))
        refuse(Rule::compute_at_reader_outside,
               fmt::format("stage \"{}\" reads {} outside loop \"{}\"", reader.stage->name, b->name,
                           at->var.name()),
               "choose a loop that all readers share, or leave the stage where it is");
      builder.add(reader, first_inside(reader, at, b), loads_of(*reader.stage, b, true));
    }
  return builder.finish();
}

}  // namespace

/// for i: P(i);  for x.o: for x.i: C reads P   ->   for x.o: { allocate P; for i in box: P(min +
/// i); for x.i: C reads P }
Program ComputeAt::apply(const Program& program, const Target&) const {
  const StagePath producer = find_stage(program, stage), consumer = find_stage(program, at_stage);
  const size_t at = find_loop(consumer, loop);
  const For* place = consumer.loops[at];
  const std::string mark = full_name(consumer, at);
  const std::vector<size_t> order = check_producer(program, producer);
  if (is_under(producer, place))
    refuse(Rule::compute_at_already,
           fmt::format("loop \"{}\" is already round stage \"{}\"", loop, stage),
           "name a loop of a stage that reads it", mark);
  check_not_vectorized(consumer, at, "computing a stage");
  const LoopBox box = region(program, *producer.stage, place);
  for (const Buffer& b : inputs_of(*producer.stage))
    if (!exists_at(program, place->var, b))
      refuse(Rule::compute_at_input_missing,
             fmt::format("stage \"{}\" reads {}, which does not exist at loop \"{}\"", stage,
                         b->name, loop),
             {}, mark);

  Simplifier math = math_for(consumer);
  const Stmt nest = nest_over_box(*producer.stage, box, math, order);
  Program out = program;
  out.body = replace_stage(program.body, stage, [](const Stage&) { return Stmt(); });
  for (const Buffer& b : producer.stage->outputs) out.body = drop_allocate(out.body, b);
  out.body = surround_body(out.body, place->var, producer.stage->outputs, nest, {});
  return out;
}

}  // namespace tenon
