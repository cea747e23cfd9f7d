#include "interp/interp.h"

#include <fmt/format.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>

#include "interp/compile_expr.h"
#include "interp/lockstep.h"

namespace tenon {
namespace {

bool binds(const Stage& stage, const Var& loop, bool reduce) {
  return std::any_of(stage.axes.begin(), stage.axes.end(), [&](const AxisBinding& b) {
    return (b.kind != AxisKind::spatial) == reduce && uses_var(b.value, loop);
  });
}

/// The start of a reduction as a nest of its own: the stage's loops from `first` on that its
/// spatial axes or guard speak of, round outputs[indices] = init.
Stmt init_nest(const StagePath& path, size_t first) {
  const Stage& stage = *path.stage;
  Stage start{.name = stage.name + ".init",
              .spatial_guard = stage.spatial_guard,
              .outputs = stage.outputs,
              .indices = stage.indices,
              .values = stage.init};
  for (const AxisBinding& b : stage.axes) {
    if (b.kind == AxisKind::spatial) start.axes.push_back(b);
  }
  Stmt nest = make_stmt(std::move(start));
  for (size_t k = path.loops.size(); k-- > first;) {
    const Var& v = path.loops[k]->var;
    bool guarded = stage.spatial_guard.defined() && uses_var(stage.spatial_guard, v);
    if (!binds(stage, v, false) && !guarded) continue;
    For loop = *path.loops[k];
    loop.body = nest;
    nest = make_stmt(std::move(loop));
  }
  return nest;
}

class StmtCompiler {
 public:
  StmtCompiler(Frame& frame, const Program& program)
      : frame_(frame), exprs_(frame), program_(program) {}

  StmtCode compile_program(std::span<const HostBuffer> args, const InterpOptions& options) {
    bind_extents(options);
    for (size_t k = 0; k < program_.params.size(); ++k) bind_param(program_.params[k], args[k]);
    if (!program_.body.defined()) return [](Frame&) {};
    place_inits();
    return compile(program_.body);
  }

 private:
  void bind_extents(const InterpOptions& options) {
    for (const Var& v : program_.symbols) {
      const auto given = options.dims.find(v.name());
      TENON_CHECK(given != options.dims.end(),
                  "interpreter: no value for the symbolic extent \"{}\" of {}", v.name(),
                  program_.name);
      TENON_CHECK(given->second >= v.range()->low && given->second <= v.range()->high,
                  "interpreter: {} = {} is outside of its range [{}, {}]", v.name(), given->second,
                  v.range()->low, v.range()->high);
      exprs_.bind(v);
      frame_.slots[static_cast<size_t>(exprs_.slot(v))] = int_value(given->second);
    }
  }

  void bind_param(const Param& p, const HostBuffer& memory) {
    std::vector<int64_t> extents;
    for (const Expr& extent : p.buffer->shape) extents.push_back(exprs_.scalar(extent)(frame_).i);
    size_t id = exprs_.open_buffer(p.buffer);
    frame_.buffers[id].tracked = p.role == ParamRole::output;
    frame_.buffers[id].start_life(extents, static_cast<std::byte*>(memory.data), ++frame_.epochs,
                                  frame_.race_mode);
  }

  /// An attached init runs directly above the outermost loop that binds a reduce axis of its stage,
  /// or at the stage when there is none.
  void place_inits() {
    for (const StagePath& path : stage_paths(program_.body)) {
      if (path.stage->init.empty()) continue;
      size_t k = 0;
      while (k < path.loops.size() && !binds(*path.stage, path.loops[k]->var, true)) ++k;
      const void* before = path.stage;
      if (k < path.loops.size()) before = path.loops[k];
      inits_[before].push_back(init_nest(path, k));
    }
  }

  StmtCode compile(const Stmt& s) {
    TENON_CHECK(s.defined(), "interpreter: a statement is missing");
    return std::visit([&](const auto& n) { return with_inits(&n, node(n, s)); }, s.node().v);
  }

  StmtCode with_inits(const void* where, StmtCode code) {
    auto found = inits_.find(where);
    if (found == inits_.end()) return code;
    std::vector<StmtCode> parts;
    for (const Stmt& nest : found->second) parts.push_back(compile(nest));
    parts.push_back(std::move(code));
    return in_order(std::move(parts));
  }

  static StmtCode in_order(std::vector<StmtCode> parts) {
    return [parts = std::move(parts)](Frame& f) {
      for (const StmtCode& part : parts) part(f);
    };
  }

  StmtCode node(const For& n, const Stmt&) {
    if (is_thread(n.mark) && !lockstep_ && has_barrier(n.body)) return block(n);
    ScalarFn min = exprs_.scalar(n.min), extent = exprs_.scalar(n.extent);
    exprs_.bind(n.var);
    int slot = exprs_.slot(n.var);
    StmtCode body = compile(n.body);
    // Lanes of a reduction are combined by one operation.
    const bool combines = n.mark == LoopMark::vectorize && n.kind == AxisKind::reduce;
    bool concurrent = frame_.race_mode && is_concurrent(n.mark) && !combines;
    return [=, loop = &n](Frame& f) {
      int64_t low = min(f).i, count = extent(f).i;
      f.loops.push_back({loop, slot});
      if (concurrent) f.race.enter(*loop);
      for (int64_t k = 0; k < count; ++k) {
        if (concurrent) f.race.iterate(low + k);
        f.slots[static_cast<size_t>(slot)] = int_value(low + k);
        body(f);
      }
      if (concurrent) f.race.leave();
      f.loops.pop_back();
    };
  }

  StmtCode node(const Store& n, const Stmt& s) {
    if (n.atomic) exprs_.set_atomic(n.buffer);
    ExprCode value = exprs_.compile(n.value);
    exprs_.set_atomic({});
    if (n.value.lanes() > 1) return vector_store(n, s, std::move(value.vector));
    std::vector<ScalarFn> at = exprs_.scalars(n.indices);
    ScalarFn mask = n.mask.defined() ? exprs_.scalar(n.mask) : ScalarFn();
    size_t id = exprs_.buffer(n.buffer);
    return [=, run = std::move(value.scalar), atomic = n.atomic, &s](Frame& f) {
      f.begin_statement(s);
      if (mask && !mask(f).i) return;
      Value v = run(f);
      int64_t indices[kMaxRank];
      for (size_t d = 0; d < at.size(); ++d) indices[d] = at[d](f).i;
      BufferState& b = f.buffers[id];
      f.write(b, f.locate(b, indices, at.size(), "writes"), v, atomic);
    };
  }

  StmtCode vector_store(const Store& n, const Stmt& s, VectorFn value) {
    TENON_CHECK(n.indices.size() == 1, "interpreter: a vector store has one index");
    VectorFn at = exprs_.compile(n.indices[0]).vector;
    VectorFn mask = n.mask.defined() ? exprs_.compile(n.mask).vector : VectorFn();
    size_t id = exprs_.buffer(n.buffer);
    const auto* ramp = n.indices[0].as<Ramp>();
    bool distinct = ramp && as_int(ramp->stride) && *as_int(ramp->stride) != 0;
    return [=, lanes = n.value.lanes(), atomic = n.atomic, &s](Frame& f) {
      f.begin_statement(s);
      const Value *v = value(f), *index = at(f), *on = mask ? mask(f) : nullptr;
      BufferState& b = f.buffers[id];
      for (int l = 0; l < lanes; ++l) {
        if (on && !on[l].i) continue;
        int64_t element = f.locate(b, &index[l].i, 1, "writes");
        for (int earlier = 0; !distinct && earlier < l; ++earlier) {
          if ((!on || on[earlier].i) && index[earlier].i == index[l].i) {
            f.fail(fmt::format("lanes {} and {} both write {}[{}]", earlier, l, b.name, element));
          }
        }
        f.write(b, element, v[l], atomic);
      }
    };
  }

  StmtCode node(const Seq& n, const Stmt&) {
    std::vector<StmtCode> parts;
    for (const Stmt& part : n.stmts) parts.push_back(compile(part));
    return in_order(std::move(parts));
  }

  StmtCode node(const If& n, const Stmt& s) {
    ScalarFn condition = exprs_.scalar(n.condition);
    StmtCode yes = compile(n.then_case),
             no = n.else_case.defined() ? compile(n.else_case) : StmtCode();
    return [=, &s](Frame& f) {
      f.statement = &s;
      if (condition(f).i)
        yes(f);
      else if (no)
        no(f);
    };
  }

  StmtCode node(const Allocate& n, const Stmt&) {
    std::vector<ScalarFn> extents = exprs_.scalars(n.buffer->shape);
    size_t id = exprs_.open_buffer(n.buffer);
    StmtCode body = compile(n.body);
    exprs_.close_buffer(n.buffer);
    return [=](Frame& f) {
      std::vector<int64_t> dims;
      for (const ScalarFn& extent : extents) dims.push_back(extent(f).i);
      f.buffers[id].start_life(std::move(dims), nullptr, ++f.epochs, f.race_mode);
      body(f);
      f.buffers[id].data = nullptr;
    };
  }

  StmtCode node(const Evaluate& n, const Stmt& s) {
    ExprCode value = exprs_.compile(n.value);
    return [=, &s](Frame& f) {
      f.begin_statement(s);
      if (value.scalar)
        value.scalar(f);
      else
        value.vector(f);
    };
  }

  StmtCode node(const LetStmt& n, const Stmt& s) {
    ExprCode value = exprs_.compile(n.value);
    exprs_.bind(n.var);
    auto at = static_cast<size_t>(exprs_.slot(n.var));
    StmtCode body = compile(n.body);
    return [=, lanes = n.var.type().lanes, &s](Frame& f) {
      f.statement = &s;
      if (lanes == 1)
        f.slots[at] = value.scalar(f);
      else
        std::copy_n(value.vector(f), lanes, &f.slots[at]);
      body(f);
    };
  }

  StmtCode node(const Barrier&, const Stmt&) {
    return [](Frame&) {};  // one thread alone waits for nobody
  }
  StmtCode node(const PrefetchLine&, const Stmt&) {
    return [](Frame&) {};
  }

  /// The threads of a block, in lockstep from barrier to barrier.
  StmtCode block(const For& outermost) {
    std::vector<ScalarFn> extents;
    std::vector<size_t> slots;
    const For* inner = &outermost;
    for (;;) {
      extents.push_back(exprs_.scalar(inner->extent));
      exprs_.bind(inner->var);
      slots.push_back(static_cast<size_t>(exprs_.slot(inner->var)));
      const For* next = inner->body.as<For>();
      if (!next || !is_thread(next->mark)) break;
      inner = next;
    }
    const auto lock = std::make_shared<Lockstep>(outermost, slots);
    lockstep_ = lock;
    StmtCode body = together(inner->body);
    lockstep_ = nullptr;
    return [=](Frame& f) {
      std::vector<int64_t> counts;
      for (const ScalarFn& extent : extents) counts.push_back(extent(f).i);
      lock->start(f, counts);
      body(f);
      lock->finish(f);
    };
  }

  /// A statement that all threads run: those round barriers once for all of them, the others thread
  /// by thread.
  StmtCode together(const Stmt& s) {
    const std::shared_ptr<Lockstep> lock = lockstep_;
    if (!has_barrier(s)) {
      StmtCode code = compile(s);
      return [=](Frame& f) { lock->for_each_thread(f, [&](Frame& g, int64_t) { code(g); }); };
    }
    if (s.as<Barrier>()) return [=](Frame& f) { lock->barrier(f); };
    if (const Seq* n = s.as<Seq>()) return in_order(segments(*n));
    if (const For* n = s.as<For>()) return uniform_loop(*n);
    if (const If* n = s.as<If>()) return uniform_branch(*n, s);
    if (const LetStmt* n = s.as<LetStmt>()) {
      ExprCode value = exprs_.compile(n->value);
      exprs_.bind(n->var);
      auto at = static_cast<size_t>(exprs_.slot(n->var));
      StmtCode body = together(n->body);
      return [=, lanes = n->var.type().lanes](Frame& f) {
        lock->push_let(f, at, lanes, value);
        body(f);
        lock->pop_let();
      };
    }
    const Allocate* n = s.as<Allocate>();
    TENON_CHECK(n, "interpreter: a barrier inside a statement that cannot hold one");
    std::vector<ScalarFn> extents = exprs_.scalars(n->buffer->shape);
    size_t id = exprs_.open_buffer(n->buffer);
    StmtCode body = together(n->body);
    exprs_.close_buffer(n->buffer);
    return [=](Frame& f) {
      lock->push_buffer(f, id, extents);
      body(f);
      lock->pop_buffer();
    };
  }

  /// Runs of statements without a barrier stay together: one thread does all of a run.
  std::vector<StmtCode> segments(const Seq& n) {
    std::vector<StmtCode> parts;
    std::vector<Stmt> run;
    const auto flush = [&] {
      if (!run.empty()) parts.push_back(together(keep(seq(run))));
      run.clear();
    };
    for (const Stmt& part : n.stmts) {
      if (!has_barrier(part)) {
        run.push_back(part);
        continue;
      }
      flush();
      parts.push_back(together(part));
    }
    flush();
    return parts;
  }

  StmtCode uniform_loop(const For& n) {
    const std::shared_ptr<Lockstep> lock = lockstep_;
    ScalarFn min = exprs_.scalar(n.min), extent = exprs_.scalar(n.extent);
    exprs_.bind(n.var);
    int slot = exprs_.slot(n.var);
    StmtCode body = together(n.body);
    return [=, loop = &n](Frame& f) {
      const int64_t low = lock->uniform(f, min, "the start of a loop"),
                    count = lock->uniform(f, extent, "the length of a loop");
      f.loops.push_back({loop, slot});
      for (int64_t k = 0; k < count; ++k) {
        f.slots[static_cast<size_t>(slot)] = int_value(low + k);
        body(f);
      }
      f.loops.pop_back();
    };
  }

  StmtCode uniform_branch(const If& n, const Stmt& s) {
    const std::shared_ptr<Lockstep> lock = lockstep_;
    ScalarFn condition = exprs_.scalar(n.condition);
    StmtCode yes = together(n.then_case),
             no = n.else_case.defined() ? together(n.else_case) : StmtCode();
    return [=, &s](Frame& f) {
      f.statement = &s;
      if (lock->uniform(f, condition, "a condition"))
        yes(f);
      else if (no)
        no(f);
    };
  }

  static bool has_barrier(const Stmt& s) {
    bool found = false;
    walk(
        s,
        [&](const Stmt& x) {
          found = found || x.as<Barrier>();
          return !found;
        },
        nullptr);
    return found;
  }

  /// Statements made here live as long as the code that points to them.
  const Stmt& keep(Stmt s) { return frame_.kept.emplace_back(std::move(s)); }

  struct StageCode {
    std::vector<std::pair<size_t, ScalarFn>> axes;
    ScalarFn spatial_guard, reduce_guard;
    std::vector<ScalarFn> indices, values, combined;
    std::vector<size_t> outputs;
    std::vector<size_t> lhs, rhs;  // slots of the combiner's variables
  };

  StmtCode node(const Stage& n, const Stmt& s) {
    StageCode code;
    for (const AxisBinding& b : n.axes) {
      ScalarFn value = exprs_.scalar(b.value);
      exprs_.bind(b.axis.var);
      code.axes.emplace_back(static_cast<size_t>(exprs_.slot(b.axis.var)), std::move(value));
    }
    if (n.spatial_guard.defined()) code.spatial_guard = exprs_.scalar(n.spatial_guard);
    if (n.reduce_guard.defined()) code.reduce_guard = exprs_.scalar(n.reduce_guard);
    code.indices = exprs_.scalars(n.indices);
    code.values = exprs_.scalars(n.values);
    TENON_CHECK(n.outputs.size() <= kMaxOutputs && n.indices.size() <= kMaxRank &&
                    n.values.size() == n.outputs.size(),
                "interpreter: stage {} has {} outputs of rank {}", n.name, n.outputs.size(),
                n.indices.size());
    for (const Buffer& b : n.outputs) code.outputs.push_back(exprs_.buffer(b));
    if (n.combiner) compile_combiner(*n.combiner, code);
    return [code = std::move(code), &s](Frame& f) { run_stage(code, s, f); };
  }

  void compile_combiner(const Combiner& c, StageCode& code) {
    for (const Var& v : c.lhs) {
      exprs_.bind(v);
      code.lhs.push_back(static_cast<size_t>(exprs_.slot(v)));
    }
    for (const Var& v : c.rhs) {
      exprs_.bind(v);
      code.rhs.push_back(static_cast<size_t>(exprs_.slot(v)));
    }
    code.combined = exprs_.scalars(c.result);
  }

  static void run_stage(const StageCode& code, const Stmt& s, Frame& f) {
    f.begin_statement(s);
    if (code.spatial_guard && !code.spatial_guard(f).i) return;
    if (code.reduce_guard && !code.reduce_guard(f).i) return;
    for (const auto& [slot, value] : code.axes) f.slots[slot] = value(f);
    int64_t indices[kMaxRank];
    size_t rank = code.indices.size(), outputs = code.outputs.size();
    for (size_t d = 0; d < rank; ++d) indices[d] = code.indices[d](f).i;
    Value results[kMaxOutputs];
    for (size_t k = 0; k < outputs; ++k) results[k] = code.values[k](f);
    for (size_t k = 0; k < code.lhs.size(); ++k) {
      BufferState& b = f.buffers[code.outputs[k]];
      f.slots[code.lhs[k]] = f.read(b, f.locate(b, indices, rank, "reads"), false);
      f.slots[code.rhs[k]] = results[k];
    }
    for (size_t k = 0; k < code.combined.size(); ++k) results[k] = code.combined[k](f);
    for (size_t k = 0; k < outputs; ++k) {
      BufferState& b = f.buffers[code.outputs[k]];
      f.write(b, f.locate(b, indices, rank, "writes"), results[k], false);
    }
  }

  Frame& frame_;
  ExprCompiler exprs_;
  const Program& program_;
  std::shared_ptr<Lockstep> lockstep_;                        // inside a block with barriers
  std::unordered_map<const void*, std::vector<Stmt>> inits_;  // by the For or Stage they run before
};

}  // namespace

void interpret(const Program& program, std::span<const HostBuffer> args,
               const InterpOptions& options) {
  TENON_CHECK(args.size() == program.params.size(),
              "interpreter: {} arguments for the {} parameters of {}", args.size(),
              program.params.size(), program.name);
  Frame frame;
  frame.race_mode = options.race_mode;
  frame.max_steps = options.max_steps;
  StmtCompiler compiler(frame, program);
  StmtCode code = compiler.compile_program(args, options);
  code(frame);
}

}  // namespace tenon
