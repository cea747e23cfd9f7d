#include <tenon/ir/intrinsic.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <functional>

#include "ir/tile_nest.h"
#include "lower/lane_expr.h"
#include "lower/lane_plan.h"
#include "lower/passes.h"
#include "lower/tensor_update.h"
#include "lower/util.h"

namespace tenon {
namespace {

// Up to so many chunks of a loop are unrolled when nothing else asks for it.
constexpr int64_t kMaxUnrolledChunks = 8;

// What a lane that is off adds: x op neutral == x (-0.0 for sums of floats). Undefined: op combines
// no lanes.
Expr neutral_of(BinaryOp op, DType t) {
  switch (op) {
    case BinaryOp::add:
      return is_float(t) ? float_imm(-0.0, t) : zero(t);
    case BinaryOp::mul:
      return imm(1, t);
    case BinaryOp::min:
      return min_combiner(t)->identity[0];
    case BinaryOp::max:
      return max_combiner(t)->identity[0];
    case BinaryOp::logical_and:
      return bool_imm(true);
    case BinaryOp::logical_or:
      return bool_imm(false);
    default:
      return {};
  }
}

class Vectorizer {
 public:
  // `partial`: what an earlier run found; loads of those have the tail mask.
  Vectorizer(const Program& program, const Target& target, PartialBuffers partial)
      : name_(program.name),
        target_(target),
        plan_(plan_lanes(program.body, target)),
        simplifier_(simplifier_for(program.body)),
        partial_(std::move(partial)) {
    for (const Param& p : program.params)
      if (p.role == ParamRole::output) scope_.outside.emplace(p.buffer.get(), 0);
  }

  const PartialBuffers& partial() const { return found_; }

  Stmt stmt(const Stmt& s, const LaneContext& c) {
    if (!s.defined()) return s;
    if (c.intrinsic) {
      if (const Stmt found = tensor_update(s, c); found.defined()) return found;
    }
    return std::visit(
        overloaded{
            [&](const For& n) { return loop(n, c); }, [&](const Store& n) { return store(n, c); },
            [&](const Seq& n) {
              std::vector<Stmt> parts;
              for (const Stmt& part : n.stmts) parts.push_back(stmt(part, c));
              return seq(std::move(parts));
            },
            [&](const If& n) { return branch(n, c); },
            [&](const Allocate& n) { return allocate(n, c); },
            [&](const Evaluate& n) { return make_stmt(Evaluate{expr(c)(n.value)}); },
            [&](const LetStmt& n) { return let_stmt(n, c); }, [&](const Barrier&) { return s; },
            [&](const PrefetchLine& n) { return prefetch(n, c); },
            [&](const Stage& n) -> Stmt {
              TENON_CHECK(false, "stage {} is still in the program", n.name);
              return s;
            }},
        s.node().v);
  }

 private:
  LaneExpr expr(const LaneContext& c) {
    return LaneExpr(c, simplifier_, lets_, per_lane_, partial_, scope_);
  }

  Stmt loop(const For& n, const LaneContext& c);
  Stmt tensor_loop(const For& n);
  Stmt tile_loop(const For& n);
  Stmt tensor_update(const Stmt& s, const LaneContext& c);
  Stmt chunks(const For& n);
  Stmt chunk(const For& n, const Expr& first, const Expr& tail);
  Stmt inside(const For& n, const std::function<Stmt()>& body);
  Stmt full_chunks(const For& n, const Expr& first, const Expr& count);
  Stmt store(const Store& n, const LaneContext& c);
  Stmt prefetch(const PrefetchLine& n, const LaneContext& c);
  Stmt combine_lanes(const Store& n, const LaneContext& c);
  Stmt branch(const If& n, const LaneContext& c);
  Stmt allocate(const Allocate& n, const LaneContext& c);
  Stmt let_stmt(const LetStmt& n, const LaneContext& c);
  [[noreturn]] void refuse(const LaneContext& c, const std::string& why) const {
    throw UserError(fmt::format("lower error in {}: loop \"{}\" cannot be vectorised: {}", name_,
                                c.loop->var.name(), why));
  }

  std::string name_;
  const Target& target_;
  LanePlan plan_;
  Simplifier simplifier_;
  VarMap lets_;
  BufferMap per_lane_;
  PartialBuffers partial_, found_;
  LaneScope scope_;
  bool tensorized_ = false;  // the formula of the loop at hand was found
  std::string difference_;   // or why not
};

Stmt Vectorizer::loop(const For& n, const LaneContext& c) {
  if (makes_lanes(n.mark)) {
    LaneContext own = c;
    own.loop = &n;
    if (c.loop) {
      refuse(c, fmt::format("it encloses loop \"{}\", which is vectorised too\n  try: one of them",
                            n.var.name()));
    }
    if (n.kind == AxisKind::reduce && n.intrinsic) {
      refuse(
          own,
          "it is a reduction loop: its iterations write the same elements\n  try: rfactor it, or "
          "vectorize a spatial loop");
    }
    if (n.kind == AxisKind::sequential)
      refuse(own, "it runs along a scan: each iteration needs the one before");
    if (n.intrinsic && parts_of(*n.intrinsic).is_tile()) return tile_loop(n);
    return n.intrinsic ? tensor_loop(n) : chunks(n);
  }
  For out = n;
  out.min = expr(c)(n.min);
  out.extent = expr(c)(n.extent);
  if (out.min.lanes() > 1 || out.extent.lanes() > 1) {
    refuse(c, fmt::format("the bounds of loop \"{}\" inside differ between its iterations",
                          n.var.name()));
  }
  LaneContext inside = c;
  inside.intrinsic = nullptr;  // an intrinsic has no loops but the one that was looked at
  out.body = this->inside(n, [&] { return stmt(n.body, inside); });
  return out.body.defined() ? make_stmt(std::move(out)) : Stmt();
}

// A loop whose lanes run an intrinsic. Schedules keep the formula intact; what is not it here was
// marked otherwise.
Stmt Vectorizer::tensor_loop(const For& n) {
  tensorized_ = plan_.lanes.at(n.var.get()) == 1;
  difference_ = "its body is not one update of the elements of its lanes";
  const Stmt out = chunks(n);
  if (out.defined() && !tensorized_) {
    throw UserError(fmt::format(
        "lower error in {}: loop \"{}\" cannot be tensorized as {}: {}\n  try: a copy of the "
        "operand with a layout that puts the elements of a lane next to each other",
        name_, n.var.name(), n.intrinsic->name, difference_));
  }
  return out;
}

// A product of tiles stays as it is for the code generator; on a target without them it is loops.
Stmt Vectorizer::tile_loop(const For& n) {
  const auto& known = n.intrinsic->implementations;
  const bool runs = std::any_of(known.begin(), known.end(), [&](const IntrinsicImplementation& c) {
    return runs_on(c, target_);
  });
  if (runs && find_tile_nest(n)) return make_stmt(n);
  if (runs)
    throw UserError(fmt::format(
        "lower error in {}: loop \"{}\" cannot be tensorized as {}: its loops are no whole tiles "
        "under one update\n  try: pad_einsum to multiples of the tile, splits by them",
        name_, n.var.name(), n.intrinsic->name));
  For out = n;
  out.mark = LoopMark::serial;
  out.intrinsic = nullptr;
  return loop(out, {});
}

Stmt Vectorizer::tensor_update(const Stmt& s, const LaneContext& c) {
  const TensorUpdate found = find_tensor_update(
      s, c, [&](const LaneContext& inner) { return expr(inner); }, simplifier_, target_);
  if (found.kind == TensorUpdate::Kind::none) {
    if (!found.why.empty()) difference_ = found.why;
    return {};
  }
  tensorized_ = true;
  LaneContext inside = c;
  inside.intrinsic = nullptr;
  if (found.kind == TensorUpdate::Kind::plain) return stmt(s, inside);
  lets_[found.variable] = found.value;
  inside.guard = both_lanes(c.guard, found.mask);
  const Stmt out = store(found.store, inside);
  return found.uniform.defined() ? make_stmt(If{found.uniform, out, {}}) : out;
}

Stmt Vectorizer::inside(const For& n, const std::function<Stmt()>& body) {
  scope_.loops.emplace_back(n.var, n.min);
  Stmt out = body();
  scope_.loops.pop_back();
  return out;
}

// The body on whole vectors whose lane 0 is iteration `first`.
Stmt Vectorizer::chunk(const For& n, const Expr& first, const Expr& tail) {
  LaneContext c;
  c.loop = &n;
  c.lanes = plan_.lanes.at(n.var.get());
  c.lane = Var(n.var.name() + ".lane");
  c.tail = tail;
  c.combines = n.kind == AxisKind::reduce;
  c.intrinsic = n.intrinsic;
  simplifier_.set_range(c.lane, Interval::extent(c.lanes));
  const Stmt body = refresh(n.body);
  learn_ranges(simplifier_, body);
  return stmt(substitute(body, {{n.var, simplifier_.simplify(first + Expr(c.lane))}}), c);
}

Stmt Vectorizer::full_chunks(const For& n, const Expr& first, const Expr& count) {
  const auto number = as_int(count);
  const int lanes = plan_.lanes.at(n.var.get());
  if (number && *number <= 0) return {};
  if (number && *number == 1) return chunk(n, first, {});
  For out = n;
  out.var = Var(n.var.name() + ".v");
  out.min = int_imm(0);
  out.extent = count;
  const bool unroll =
      plan_.in_registers.at(n.var.get()) || (number && *number <= kMaxUnrolledChunks);
  out.mark = unroll ? LoopMark::unroll : LoopMark::serial;
  out.intrinsic = nullptr;
  simplifier_.set_range(out.var, loop_range(out, simplifier_));
  out.body = inside(out, [&] { return chunk(n, first + Expr(out.var) * int_imm(lanes), {}); });
  return out.body.defined() ? make_stmt(std::move(out)) : Stmt();
}

// [masked head] full chunks [masked tail]. There is a head only where the loop starts inside a
// register vector.
Stmt Vectorizer::chunks(const For& n) {
  const int lanes = plan_.lanes.at(n.var.get());
  if (lanes == 1) {
    For out = n;
    out.mark = as_int(n.extent) ? LoopMark::unroll : LoopMark::serial;
    out.intrinsic = nullptr;
    return loop(out, {});
  }
  const Expr lane_numbers = ramp(int_imm(0), int_imm(1), lanes);
  const auto min = as_int(n.min), extent = as_int(n.extent);
  if (!min || !extent) {
    const Expr count = simplifier_.simplify(floor_div(n.extent, int_imm(lanes)));
    const Expr rest = simplifier_.simplify(floor_mod(n.extent, int_imm(lanes)));
    const Stmt tail = chunk(n, n.min + count * int_imm(lanes), lane_numbers < rest);
    return seq({full_chunks(n, n.min, count), make_stmt(If{rest > int_imm(0), tail, {}})});
  }
  const int64_t end = *min + *extent;
  int64_t at = *min;
  std::vector<Stmt> parts;
  if (plan_.in_registers.at(n.var.get()) && floor_mod(at, lanes) != 0) {
    const int64_t start = floor_div(at, lanes) * lanes;
    Expr on = lane_numbers >= int_imm(at - start);
    if (end < start + lanes) on = on && lane_numbers < int_imm(end - start);
    parts.push_back(chunk(n, int_imm(start), on));
    at = std::min(end, start + lanes);
  }
  const int64_t full = (end - at) / lanes;
  parts.push_back(full_chunks(n, int_imm(at), int_imm(full)));
  at += full * lanes;
  if (at < end) parts.push_back(chunk(n, int_imm(at), lane_numbers < int_imm(end - at)));
  return seq(std::move(parts));
}

// x = x op term for each lane   ->   x = x op reduce(terms), lanes that are off being neutral
Stmt Vectorizer::combine_lanes(const Store& n, const LaneContext& c) {
  const Binary* update = n.value.as<Binary>();
  const Load* old = update ? update->a.as<Load>() : nullptr;
  const Expr neutral = update ? neutral_of(update->op, n.value.dtype()) : Expr();
  if (!old || !neutral.defined() || !(old->buffer == n.buffer) ||
      !structural_equal(old->indices[0], n.indices[0])) {
    refuse(c, fmt::format("its lanes are not combined by one operation in {}\n  try: rfactor it",
                          n.buffer->name));
  }
  LaneExpr lanes = expr(c);
  Expr terms = to_lanes(lanes(update->b), c.lanes);
  const Expr on = both_lanes(c.tail, c.guard);
  if (on.defined()) terms = select(to_lanes(on, c.lanes), terms, to_lanes(neutral, c.lanes));
  const Expr value = binary(update->op, lanes(update->a), vector_reduce(update->op, terms));
  const Expr mask = n.mask.defined() ? lanes(n.mask) : Expr();
  const Buffer buffer = lanes.access_buffer(n.buffer);
  const Expr at = lanes.access_index(n.buffer, n.indices[0]);
  const Stmt out = make_stmt(Store{buffer, {at}, value, mask, n.atomic});
  return c.guard.defined() ? make_stmt(If{any_lane(on), out, {}}) : out;
}

Stmt Vectorizer::store(const Store& n, const LaneContext& c) {
  LaneExpr lanes = expr(c);
  const Buffer buffer = lanes.access_buffer(n.buffer);
  const Expr at = lanes.access_index(n.buffer, n.indices[0]);
  const Expr value = lanes(n.value);
  Expr mask = n.mask.defined() ? lanes(n.mask) : Expr();
  if (at.lanes() == 1) {
    if (c.combines) return combine_lanes(n, c);
    if (value.lanes() > 1) {
      refuse(c, fmt::format("all its iterations write the same element {}[{}]\n  try: vectorize a "
                            "loop that runs along the output, or rfactor the reduction",
                            n.buffer->name, print(at)));
    }
    const Stmt out = make_stmt(Store{buffer, {at}, value, mask, n.atomic});
    if (!c.guard.defined()) return out;
    return make_stmt(If{any_lane(both_lanes(c.tail, c.guard)), out, {}});
  }
  if (buffer->scope == Scope::reg) {
    const Ramp* r = at.as<Ramp>();
    if (!r || !is_const(r->stride, 1)) {
      refuse(c,
             fmt::format("it writes register buffer {} at [{}], which is no whole vector\n  try: "
                         "give the buffer a layout with this loop's axis innermost",
                         n.buffer->name, print(at)));
    }
    // Lanes past the end belong to the padding, where all loops end there: writing them is free and
    // saves a blend.
    mask = both_lanes(mask, c.guard);
    if (plan_.uneven.count(n.buffer.get())) mask = both_lanes(mask, c.tail);
    if (mask.defined()) found_.insert(n.buffer.get());
  } else {
    mask = both_lanes(mask, both_lanes(c.tail, c.guard));
  }
  if (mask.defined()) mask = to_lanes(mask, c.lanes);
  return make_stmt(Store{buffer, {at}, to_lanes(value, c.lanes), mask, n.atomic});
}

// What the first lane asks for; nothing where that is no scalar. A hint need not be complete.
Stmt Vectorizer::prefetch(const PrefetchLine& n, const LaneContext& c) {
  if (per_lane_.count(n.buffer)) return {};
  VarMap first;
  if (c.loop) first.emplace(c.lane, int_imm(0));
  LaneExpr lanes = expr(c);
  const Expr at = lanes.index(substitute(n.indices[0], first));
  if (at.lanes() > 1) return {};
  return make_stmt(PrefetchLine{n.buffer, {at}});
}

// Uniform parts of the condition stay a branch, the others become masks.
Stmt Vectorizer::branch(const If& n, const LaneContext& c) {
  Expr uniform, mask, first;
  std::vector<Expr> parts;
  if (n.else_case.defined())
    parts.push_back(n.condition);
  else
    parts = conjuncts(n.condition);
  for (const Expr& part : parts) {
    const Expr converted = expr(c)(part);
    Expr& into = converted.lanes() > 1 ? mask : uniform;
    into = both_lanes(into, converted);
    if (converted.lanes() > 1) first = both_lanes(first, substitute(part, {{c.lane, int_imm(0)}}));
  }
  LaneContext yes = c, no = c;
  if (mask.defined()) {
    yes.guard = both_lanes(c.guard, mask);
    no.guard = both_lanes(c.guard, !mask);
    yes.first = both_lanes(c.first, first);
    no.first = both_lanes(c.first, !first);
  }
  const Stmt then_case = stmt(n.then_case, yes), else_case = stmt(n.else_case, no);
  if (mask.defined() && else_case.defined()) return seq({then_case, else_case});
  if (!uniform.defined()) return then_case;
  return make_stmt(If{uniform, then_case, else_case});
}

// Each iteration of a vectorised loop has a buffer of its own: one with an element per lane.
Stmt Vectorizer::allocate(const Allocate& n, const LaneContext& c) {
  if (!c.loop) {
    scope_.outside[n.buffer.get()] = scope_.loops.size();
    return make_stmt(Allocate{n.buffer, stmt(n.body, c)});
  }
  BufferNode node = *n.buffer;
  node.shape[0] = node.shape[0] * int_imm(c.lanes);
  const Buffer wide(std::move(node));
  per_lane_[n.buffer] = wide;
  return make_stmt(Allocate{wide, stmt(n.body, c)});
}

Stmt Vectorizer::let_stmt(const LetStmt& n, const LaneContext& c) {
  const Expr value = expr(c)(n.value);
  if (value.lanes() == 1) return make_stmt(LetStmt{n.var, value, stmt(n.body, c)});
  const Var var(n.var.name(), value.type());
  lets_[n.var] = var;
  return make_stmt(LetStmt{var, value, stmt(n.body, c)});
}

}  // namespace

Program vectorize_loops(const Program& program, const Target& target) {
  Program out = program;
  Vectorizer first(program, target, {});
  out.body = first.stmt(program.body, {});
  if (!first.partial().empty()) {
    out.body = Vectorizer(program, target, first.partial()).stmt(program.body, {});
  }
  return out;
}

}  // namespace tenon
