#include <tenon/ir/ops.h>
#include <tenon/schedule/restructure_primitives.h>

#include <algorithm>

#include "schedule/mark.h"
#include "schedule/place.h"

namespace tenon {
namespace {

constexpr int64_t kMaxNodes = 4000;

bool is_map_over_axes(const Stage& stage) {
  return !stage.combiner && indexed_by_axes(stage) && stage.indices.size() == stage.axes.size();
}

/// The last stage before the consumer that writes one of its inputs.
StagePath producer_of(const Program& program, const StagePath& consumer) {
  const Stage& stage = *consumer.stage;
  StagePath found;
  for (StagePath& p : stage_paths(program.body)) {
    if (p.stage == &stage) break;
    for (const Buffer& b : inputs_of(stage))
      if (writes(*p.stage, b)) found = p;
  }
  if (!found.stage)
    refuse(Rule::fold_input,
           fmt::format("stage \"{}\" reads nothing that a stage before it writes", stage.name));
  if (found.stage->combiner)
    refuse(Rule::fold_reduction,
           fmt::format("stage \"{}\" is a reduction; a consumer can be folded into a map only",
                       found.stage->name),
           fmt::format("cache_write \"{0}\" first and fold into the copy \"{0}.store\", or "
                       "reverse_compute_at a loop of \"{0}\"",
                       found.stage->name));
  if (!is_map_over_axes(*found.stage))
    refuse(Rule::fold_indices,
           fmt::format("stage \"{}\" is not indexed by its own axes, one per dimension",
                       found.stage->name));
  return found;
}

void check_consumer(const Program& program, const Stage& stage) {
  if (stage.combiner)
    refuse(Rule::fold_reduction,
           fmt::format("stage \"{}\" is a reduction; only a map can be folded into what it reads",
                       stage.name),
           "reverse_compute_at a loop of what it reads");
  if (!is_map_over_axes(stage))
    refuse(Rule::fold_indices, fmt::format("stage \"{}\" is not indexed by its own axes, one per "
                                           "dimension",
                                           stage.name));
  for (const StagePath& p : stage_paths(program.body)) {
    if (p.stage == &stage) break;
    for (const Buffer& b : stage.outputs)
      if (reads(*p.stage, b) || writes(*p.stage, b))
        refuse(Rule::fold_touched,
               fmt::format("stage \"{}\" touches {} before \"{}\" writes its elements",
                           p.stage->name, b->name, stage.name));
  }
  for (const Buffer& b : stage.outputs)
    if (writers_of(program, b).size() != 1)
      refuse(Rule::fold_two_writers, fmt::format("another stage also writes {}", b->name));
}

void check_producer(const Program& program, const Stage& producer, const Stage& consumer) {
  for (const Buffer& b : producer.outputs) {
    if (is_output(program, b))
      refuse(Rule::fold_output,
             fmt::format("{} is an output of the program; it would not be written", b->name));
    if (writers_of(program, b).size() != 1)
      refuse(Rule::fold_two_writers, fmt::format("another stage also writes {}", b->name),
             "reverse_compute_at instead");
    for (const StagePath& reader : readers_of(program, b))
      if (reader.stage != &consumer)
        refuse(Rule::fold_two_readers,
               fmt::format("stage \"{}\" also reads {}", reader.stage->name, b->name),
               "reverse_compute_at instead");
  }
}

/// What the consumer touches besides is ready, and exists, where the producer stands.
void check_surroundings(const Program& program, const Stage& producer, const Stage& consumer) {
  const size_t here = top_nest(program, producer.name);
  for (const Buffer& b : inputs_of(consumer)) {
    if (writes(producer, b)) continue;
    for (const StagePath& w : writers_of(program, b))
      if (top_nest(program, w.stage->name) >= here)
        refuse(Rule::fold_input_later,
               fmt::format("stage \"{}\" also reads {}, which stage \"{}\" writes in the nest of "
                           "\"{}\"",
                           consumer.name, b->name, w.stage->name, producer.name),
               "reverse_compute_at instead");
    if (!exists_for(program, producer.name, b))
      refuse(Rule::fold_missing,
             fmt::format("stage \"{}\" reads {}, which does not exist where \"{}\" stands",
                         consumer.name, b->name, producer.name));
  }
  for (const Buffer& b : consumer.outputs)
    if (!exists_for(program, producer.name, b))
      refuse(Rule::fold_missing,
             fmt::format("stage \"{}\" writes {}, which does not exist where \"{}\" stands",
                         consumer.name, b->name, producer.name));
}

/// How one dimension of a read goes along an axis of the consumer: as the axis does (step 0), or as
/// its quotient or remainder by `step`.
struct Along {
  size_t axis = 0;
  int64_t step = 0;
  bool quotient = false;
};

std::optional<Along> along(const Expr& index, const Stage& consumer) {
  const Binary* b = index.as<Binary>();
  const int64_t step = b ? as_int(b->b).value_or(1) : 0;
  const bool quotient = b && b->op == BinaryOp::floor_div;
  if (b && (step < 2 || !(quotient || b->op == BinaryOp::floor_mod))) return std::nullopt;
  const VarRef* ref = b ? b->a.as<VarRef>() : index.as<VarRef>();
  for (size_t n = 0; ref && n < consumer.axes.size(); ++n)
    if (ref->var.same_as(consumer.axes[n].axis.var)) return Along{n, step, quotient};
  return std::nullopt;
}

/// The dimensions of what is read that one axis of the consumer goes along.
struct Ties {
  std::optional<size_t> whole, quotient, remainder;
  int64_t step = 0;

  bool any() const { return whole || quotient || remainder; }
};

/// Adds one; false when the axis already goes elsewhere.
bool add_tie(Ties& ties, const Along& a, size_t d) {
  std::optional<size_t>& place = a.step == 0  ? ties.whole
                                 : a.quotient ? ties.quotient
                                              : ties.remainder;
  if (place || (ties.step != 0 && ties.step != a.step)) return false;
  place = d;
  ties.step = a.step;
  return ties.whole.has_value() != (ties.quotient || ties.remainder);
}

/// Where the consumer's axis is, by the axes of the producer: one of them, or quotient * step +
/// remainder. Undefined when those are not all of it.
Expr place_of(const Ties& ties, const Expr& extent, const Stage& producer, const Buffer& read) {
  if (!ties.any()) return is_const(extent, 1) ? int_imm(0) : Expr();
  const auto axis = [&](size_t d) { return Expr(producer.axes[d].axis.var); };
  if (ties.whole)
    return structural_equal(extent, read->shape[*ties.whole]) ? axis(*ties.whole) : Expr();
  if (!ties.quotient || !ties.remainder) return {};
  const auto whole = as_int(extent), quotients = as_int(read->shape[*ties.quotient]);
  const bool all = whole && quotients && is_const(read->shape[*ties.remainder], ties.step) &&
                   *quotients == (*whole + ties.step - 1) / ties.step;
  return all ? axis(*ties.quotient) * int_imm(ties.step) + axis(*ties.remainder) : Expr();
}

/// Where each axis of the consumer is, by the producer's axes, from its loads of what the producer
/// writes.
VarMap tie_axes(const Stage& producer, const Stage& consumer) {
  VarMap tied;
  auto misfit = [&](const Load& l, size_t d) {
    refuse(Rule::fold_index,
           fmt::format("stage \"{}\" reads {} at [{}]: dimension {} is not one of its axes alone, "
                       "all of it and at the same place in every read, nor the quotient or the "
                       "remainder of one",
                       consumer.name, l.buffer->name, print(l.indices[d]), d),
           "compute_inline the producer instead");
  };
  auto tie = [&](const Load& l) {
    std::vector<Ties> ties(consumer.axes.size());
    for (size_t d = 0; d < l.indices.size(); ++d) {
      if (is_const(l.indices[d], 0) && is_const(l.buffer->shape[d], 1)) continue;
      const auto a = along(l.indices[d], consumer);
      if (!a || !add_tie(ties[a->axis], *a, d)) misfit(l, d);
    }
    size_t along_read = 0;
    for (size_t n = 0; n < ties.size(); ++n)
      along_read += ties[n].any() || is_const(consumer.axes[n].axis.extent, 1);
    if (along_read != ties.size())
      refuse(
          Rule::fold_index,
          fmt::format("stage \"{}\" has {} axes and reads along {} of the {} of \"{}\"",
                      consumer.name, ties.size(), along_read, producer.axes.size(), producer.name),
          "compute_inline the producer instead");
    for (size_t n = 0; n < ties.size(); ++n) {
      const size_t d = ties[n].whole.value_or(ties[n].quotient.value_or(0));
      const Expr place = place_of(ties[n], consumer.axes[n].axis.extent, producer, l.buffer);
      if (!place.defined()) {
        misfit(l, d);
        continue;
      }
      const auto [known, fresh] = tied.emplace(consumer.axes[n].axis.var, place);
      if (!fresh && !structural_equal(known->second, place)) misfit(l, d);
    }
  };
  for (const Expr& e : consumer.values)
    walk(e, [&](const Expr& part) {
      const Load* l = part.as<Load>();
      if (l && writes(producer, l->buffer)) tie(*l);
      return true;
    });
  return tied;
}

/// The last quotient has a remainder for each element of the producer, and the axis may end before.
Expr inside(const Stage& producer, const Stage& consumer, const VarMap& axes) {
  VarMap loops;
  for (const AxisBinding& b : producer.axes) loops.emplace(b.axis.var, b.value);
  Expr guard;
  for (const AxisBinding& b : consumer.axes) {
    const auto place = axes.find(b.axis.var);
    const Binary* sum = place == axes.end() ? nullptr : place->second.as<Binary>();
    const Binary* product = sum ? sum->a.as<Binary>() : nullptr;
    const auto extent = as_int(b.axis.extent), step = product ? as_int(product->b) : std::nullopt;
    if (!extent || !step || *extent % *step == 0) continue;
    const Expr here = substitute(place->second, loops) < b.axis.extent;
    guard = both(guard, here);
  }
  return guard;
}

Stage folded(const Stage& producer, const Stage& consumer, const VarMap& axes) {
  const ExprFn expand = [&](const Expr& e) {
    const Load* l = e.as<Load>();
    if (!l) return e;
    const auto found = std::find(producer.outputs.begin(), producer.outputs.end(), l->buffer);
    if (found == producer.outputs.end()) return e;
    return producer.values[static_cast<size_t>(found - producer.outputs.begin())];
  };
  Stage out = producer;
  out.outputs = consumer.outputs;
  out.indices = consumer.indices;
  for (Expr& e : out.indices) e = substitute(e, axes);
  out.values = consumer.values;
  for (Expr& e : out.values) e = rewrite(substitute(e, axes), expand);
  if (const Expr guard = inside(producer, consumer, axes); guard.defined())
    out.spatial_guard = both(out.spatial_guard, guard);
  // Axes stand in index order.
  std::vector<AxisBinding> ordered;
  for (const Expr& index : out.indices)
    for (const AxisBinding& b : producer.axes)
      if (uses_var(index, b.axis.var)) ordered.push_back(b);
  if (ordered.size() == out.axes.size()) out.axes = std::move(ordered);
  return out;
}

void check_size(const Stage& stage, const std::string& consumer) {
  int64_t nodes = 0;
  for (const Expr& e : stage.values)
    walk(e, [&](const Expr&) {
      ++nodes;
      return true;
    });
  if (nodes > kMaxNodes)
    refuse(Rule::fold_limit,
           fmt::format("stage \"{}\" would grow to {} nodes by taking \"{}\"; the limit is {}",
                       stage.name, nodes, consumer, kMaxNodes),
           "reverse_compute_at instead");
}

/// A producer may compute an element in several iterations, for itself; the output is shared.
void check_marked_loops(const Program& program, const std::string& stage) {
  const StagePath path = find_stage(program, stage);
  for (size_t n = 0; n < path.loops.size(); ++n)
    if (is_concurrent(path.loops[n]->mark)) check_iterations(path, n, ReverseComputeInline::kName);
}

}  // namespace

/// for i: P(i) = f(i);  for j: D(j) = g(P(j))   ->   for i: D(i) = g(f(i))
/// for r, q: P(r,q) = f(r,q);  for j: D(j) = g(P(j%s, j//s))   ->   for r, q: D(q*s+r) = g(f(r,q))
Program ReverseComputeInline::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const Stage& consumer = *path.stage;
  check_consumer(program, consumer);
  const StagePath producer_path = producer_of(program, path);
  const Stage& producer = *producer_path.stage;
  check_producer(program, producer, consumer);
  check_surroundings(program, producer, consumer);
  const Stage both = folded(producer, consumer, tie_axes(producer, consumer));
  check_size(both, stage);

  Program out = program;
  out.body = replace_stage(program.body, stage, [](const Stage&) { return Stmt(); });
  out.body =
      replace_stage(out.body, producer.name, [&](const Stage&) { return make_stmt(Stage(both)); });
  for (const Buffer& b : producer.outputs) out.body = drop_allocate(out.body, b);
  check_marked_loops(out, producer.name);
  return out;
}

}  // namespace tenon
