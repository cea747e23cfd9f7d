#include "interp/compile_expr.h"

#include <tenon/ir/intrinsic.h>
#include <tenon/ir/ops.h>
#include <tenon/support/error.h>

#include <algorithm>

namespace tenon {
namespace {

/// Evaluates parts of other lanes under another set of wanted lanes.
class WithLanes {
 public:
  WithLanes(Frame& f, const Value* active) : f_(f), before_(f.active) { f.active = active; }
  ~WithLanes() { f_.active = before_; }
  WithLanes(const WithLanes&) = delete;

 private:
  Frame& f_;
  const Value* before_;
};

bool wanted(const Frame& f, int lane) { return !f.active || f.active[lane].i != 0; }

bool divides(BinaryOp op) { return op >= BinaryOp::floor_div && op <= BinaryOp::trunc_mod; }

}  // namespace

int ExprCompiler::new_slots(int count) {
  auto first = static_cast<int>(frame_.slots.size());
  frame_.slots.resize(frame_.slots.size() + static_cast<size_t>(count), int_value(0));
  return first;
}

int ExprCompiler::slot(const Var& v) {
  auto found = slots_.find(v);
  if (found != slots_.end()) return found->second;
  return slots_[v] = new_slots(v.type().lanes);
}

size_t ExprCompiler::buffer(const Buffer& b) const {
  TENON_CHECK(
      open_.count(b),
      "interpreter: buffer {} is used outside its Allocate (an attached init runs above the "
      "outermost reduction loop of its stage)",
      b->name);
  return buffers_.at(b);
}

size_t ExprCompiler::open_buffer(const Buffer& b) {
  open_.insert(b);
  auto [at, fresh] = buffers_.emplace(b, frame_.buffers.size());
  if (fresh) {
    frame_.buffers.emplace_back();
    frame_.buffers.back().name = b->name;
    frame_.buffers.back().dtype = b->dtype;
  }
  return at->second;
}

ExprCode ExprCompiler::compile(const Expr& e) {
  TENON_CHECK(e.defined(), "interpreter: an expression is missing");
  return std::visit([&](const auto& n) { return node(n, e); }, e.node().v);
}

ScalarFn ExprCompiler::scalar(const Expr& e) {
  ExprCode code = compile(e);
  TENON_CHECK(code.type.lanes == 1, "interpreter: {} is not a scalar", print(e));
  return std::move(code.scalar);
}

std::vector<ScalarFn> ExprCompiler::scalars(const std::vector<Expr>& es) {
  std::vector<ScalarFn> out;
  for (const Expr& e : es) out.push_back(scalar(e));
  return out;
}

/// f on each wanted lane of one operand.
template <class F>
ExprCode ExprCompiler::lanewise(Type type, ExprCode a, F f) {
  if (type.lanes == 1) {
    return {type, [a = std::move(a.scalar), f](Frame& x) { return f(a(x)); }, {}};
  }
  int out = new_slots(type.lanes);
  return {
      type, {}, [a = std::move(a.vector), f, out, lanes = type.lanes](Frame& x) -> const Value* {
        const Value* from = a(x);
        Value* to = &x.slots[static_cast<size_t>(out)];
        for (int l = 0; l < lanes; ++l) to[l] = f(from[l]);
        return to;
      }};
}

ExprCode ExprCompiler::node(const IntImm& n, const Expr& e) {
  return {e.type(), [v = int_value(n.value)](Frame&) { return v; }, {}};
}

ExprCode ExprCompiler::node(const FloatImm& n, const Expr& e) {
  return {e.type(), [v = float_value(round_float(n.value, e.dtype()))](Frame&) { return v; }, {}};
}

ExprCode ExprCompiler::node(const VarRef& n, const Expr& e) {
  TENON_CHECK(bound_.count(n.var), "interpreter: variable \"{}\" is bound by nothing",
              n.var.name());
  auto at = static_cast<size_t>(slot(n.var));
  if (e.lanes() == 1) return {e.type(), [at](Frame& f) { return f.slots[at]; }, {}};
  return {e.type(), {}, [at](Frame& f) -> const Value* { return &f.slots[at]; }};
}

ExprCode ExprCompiler::node(const Binary& n, const Expr& e) {
  ExprCode a = compile(n.a), b = compile(n.b);
  BinaryFn op = binary_fn(n.op, n.a.dtype());
  bool check_zero = divides(n.op);
  constexpr const char* kByZero = "integer division by zero";
  if (e.lanes() == 1) {
    if (check_zero) {
      return {e.type(),
              [a = std::move(a.scalar), b = std::move(b.scalar), op](Frame& f) {
                Value x = a(f), y = b(f);
                if (y.i == 0) f.fail(kByZero);
                return op(x, y);
              },
              {}};
    }
    return {e.type(),
            [a = std::move(a.scalar), b = std::move(b.scalar), op](Frame& f) {
              Value x = a(f);
              return op(x, b(f));
            },
            {}};
  }
  int out = new_slots(e.lanes());
  return {e.type(),
          {},
          [a = std::move(a.vector), b = std::move(b.vector), op, out, check_zero,
           lanes = e.lanes()](Frame& f) -> const Value* {
            const Value *x = a(f), *y = b(f);
            Value* to = &f.slots[static_cast<size_t>(out)];
            for (int l = 0; l < lanes; ++l) {
              if (check_zero && y[l].i == 0) {
                if (wanted(f, l)) f.fail(kByZero);
                to[l] = int_value(0);
              } else {
                to[l] = op(x[l], y[l]);
              }
            }
            return to;
          }};
}

ExprCode ExprCompiler::node(const Unary& n, const Expr& e) {
  return lanewise(e.type(), compile(n.a), unary_fn(n.op, n.a.dtype()));
}

ExprCode ExprCompiler::node(const Cast& n, const Expr& e) {
  DType from = n.value.dtype(), to = e.dtype();
  return lanewise(e.type(), compile(n.value), [from, to](Value v) { return convert(v, from, to); });
}

ExprCode ExprCompiler::node(const Bitcast& n, const Expr& e) {
  DType from = n.value.dtype(), to = e.dtype();
  return lanewise(e.type(), compile(n.value),
                  [from, to](Value v) { return reinterpret_bits(v, from, to); });
}

ExprCode ExprCompiler::node(const Call& n, const Expr& e) {
  MathFn fn = n.fn;
  DType t = e.dtype();
  ExprCode a = compile(n.args.at(0));
  if (n.args.size() == 1) {
    return lanewise(e.type(), std::move(a), [fn, t](Value v) { return math_fn(fn, t, v, v); });
  }
  ExprCode b = compile(n.args[1]);
  if (e.lanes() == 1) {
    return {e.type(),
            [a = std::move(a.scalar), b = std::move(b.scalar), fn, t](Frame& f) {
              Value x = a(f);
              return math_fn(fn, t, x, b(f));
            },
            {}};
  }
  int out = new_slots(e.lanes());
  return {e.type(),
          {},
          [a = std::move(a.vector), b = std::move(b.vector), fn, t, out,
           lanes = e.lanes()](Frame& f) -> const Value* {
            const Value *x = a(f), *y = b(f);
            Value* to = &f.slots[static_cast<size_t>(out)];
            for (int l = 0; l < lanes; ++l) to[l] = math_fn(fn, t, x[l], y[l]);
            return to;
          }};
}

ExprCode ExprCompiler::node(const Select& n, const Expr& e) {
  ExprCode condition = compile(n.condition), yes = compile(n.yes), no = compile(n.no);
  if (condition.type.lanes > 1) {
    return vector_select(e, std::move(condition), std::move(yes), std::move(no));
  }
  if (e.lanes() == 1) {
    return {e.type(),
            [c = std::move(condition.scalar), y = std::move(yes.scalar),
             n = std::move(no.scalar)](Frame& f) { return c(f).i ? y(f) : n(f); },
            {}};
  }
  return {e.type(),
          {},
          [c = std::move(condition.scalar), y = std::move(yes.vector),
           n = std::move(no.vector)](Frame& f) { return c(f).i ? y(f) : n(f); }};
}

/// Each side runs with the lanes that chose it; a side that no lane chose does not run.
ExprCode ExprCompiler::vector_select(const Expr& e, ExprCode condition, ExprCode yes, ExprCode no) {
  int lanes = e.lanes(), out = new_slots(lanes), mask = new_slots(lanes);
  auto side = [out, mask, lanes](Frame& f, const Value* chosen, const VectorFn& run, bool value) {
    Value* on = &f.slots[static_cast<size_t>(mask)];
    bool any = false;
    for (int l = 0; l < lanes; ++l) {
      on[l] = int_value(wanted(f, l) && (chosen[l].i != 0) == value);
      any |= on[l].i != 0;
    }
    if (!any) return;
    const Value* from;
    {
      WithLanes only(f, on);
      from = run(f);
    }
    for (int l = 0; l < lanes; ++l) {
      if (on[l].i) f.slots[static_cast<size_t>(out + l)] = from[l];
    }
  };
  return {e.type(),
          {},
          [c = std::move(condition.vector), y = std::move(yes.vector), n = std::move(no.vector),
           side, out, lanes](Frame& f) -> const Value* {
            const Value* chosen = c(f);
            std::fill_n(&f.slots[static_cast<size_t>(out)], lanes, int_value(0));
            side(f, chosen, y, true);
            side(f, chosen, n, false);
            return &f.slots[static_cast<size_t>(out)];
          }};
}

ExprCode ExprCompiler::node(const Load& n, const Expr& e) {
  size_t id = buffer(n.buffer);
  bool atomic = atomic_.defined() && atomic_.same_as(n.buffer);
  TENON_CHECK(n.indices.size() <= kMaxRank, "interpreter: rank {}", n.indices.size());
  if (e.lanes() > 1 || n.mask.defined()) return masked_load(n, e.type(), id, atomic);
  std::vector<ScalarFn> at = scalars(n.indices);
  return {e.type(),
          [at = std::move(at), id, atomic](Frame& f) {
            int64_t indices[kMaxRank];
            for (size_t d = 0; d < at.size(); ++d) indices[d] = at[d](f).i;
            BufferState& b = f.buffers[id];
            return f.read(b, f.locate(b, indices, at.size(), "reads"), atomic);
          },
          {}};
}

/// Lanes that the mask or the surrounding select leaves out read nothing and give 0.
ExprCode ExprCompiler::masked_load(const Load& n, Type type, size_t id, bool atomic) {
  if (type.lanes == 1) {
    Load plain{n.buffer, n.indices, {}};
    ScalarFn on = scalar(n.mask), run = scalar(make_expr(type, std::move(plain)));
    return {type,
            [on = std::move(on), run = std::move(run)](Frame& f) {
              return on(f).i ? run(f) : int_value(0);
            },
            {}};
  }
  int out = new_slots(type.lanes);
  TENON_CHECK(n.indices.size() == 1, "interpreter: a vector load has one index");
  VectorFn at = compile(n.indices[0]).vector;
  VectorFn mask = n.mask.defined() ? compile(n.mask).vector : VectorFn();
  return {type,
          {},
          [at = std::move(at), mask = std::move(mask), id, atomic, out,
           lanes = type.lanes](Frame& f) -> const Value* {
            const Value* on = mask ? mask(f) : nullptr;
            const Value* index = at(f);
            BufferState& b = f.buffers[id];
            Value* to = &f.slots[static_cast<size_t>(out)];
            for (int l = 0; l < lanes; ++l) {
              bool reads = wanted(f, l) && (!on || on[l].i);
              to[l] =
                  reads ? f.read(b, f.locate(b, &index[l].i, 1, "reads"), atomic) : int_value(0);
            }
            return to;
          }};
}

ExprCode ExprCompiler::node(const Ramp& n, const Expr& e) {
  ScalarFn base = scalar(n.base), stride = scalar(n.stride);
  BinaryFn add = binary_fn(BinaryOp::add, e.dtype());
  int out = new_slots(e.lanes());
  return {e.type(),
          {},
          [base = std::move(base), stride = std::move(stride), add, out,
           lanes = e.lanes()](Frame& f) -> const Value* {
            WithLanes all(f, nullptr);
            Value v = base(f), step = stride(f);
            Value* to = &f.slots[static_cast<size_t>(out)];
            for (int l = 0; l < lanes; ++l, v = add(v, step)) to[l] = v;
            return to;
          }};
}

ExprCode ExprCompiler::node(const Broadcast& n, const Expr& e) {
  ScalarFn value = scalar(n.value);
  int out = new_slots(e.lanes());
  return {
      e.type(), {}, [value = std::move(value), out, lanes = e.lanes()](Frame& f) -> const Value* {
        WithLanes all(f, nullptr);
        Value v = value(f);
        return std::fill_n(&f.slots[static_cast<size_t>(out)], lanes, v) - lanes;
      }};
}

ExprCode ExprCompiler::node(const Reduce&, const Expr& e) {
  throw InternalError("interpreter: a nested reduction needs a stage of its own: " + print(e));
}

ExprCode ExprCompiler::node(const Let& n, const Expr& e) {
  ExprCode value = compile(n.value);
  auto at = static_cast<size_t>(slot(n.var));
  bind(n.var);
  int lanes = n.var.type().lanes;
  ExprCode body = compile(n.body);
  auto assign = [value = std::move(value), at, lanes](Frame& f) {
    if (lanes == 1)
      f.slots[at] = value.scalar(f);
    else
      std::copy_n(value.vector(f), lanes, &f.slots[at]);
  };
  if (e.lanes() == 1) {
    return {e.type(),
            [assign, run = std::move(body.scalar)](Frame& f) {
              assign(f);
              return run(f);
            },
            {}};
  }
  return {e.type(), {}, [assign, run = std::move(body.vector)](Frame& f) {
            assign(f);
            return run(f);
          }};
}

ExprCode ExprCompiler::node(const VectorReduce& n, const Expr& e) {
  ExprCode value = compile(n.value);
  if (value.type.lanes == 1) return value;
  BinaryFn op = binary_fn(n.op, e.dtype());
  return {e.type(),
          [value = std::move(value.vector), op, lanes = n.value.lanes()](Frame& f) {
            WithLanes all(f, nullptr);
            const Value* from = value(f);
            Value out = from[0];
            for (int l = 1; l < lanes; ++l) out = op(out, from[l]);
            return out;
          },
          {}};
}

ExprCode ExprCompiler::node(const Shuffle& n, const Expr& e) {
  ExprCode value = compile(n.value);
  if (value.type.lanes == 1) return node(Broadcast{n.value, e.lanes()}, e);
  if (e.lanes() == 1) {
    return {e.type(),
            [value = std::move(value.vector), lane = n.lanes.at(0)](Frame& f) {
              WithLanes all(f, nullptr);
              return value(f)[lane];
            },
            {}};
  }
  int out = new_slots(e.lanes());
  return {e.type(),
          {},
          [value = std::move(value.vector), lanes = n.lanes, out](Frame& f) -> const Value* {
            WithLanes all(f, nullptr);
            const Value* from = value(f);
            Value* to = &f.slots[static_cast<size_t>(out)];
            for (size_t l = 0; l < lanes.size(); ++l) to[l] = from[lanes[l]];
            return to;
          }};
}

ExprCode ExprCompiler::node(const IntrinsicCall& n, const Expr&) {
  return compile(expand_intrinsic(n));
}

}  // namespace tenon
