#include <fmt/format.h>
#include <tenon/ir/intrinsic.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <set>
#include <type_traits>

#include "ir/verify_expr.h"

namespace tenon {
namespace {

/// Lowering drops loops that run nothing.
bool has_no_elements(const BufferNode& b) {
  return std::any_of(b.shape.begin(), b.shape.end(), [](const Expr& e) { return is_const(e, 0); });
}

class Verifier {
 public:
  Verifier(const Program& program, Form form) : program_(program), form_(form) {}

  std::vector<std::string> errors() {
    check_symbols();
    for (const Param& param : program_.params) {
      if (!declared_.insert(param.buffer.get()).second) report("a parameter stands twice");
      if (param.buffer->scope != Scope::global) report("a parameter must have global scope");
      for (const Expr& extent : param.buffer->shape) check_expr(extent);
      declare(param.buffer);
    }
    if (program_.body.defined()) check(program_.body);
    for (const Param& param : program_.params) {
      if (param.role == ParamRole::output && !written_.count(param.buffer.get()) &&
          !has_no_elements(*param.buffer)) {
        report(fmt::format("output {} is never written", param.buffer->name));
      }
    }
    return std::move(errors_);
  }

 private:
  void report(const std::string& rule) {
    std::string where = stage_ ? "stage " + stage_->name + ": " : "";
    if (where.empty() && !loops_.empty()) where = "under loop " + loops_.back()->var.name() + ": ";
    if (errors_.size() < 100) errors_.push_back(where + rule);
  }
  /// `rule` is text or, where it takes work to write, a function that gives it.
  template <class Words>
  void need(bool holds, const Words& rule) {
    if (holds) return;
    if constexpr (std::is_invocable_v<Words>)
      report(rule());
    else
      report(rule);
  }

  /// Symbolic extents are in scope everywhere. A call binds each by a dimension of a parameter,
  /// which flat code no longer has.
  void check_symbols() {
    std::set<std::string> names;
    std::set<const VarNode*> bound;
    for (const Param& p : program_.params) {
      for (const Expr& extent : p.buffer->shape) {
        const auto term = symbol_term(extent);
        need(term || form_ == Form::Flat, [&] {
          return fmt::format("the extent {} of parameter {} is neither a number nor c + k * symbol",
                             extent.defined() ? print(extent) : "undefined", p.buffer->name);
        });
        if (term && term->symbol.defined()) bound.insert(term->symbol.get());
      }
    }
    for (const Var& v : program_.symbols) {
      vars_.insert(v.get());
      need(v.is_symbol() && v.type() == Type{i64, 1} && v.range()->low >= 0 &&
               v.range()->low <= v.range()->high,
           [&] { return fmt::format("symbol {} is no i64 with a range of extents", v.name()); });
      need(names.insert(v.name()).second,
           [&] { return fmt::format("two symbols are called {}", v.name()); });
      need(form_ == Form::Flat || bound.count(v.get()),
           [&] { return fmt::format("symbol {} is the extent of no parameter", v.name()); });
    }
  }

  /// A buffer comes into scope.
  void declare(const Buffer& b) {
    buffers_.push_back(b);
    depths_.push_back(loops_.size());
    need(form_ == Form::LoopTree || b->shape.size() == 1, [&] {
      return fmt::format("buffer {} has rank {}; flat code has one-dimensional buffers", b->name,
                         b->shape.size());
    });
    for (const Expr& extent : b->shape) {
      need(extent.defined() && extent.type() == Type{i64, 1},
           [&] { return fmt::format("an extent of {} is not a scalar i64", b->name); });
    }
  }

  void check_expr(const Expr& e, const std::set<const VarNode*>& vars) {
    if (!e.defined()) return report("an operand is missing");
    verify_expr(e, form_, [&](const std::string& rule) { report(rule); });
    for (const Var& v : free_vars(e)) {
      need(vars.count(v.get()) > 0, [&] {
        return fmt::format("variable \"{}\" in {} is not bound here", v.name(), print(e));
      });
    }
    walk(e, [&](const Expr& part) {
      if (const auto* l = part.as<Load>()) use(l->buffer, l->indices, "reads");
      return true;
    });
  }
  void check_expr(const Expr& e) { check_expr(e, vars_); }
  void check_guard(const Expr& e) {
    if (!e.defined()) return;
    check_expr(e);
    need(e.type() == Type{boolean, 1},
         [&] { return fmt::format("the condition {} is not a bool", print(e)); });
  }

  void use(const Buffer& b, const std::vector<Expr>& indices, std::string_view verb) {
    bool known = std::find(buffers_.begin(), buffers_.end(), b) != buffers_.end();
    need(known, [&] {
      return fmt::format("{} buffer {}, which is neither a parameter nor allocated around it", verb,
                         b->name);
    });
    if (form_ == Form::Flat && b->scope == Scope::reg) check_register(b, indices);
  }
  /// Register elements become SSA values: whole vectors, places known once the unrolled loops are.
  void check_register(const Buffer& b, const std::vector<Expr>& indices) {
    const auto at = std::find(buffers_.begin(), buffers_.end(), b);
    for (size_t k = at == buffers_.end() ? loops_.size() : depths_[size_t(at - buffers_.begin())];
         k < loops_.size(); ++k) {
      need(loops_[k]->mark != LoopMark::parallel, [&] {
        return fmt::format(
            "register buffer {} is used inside parallel loop {}, but allocated outside", b->name,
            loops_[k]->var.name());
      });
    }
    for (const Expr& index : indices) {
      const auto* r = index.as<Ramp>();
      need(index.lanes() == 1 || (r && is_const(r->stride, 1)), [&] {
        return fmt::format("register buffer {} needs whole vectors, not [{}]", b->name,
                           print(index));
      });
      for (const Var& v : free_vars(index)) {
        bool unrolled = std::any_of(loops_.begin(), loops_.end(), [&](const For* loop) {
          return loop->var.same_as(v) && loop->mark == LoopMark::unroll;
        });
        need(unrolled, [&] {
          return fmt::format("register buffer {} is indexed by \"{}\", which is no unrolled loop",
                             b->name, v.name());
        });
      }
    }
  }

  void write(const Buffer& b, const std::vector<Expr>& indices) {
    use(b, indices, "writes");
    written_.insert(b.get());
    need(indices.size() == b->shape.size(), [&] {
      return fmt::format("{} indices for buffer {} of rank {}", indices.size(), b->name,
                         b->shape.size());
    });
    for (const Param& p : program_.params) {
      need(p.role == ParamRole::output || !p.buffer.same_as(b),
           [&] { return fmt::format("writes input {}", b->name); });
    }
  }

  void check(const Stmt& s) {
    if (!s.defined()) return report("a statement is missing");
    std::visit([&](const auto& node) { rule(node); }, s.node().v);
  }

  void bind_and_check(const Var& v, const Stmt& body) {
    bool fresh = vars_.insert(v.get()).second;
    need(fresh,
         [&] { return fmt::format("variable \"{}\" is bound twice on one path", v.name()); });
    check(body);
    if (fresh) vars_.erase(v.get());
  }

  /// Kernels: block loops outermost, thread loops directly inside them, an axis once.
  void check_bound(const For& loop) {
    if (!is_bound(loop.mark)) return;
    for (const For* outer : loops_) {
      need(outer->mark != loop.mark, [&] {
        return fmt::format("loops {} and {} are both bound to {}", outer->var.name(),
                           loop.var.name(), name(loop.mark));
      });
      need(is_block(outer->mark) || (is_thread(loop.mark) && is_thread(outer->mark)), [&] {
        return fmt::format("{} loop {} lies inside loop {}", name(loop.mark), loop.var.name(),
                           outer->var.name());
      });
    }
  }

  void rule(const For& loop) {
    check_expr(loop.min);
    check_expr(loop.extent);
    const std::string& name = loop.var.name();
    need(loop.min.type() == Type{i64, 1} && loop.extent.type() == Type{i64, 1} &&
             loop.var.type() == Type{i64, 1},
         [&] { return fmt::format("loop {} is not over i64", name); });
    need((loop.mark == LoopMark::tensorize) == (loop.intrinsic != nullptr), [&] {
      return fmt::format("loop {} is marked tensorize without an intrinsic, or the reverse", name);
    });
    need(loop.kind != AxisKind::sequential || loop.mark == LoopMark::serial ||
             loop.mark == LoopMark::unroll,
         [&] {
           return fmt::format("loop {} runs along a scan and is marked {}", name,
                              tenon::name(loop.mark));
         });
    if (form_ == Form::LoopTree) {
      need(is_const(loop.min, 0), [&] { return fmt::format("loop {} does not start at 0", name); });
    } else {
      // Products of tiles stay loops until code generation.
      need(!makes_lanes(loop.mark) || (loop.intrinsic && parts_of(*loop.intrinsic).is_tile()),
           [&] { return fmt::format("loop {} is still to be vectorised", name); });
      bool nested = std::any_of(loops_.begin(), loops_.end(),
                                [](const For* l) { return l->mark == LoopMark::parallel; });
      need(loop.mark != LoopMark::parallel || !nested,
           [&] { return fmt::format("parallel loop {} lies inside a parallel loop", name); });
      check_bound(loop);
      need(loop.mark != LoopMark::unroll || as_int(loop.extent).has_value(),
           [&] { return fmt::format("unrolled loop {} has no constant extent", name); });
    }
    loops_.push_back(&loop);
    bind_and_check(loop.var, loop.body);
    loops_.pop_back();
  }
  void rule(const Store& s) {
    check_expr(s.value);
    need(s.value.dtype() == s.buffer->dtype, [&] {
      return fmt::format("stores {} into buffer {} of {}", name(s.value.dtype()), s.buffer->name,
                         name(s.buffer->dtype));
    });
    for (const Expr& index : s.indices) {
      check_expr(index);
      need(index.type() == Type{i64, s.value.lanes()}, [&] {
        return fmt::format("index {} of a store needs i64 and {} lanes", print(index),
                           s.value.lanes());
      });
    }
    if (s.mask.defined()) {
      need(form_ == Form::Flat, "a mask is for flat code only");
      check_expr(s.mask);
      need(s.mask.type() == Type{boolean, s.value.lanes()}, "the mask of a store has another type");
    }
    need(!s.atomic || form_ == Form::Flat, "an atomic store is for flat code only");
    write(s.buffer, s.indices);
  }
  void rule(const Seq& s) {
    for (const Stmt& part : s.stmts) check(part);
  }
  void rule(const If& s) {
    check_guard(s.condition);
    check(s.then_case);
    if (s.else_case.defined()) check(s.else_case);
  }
  void rule(const Allocate& s) {
    for (const Expr& extent : s.buffer->shape) check_expr(extent);
    need(declared_.insert(s.buffer.get()).second,
         [&] { return fmt::format("buffer {} is allocated twice", s.buffer->name); });
    declare(s.buffer);
    check(s.body);
    buffers_.pop_back();
    depths_.pop_back();
  }
  void rule(const Evaluate& s) { check_expr(s.value); }
  void rule(const LetStmt& s) {
    check_expr(s.value);
    need(s.value.type() == s.var.type(),
         [&] { return fmt::format("let {} has another type", s.var.name()); });
    bind_and_check(s.var, s.body);
  }
  void rule(const Barrier&) { need(form_ == Form::Flat, "a barrier is for flat code only"); }
  void rule(const PrefetchLine& s) {
    need(form_ == Form::Flat, "a prefetch is for flat code only; in a loop tree it is a note");
    use(s.buffer, s.indices, "prefetches");
    need(s.buffer->scope != Scope::reg,
         [&] { return fmt::format("prefetches register buffer {}", s.buffer->name); });
    for (const Expr& index : s.indices) {
      check_expr(index);
      need(index.type() == Type{i64, 1},
           [&] { return fmt::format("index {} of a prefetch is not a scalar i64", print(index)); });
    }
  }

  void rule(const Stage& stage) {
    stage_ = &stage;
    need(form_ == Form::LoopTree, "flat code has no stages");
    need(stage_names_.insert(stage.name).second, "another stage has this name");
    need(!stage.outputs.empty(), "has no output");
    size_t n = stage.outputs.size();
    need(stage.values.size() == n,
         [&] { return fmt::format("{} values for {} outputs", stage.values.size(), n); });
    check_axes(stage);
    check_guard(stage.spatial_guard);
    check_guard(stage.reduce_guard);
    std::set<const VarNode*> spatial = axis_vars(stage, false), all = axis_vars(stage, true);
    const bool started_elsewhere = stage.combiner && stage.init.empty();  // a scatter may be so
    for (const Expr& index : stage.indices) {
      check_expr(index, started_elsewhere ? all : spatial);
      need(index.type() == Type{i64, 1},
           [&] { return fmt::format("index {} is not a scalar i64", print(index)); });
    }
    for (const Buffer& b : stage.outputs) write(b, stage.indices);
    check_values(stage, stage.values, all, "value");
    if (!stage.init.empty()) check_values(stage, stage.init, spatial, "init");
    check_combiner(stage);
    check_init_scope(stage);
    stage_ = nullptr;
  }

  /// An attached init runs above the outermost loop that binds a reduce axis: its buffers must
  /// live there.
  void check_init_scope(const Stage& stage) {
    if (stage.init.empty()) return;
    const auto reduces = [&](const For* loop) {
      return std::any_of(stage.axes.begin(), stage.axes.end(), [&](const AxisBinding& b) {
        return b.kind == AxisKind::reduce && b.value.defined() && uses_var(b.value, loop->var);
      });
    };
    const auto above = std::find_if(loops_.begin(), loops_.end(), reduces);
    if (above == loops_.end()) return;
    const auto depth = static_cast<size_t>(above - loops_.begin());
    const auto lives = [&](const Buffer& b) {
      const auto at = std::find(buffers_.begin(), buffers_.end(), b);
      if (at == buffers_.end()) return;  // reported elsewhere
      need(depths_[static_cast<size_t>(at - buffers_.begin())] <= depth, [&] {
        return fmt::format(
            "its init runs above reduction loop {}, inside which buffer {} is allocated",
            (*above)->var.name(), b->name);
      });
    };
    for (const Buffer& b : stage.outputs) lives(b);
    for (const Expr& e : stage.init) {
      if (!e.defined()) continue;
      walk(e, [&](const Expr& part) {
        if (const auto* l = part.as<Load>()) lives(l->buffer);
        return true;
      });
    }
  }

  void check_values(const Stage& stage, const std::vector<Expr>& values,
                    const std::set<const VarNode*>& vars, std::string_view role) {
    need(values.size() == stage.outputs.size(),
         [&] { return fmt::format("one {} per output is needed", role); });
    for (size_t k = 0; k < values.size(); ++k) {
      check_expr(values[k], vars);
      if (k >= stage.outputs.size() || !values[k].defined()) continue;
      DType wanted = stage.outputs[k]->dtype;
      need(values[k].dtype() == wanted, [&] {
        return fmt::format("{} {} is {} and its buffer {}", role, k, name(values[k].dtype()),
                           name(wanted));
      });
    }
  }

  void check_combiner(const Stage& stage) {
    if (!stage.combiner) {
      need(stage.init.empty(), "has an init and no combiner");
      need(!stage.reduce_guard.defined(), "has a reduce guard and no combiner");
      return;
    }
    size_t n = stage.outputs.size();
    const Combiner& c = *stage.combiner;
    need(c.lhs.size() == n && c.rhs.size() == n && c.result.size() == n && c.identity.size() == n,
         [&] { return fmt::format("combiner {} is not over {} elements", c.name, n); });
  }

  void check_axes(const Stage& stage) {
    bool reduce_seen = false;
    std::set<const VarNode*> seen;
    for (const AxisBinding& b : stage.axes) {
      need(seen.insert(b.axis.var.get()).second,
           [&] { return fmt::format("axis {} stands twice", b.axis.var.name()); });
      check_expr(b.value);
      if (b.value.defined()) {
        need(b.value.type() == Type{i64, 1},
             [&] { return fmt::format("axis {} is not i64", b.axis.var.name()); });
      }
      need(b.kind != AxisKind::spatial || !reduce_seen,
           "spatial axes must stand before reduce axes");
      reduce_seen |= b.kind == AxisKind::reduce;
    }
  }

  /// What the body of a stage may speak of: its axes and symbolic extents, never a loop.
  std::set<const VarNode*> axis_vars(const Stage& stage, bool with_reduce) const {
    std::set<const VarNode*> out = vars_;
    for (const For* loop : loops_) out.erase(loop->var.get());
    for (const AxisBinding& b : stage.axes) {
      if (with_reduce || b.kind != AxisKind::reduce) out.insert(b.axis.var.get());
    }
    return out;
  }

  const Program& program_;
  Form form_;
  std::vector<std::string> errors_;
  std::set<const BufferNode*> declared_, written_;
  std::vector<Buffer> buffers_;    // in scope
  std::vector<size_t> depths_;     // of them: the number of loops around
  std::set<const VarNode*> vars_;  // in scope; asked for membership only
  std::vector<const For*> loops_;
  std::set<std::string> stage_names_;
  const Stage* stage_ = nullptr;
};

}  // namespace

std::vector<std::string> verify_errors(const Program& program, Form form) {
  return Verifier(program, form).errors();
}

void verify(const Program& program, Form form) {
  std::vector<std::string> errors = verify_errors(program, form);
  if (errors.empty()) return;
  size_t shown = std::min<size_t>(errors.size(), 5);
  std::string list;
  for (size_t k = 0; k < shown; ++k) list += "  " + errors[k] + "\n";
  throw InternalError(fmt::format("program {} is not well-formed {} ({} rules broken)\n{}{}",
                                  program.name, form == Form::Flat ? "flat code" : "as a loop tree",
                                  errors.size(), list, print(program)));
}

}  // namespace tenon
