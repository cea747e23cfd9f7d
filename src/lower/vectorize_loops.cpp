#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <set>

#include "lower/lane_plan.h"
#include "lower/passes.h"
#include "lower/util.h"

namespace tenon {
namespace {

// Up to so many chunks of a loop are unrolled when nothing else asks for it.
constexpr int64_t kMaxUnrolledChunks = 8;

Expr both_lanes(const Expr& a, const Expr& b) {
  if (!a.defined()) return b;
  return b.defined() ? a && b : a;
}

Expr to_lanes(const Expr& e, int lanes) { return e.lanes() == lanes ? e : broadcast(e, lanes); }

Expr any_lane(const Expr& mask) {
  return mask.lanes() > 1 ? vector_reduce(BinaryOp::logical_or, mask) : mask;
}

bool divides_integers(const Binary& n) {
  return n.op == BinaryOp::floor_div || n.op == BinaryOp::floor_mod ||
         n.op == BinaryOp::trunc_div || n.op == BinaryOp::trunc_mod;
}

// What holds where a statement or an expression is evaluated. Conditions are scalars or vectors;
// undefined: true.
struct Context {
  const For* loop = nullptr;  // the vectorised loop around, null outside
  Var lane;                   // stands for the lane number until an expression becomes a vector
  int lanes = 1;
  Expr tail;    // lanes that exist: a vector, never all off
  Expr guard;   // lanes whose guards hold: a vector
  Expr chosen;  // the side of a select
};

// Register buffers with a store that leaves lanes of a vector out: only those hold lanes that were
// never written beside lanes that were. Asked for membership only.
using PartialBuffers = std::set<const BufferNode*>;

// One expression of a statement, from scalars over the lane variable to vectors. Uniform parts stay
// scalar.
class LaneExpr {
 public:
  LaneExpr(Context context, Simplifier& simplifier, VarMap& lets, const BufferMap& per_lane,
           const PartialBuffers& partial)
      : c_(std::move(context)),
        simplifier_(simplifier),
        lets_(lets),
        per_lane_(per_lane),
        partial_(partial) {}

  Expr operator()(const Expr& e) {
    if (!e.defined() || e.as<IntImm>() || e.as<FloatImm>()) return e;
    auto [at, fresh] = memo_.try_emplace(e.get(), e, Expr());
    if (fresh) {
      Expr out = convert(e);
      memo_.at(e.get()).second = out;
      return out;
    }
    return at->second.second;
  }

  // An i64 index: a scalar, a ramp or a vector.
  Expr index(const Expr& e) { return (*this)(simplifier_.simplify(e)); }

  // The index of an access, for buffers that each lane has of its own as well.
  Expr access_index(const Buffer& buffer, const Expr& e) {
    if (!per_lane_.count(buffer)) return index(e);
    return index(e * int_imm(c_.lanes) + Expr(c_.lane));
  }
  Buffer access_buffer(const Buffer& buffer) const {
    auto it = per_lane_.find(buffer);
    return it == per_lane_.end() ? buffer : it->second;
  }

 private:
  Expr convert(const Expr& e) {
    if (const VarRef* n = e.as<VarRef>()) {
      if (c_.loop && n->var.same_as(c_.lane)) return ramp(int_imm(0), int_imm(1), c_.lanes);
      auto it = lets_.find(n->var);
      return it == lets_.end() ? e : it->second;
    }
    if (e.type() == Type{DType::i64, 1} && c_.loop && uses_var(e, c_.lane)) {
      if (Expr out = as_ramp(e); out.defined()) return out;
    }
    if (const Load* n = e.as<Load>()) return convert_load(*n);
    if (const Select* n = e.as<Select>()) return convert_select(*n);
    if (const Let* n = e.as<Let>()) {
      const Expr value = (*this)(n->value);
      const Var var(n->var.name(), value.type());
      lets_[n->var] = var;
      return let(var, value, (*this)(n->body));
    }
    if (const Call* n = e.as<Call>()) {
      std::vector<Expr> args;
      int lanes = 1;
      for (const Expr& a : n->args) args.push_back((*this)(a));
      for (const Expr& a : args) lanes = std::max(lanes, a.lanes());
      for (Expr& a : args) a = to_lanes(a, lanes);
      return call(n->fn, std::move(args));
    }
    if (const Binary* n = e.as<Binary>(); n && divides_integers(*n)) {
      return binary(n->op, (*this)(n->a), safe_divisor((*this)(n->b)));
    }
    return map_children(e, [&](const Expr& part) { return (*this)(part); });
  }

  // base + stride*lane
  Expr as_ramp(const Expr& e) {
    Affine form = simplifier_.affine(e);
    const int64_t stride = form.coefficient(c_.lane);
    form.add(c_.lane, -stride);
    if (form.overflow) return {};
    for (const Affine::Term& t : form.terms) {
      if (uses_var(t.atom, c_.lane) || (*this)(t.atom).lanes() > 1) return {};
    }
    const Expr base = (*this)(to_expr(form));
    return stride == 0 ? base : ramp(base, int_imm(stride), c_.lanes);
  }

  // Lanes that are off divide by 1.
  Expr safe_divisor(const Expr& divisor) const {
    const Expr on = both_lanes(both_lanes(c_.tail, c_.guard), c_.chosen);
    const Expr one = int_imm(1, divisor.dtype());
    if (!on.defined() || as_int(divisor)) return divisor;
    return divisor.lanes() == 1 ? select(any_lane(on), divisor, one)
                                : select(on, divisor, to_lanes(one, divisor.lanes()));
  }

  bool in_bounds(const Buffer& buffer, const Expr& index) {
    return simplifier_.prove(int_imm(0) <= index && index < buffer->shape[0]);
  }

  Expr convert_load(const Load& n) {
    const Expr scalar_index = simplifier_.simplify(n.indices[0]);
    const Expr at = access_index(n.buffer, scalar_index);
    const Buffer buffer = access_buffer(n.buffer);
    Expr on = n.mask.defined() ? (*this)(n.mask) : Expr();
    if (buffer->scope == Scope::reg) {
      const bool padded = partial_.count(n.buffer.get()) || per_lane_.count(n.buffer);
      if (at.lanes() > 1 && padded) on = both_lanes(on, c_.tail);
      if (at.lanes() > 1) on = both_lanes(on, c_.guard);
    } else if (at.lanes() > 1) {
      on = both_lanes(on, both_lanes(c_.tail, c_.guard));
      if (c_.chosen.defined() && !in_bounds(n.buffer, scalar_index)) on = both_lanes(on, c_.chosen);
    } else if (c_.guard.defined() || c_.chosen.defined()) {
      const Expr needed = both_lanes(c_.guard, c_.chosen);
      if (!in_bounds(n.buffer, scalar_index)) on = both_lanes(on, any_lane(needed));
    }
    if (on.defined()) on = to_lanes(on, at.lanes());
    return load(buffer, {at}, on);
  }

  Expr convert_select(const Select& n) {
    const Expr condition = (*this)(n.condition);
    const Expr yes = side(n.yes, condition), no = side(n.no, !condition);
    return select(condition, yes, no);
  }
  Expr side(const Expr& e, const Expr& condition) {
    bool loads = false;
    walk(e, [&](const Expr& x) {
      const Binary* n = x.as<Binary>();
      return !(loads |= x.as<Load>() || (n && divides_integers(*n)));
    });
    if (!loads) return (*this)(e);
    Context inner = c_;
    inner.chosen = both_lanes(c_.chosen, condition);
    return LaneExpr(std::move(inner), simplifier_, lets_, per_lane_, partial_)(e);
  }

  Context c_;
  Simplifier& simplifier_;
  VarMap& lets_;
  const BufferMap& per_lane_;
  const PartialBuffers& partial_;
  std::unordered_map<const ExprNode*, std::pair<Expr, Expr>> memo_;  // the first keeps the node
};

class Vectorizer {
 public:
  // `partial`: what an earlier run found; loads of those have the tail mask.
  Vectorizer(const Program& program, const Target& target, PartialBuffers partial)
      : name_(program.name),
        plan_(plan_lanes(program.body, target)),
        simplifier_(simplifier_for(program.body)),
        partial_(std::move(partial)) {}

  const PartialBuffers& partial() const { return found_; }

  Stmt stmt(const Stmt& s, const Context& c) {
    if (!s.defined()) return s;
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
            [&](const Stage& n) -> Stmt {
              TENON_CHECK(false, "stage {} is still in the program", n.name);
              return s;
            }},
        s.node().v);
  }

 private:
  LaneExpr expr(const Context& c) { return LaneExpr(c, simplifier_, lets_, per_lane_, partial_); }

  Stmt loop(const For& n, const Context& c);
  Stmt chunks(const For& n);
  Stmt chunk(const For& n, const Expr& first, const Expr& tail);
  Stmt full_chunks(const For& n, const Expr& first, const Expr& count);
  Stmt store(const Store& n, const Context& c);
  Stmt branch(const If& n, const Context& c);
  Stmt allocate(const Allocate& n, const Context& c);
  Stmt let_stmt(const LetStmt& n, const Context& c);
  [[noreturn]] void refuse(const Context& c, const std::string& why) const {
    throw UserError(fmt::format("lower error in {}: loop \"{}\" cannot be vectorised: {}", name_,
                                c.loop->var.name(), why));
  }

  std::string name_;
  LanePlan plan_;
  Simplifier simplifier_;
  VarMap lets_;
  BufferMap per_lane_;
  PartialBuffers partial_, found_;
};

Stmt Vectorizer::loop(const For& n, const Context& c) {
  if (n.mark == LoopMark::vectorize) {
    Context own = c;
    own.loop = &n;
    if (c.loop) {
      refuse(c, fmt::format("it encloses loop \"{}\", which is vectorised too\n  try: one of them",
                            n.var.name()));
    }
    if (n.kind == AxisKind::reduce) {
      refuse(
          own,
          "it is a reduction loop: its iterations write the same elements\n  try: rfactor it, or "
          "vectorize a spatial loop");
    }
    return chunks(n);
  }
  For out = n;
  out.min = expr(c)(n.min);
  out.extent = expr(c)(n.extent);
  if (out.min.lanes() > 1 || out.extent.lanes() > 1) {
    refuse(c, fmt::format("the bounds of loop \"{}\" inside differ between its iterations",
                          n.var.name()));
  }
  out.body = stmt(n.body, c);
  return out.body.defined() ? make_stmt(std::move(out)) : Stmt();
}

// The body on whole vectors whose lane 0 is iteration `first`.
Stmt Vectorizer::chunk(const For& n, const Expr& first, const Expr& tail) {
  Context c;
  c.loop = &n;
  c.lanes = plan_.lanes.at(n.var.get());
  c.lane = Var(n.var.name() + ".lane");
  c.tail = tail;
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
  simplifier_.set_range(out.var, loop_range(out, simplifier_));
  out.body = chunk(n, first + Expr(out.var) * int_imm(lanes), {});
  return out.body.defined() ? make_stmt(std::move(out)) : Stmt();
}

// [masked head] full chunks [masked tail]. There is a head only where the loop starts inside a
// register vector.
Stmt Vectorizer::chunks(const For& n) {
  const int lanes = plan_.lanes.at(n.var.get());
  if (lanes == 1) {
    For out = n;
    out.mark = as_int(n.extent) ? LoopMark::unroll : LoopMark::serial;
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

Stmt Vectorizer::store(const Store& n, const Context& c) {
  LaneExpr lanes = expr(c);
  const Buffer buffer = lanes.access_buffer(n.buffer);
  const Expr at = lanes.access_index(n.buffer, n.indices[0]);
  const Expr value = lanes(n.value);
  Expr mask = n.mask.defined() ? lanes(n.mask) : Expr();
  if (at.lanes() == 1) {
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
    // Lanes past the end belong to the padding: writing them is free and saves a blend.
    mask = both_lanes(mask, c.guard);
    if (mask.defined()) found_.insert(n.buffer.get());
  } else {
    mask = both_lanes(mask, both_lanes(c.tail, c.guard));
  }
  if (mask.defined()) mask = to_lanes(mask, c.lanes);
  return make_stmt(Store{buffer, {at}, to_lanes(value, c.lanes), mask, n.atomic});
}

// Uniform parts of the condition stay a branch, the others become masks.
Stmt Vectorizer::branch(const If& n, const Context& c) {
  Expr uniform, mask;
  std::vector<Expr> parts;
  if (n.else_case.defined())
    parts.push_back(n.condition);
  else
    parts = conjuncts(n.condition);
  for (const Expr& part : parts) {
    const Expr converted = expr(c)(part);
    Expr& into = converted.lanes() > 1 ? mask : uniform;
    into = both_lanes(into, converted);
  }
  Context yes = c, no = c;
  if (mask.defined()) {
    yes.guard = both_lanes(c.guard, mask);
    no.guard = both_lanes(c.guard, !mask);
  }
  const Stmt then_case = stmt(n.then_case, yes), else_case = stmt(n.else_case, no);
  if (mask.defined() && else_case.defined()) return seq({then_case, else_case});
  if (!uniform.defined()) return then_case;
  return make_stmt(If{uniform, then_case, else_case});
}

// Each iteration of a vectorised loop has a buffer of its own: one with an element per lane.
Stmt Vectorizer::allocate(const Allocate& n, const Context& c) {
  if (!c.loop) return make_stmt(Allocate{n.buffer, stmt(n.body, c)});
  BufferNode node = *n.buffer;
  node.shape[0] = node.shape[0] * int_imm(c.lanes);
  const Buffer wide(std::move(node));
  per_lane_[n.buffer] = wide;
  return make_stmt(Allocate{wide, stmt(n.body, c)});
}

Stmt Vectorizer::let_stmt(const LetStmt& n, const Context& c) {
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
