#include "interp/points.h"

#include <tenon/ir/ops.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "interp/compile_expr.h"

namespace tenon {
namespace {

constexpr int kMaxDepth = 1000;  // stages within stages, or steps of a scan

/// Ends an evaluation: it would take too much, or there is no way to do it.
struct NotEvaluated {};

using Elements = std::array<Value, kMaxOutputs>;

struct LoopCode {
  size_t slot = 0;
  ScalarFn low, count;
};

/// A stage as a function of the element that is asked for.
struct PointStage {
  bool supported = true;
  std::vector<size_t> outputs;         // numbers of the buffers
  std::vector<int> index_slots;        // of the loop that each index is; -1: a number
  std::vector<int64_t> index_numbers;  // that number
  std::vector<std::pair<size_t, ScalarFn>> axes;
  std::vector<LoopCode> reduce_loops;
  ScalarFn spatial_guard, reduce_guard;
  std::vector<ScalarFn> values, init, combined;
  std::vector<size_t> lhs, rhs;  // slots of the combiner's variables
  std::unordered_map<int64_t, Elements> known;
};

}  // namespace

struct PointOracle::State {
  State(const Program& unscheduled, std::span<const HostBuffer> args, const PointOptions& given)
      : program(unscheduled), options(given), exprs(frame) {
    frame.race_mode = false;
    for (const Var& v : program.symbols) {
      exprs.bind(v);
      frame.slots[static_cast<size_t>(exprs.slot(v))] = int_value(options.dims.at(v.name()));
    }
    for (size_t k = 0; k < program.params.size(); ++k) {
      const Param& p = program.params[k];
      params.push_back(open(p.buffer));
      if (p.role != ParamRole::output)
        frame.buffers[params.back()].data = static_cast<std::byte*>(args[k].data);
    }
    for (const StagePath& path : stage_paths(program.body)) {
      for (const Buffer& b : path.stage->outputs) writers[open(b)].push_back(stages.size());
      stages.push_back(std::make_unique<PointStage>());
    }
    size_t next = 0;
    for (const StagePath& path : stage_paths(program.body)) compile(path, *stages[next++]);
    for (const auto& [buffer, writing] : writers) {
      if (writing.size() > 1) stages[writing.front()]->supported = false;
      frame.buffers[buffer].source = [this, b = buffer, s = writing.front()](Frame&, int64_t e) {
        return element(*stages[s], b, e);
      };
    }
  }

  size_t open(const Buffer& b) {
    const size_t id = exprs.open_buffer(b);
    BufferState& state = frame.buffers[id];
    if (!state.dims.empty() || b->shape.empty()) return id;
    for (const Expr& extent : b->shape) state.dims.push_back(exprs.scalar(extent)(frame).i);
    state.strides.assign(state.dims.size(), 1);
    for (size_t d = state.dims.size() - 1; d-- > 0;)
      state.strides[d] = state.strides[d + 1] * state.dims[d + 1];
    return id;
  }

  size_t slot_of(const Var& v) {
    exprs.bind(v);
    return static_cast<size_t>(exprs.slot(v));
  }

  void compile(const StagePath& path, PointStage& out) {
    const Stage& s = *path.stage;
    for (const Buffer& b : s.outputs) out.outputs.push_back(exprs.buffer(b));
    for (const For* l : path.loops) {
      LoopCode loop;
      loop.low = exprs.scalar(l->min);
      loop.count = exprs.scalar(l->extent);
      loop.slot = slot_of(l->var);
      if (is_reduce_loop(s, l->var)) out.reduce_loops.push_back(std::move(loop));
    }
    for (const AxisBinding& b : s.axes) {
      ScalarFn value = exprs.scalar(b.value);
      out.axes.emplace_back(slot_of(b.axis.var), std::move(value));
    }
    for (const Expr& index : s.indices) compile_index(s, index, out);
    if (s.spatial_guard.defined()) out.spatial_guard = exprs.scalar(s.spatial_guard);
    if (s.reduce_guard.defined()) out.reduce_guard = exprs.scalar(s.reduce_guard);
    out.values = exprs.scalars(s.values);
    if (!s.combiner) return;
    out.supported = out.supported && !s.init.empty();
    out.init = exprs.scalars(s.init);
    for (const Var& v : s.combiner->lhs) out.lhs.push_back(slot_of(v));
    for (const Var& v : s.combiner->rhs) out.rhs.push_back(slot_of(v));
    out.combined = exprs.scalars(s.combiner->result);
  }

  static bool is_reduce_loop(const Stage& s, const Var& loop) {
    return std::any_of(s.axes.begin(), s.axes.end(), [&](const AxisBinding& b) {
      return b.kind == AxisKind::reduce && uses_var(b.value, loop);
    });
  }

  /// An index is a spatial axis, which is a loop, or a number: then the element says what they are.
  void compile_index(const Stage& s, const Expr& index, PointStage& out) {
    out.index_slots.push_back(-1);
    out.index_numbers.push_back(as_int(index).value_or(0));
    if (as_int(index)) return;
    const VarRef* axis = index.as<VarRef>();
    for (const AxisBinding& b : s.axes) {
      const VarRef* loop = b.value.as<VarRef>();
      if (axis && loop && b.kind != AxisKind::reduce && b.axis.var.same_as(axis->var))
        out.index_slots.back() = static_cast<int>(slot_of(loop->var));
    }
    out.supported = out.supported && out.index_slots.back() >= 0;
  }

  Value element(PointStage& stage, size_t buffer, int64_t number) {
    const auto which = static_cast<size_t>(
        std::find(stage.outputs.begin(), stage.outputs.end(), buffer) - stage.outputs.begin());
    const auto found = stage.known.find(number);
    if (found != stage.known.end()) return found->second[which];
    if (!stage.supported || depth >= kMaxDepth) throw NotEvaluated{};
    ++depth;
    const std::vector<Value> before = frame.slots;  // an axis may serve several stages
    place(stage, number);
    const Elements made = evaluate(stage);
    std::copy(before.begin(), before.end(), frame.slots.begin());
    --depth;
    return stage.known.emplace(number, made).first->second[which];
  }

  /// Sets the spatial loops to the element.
  void place(const PointStage& stage, int64_t number) {
    const BufferState& b = frame.buffers[stage.outputs.front()];
    for (size_t d = 0; d < b.dims.size(); ++d) {
      const int64_t index = number / b.strides[d] % b.dims[d];
      if (stage.index_slots[d] >= 0) {
        frame.slots[static_cast<size_t>(stage.index_slots[d])] = int_value(index);
      } else if (index != stage.index_numbers[d]) {
        throw NotEvaluated{};  // never written
      }
    }
  }

  void step() {
    if (++steps > options.max_steps) throw NotEvaluated{};
  }

  Elements evaluate(PointStage& stage) {
    step();
    if (stage.spatial_guard && !stage.spatial_guard(frame).i) throw NotEvaluated{};
    bind_axes(stage);
    Elements out{};
    const std::vector<ScalarFn>& start = stage.combined.empty() ? stage.values : stage.init;
    for (size_t k = 0; k < start.size(); ++k) out[k] = start[k](frame);
    if (!stage.combined.empty()) reduce(stage, 0, out);
    return out;
  }

  void bind_axes(PointStage& stage) {
    for (const auto& [slot, value] : stage.axes) frame.slots[slot] = value(frame);
  }

  void reduce(PointStage& stage, size_t loop, Elements& total) {
    if (loop < stage.reduce_loops.size()) {
      const LoopCode& l = stage.reduce_loops[loop];
      const int64_t low = l.low(frame).i, count = l.count(frame).i;
      for (int64_t k = 0; k < count; ++k) {
        frame.slots[l.slot] = int_value(low + k);
        reduce(stage, loop + 1, total);
      }
      return;
    }
    step();
    if (stage.reduce_guard && !stage.reduce_guard(frame).i) return;
    bind_axes(stage);
    Elements next{};
    for (size_t k = 0; k < stage.values.size(); ++k) next[k] = stage.values[k](frame);
    for (size_t k = 0; k < stage.lhs.size(); ++k) {
      frame.slots[stage.lhs[k]] = total[k];
      frame.slots[stage.rhs[k]] = next[k];
    }
    for (size_t k = 0; k < stage.combined.size(); ++k) next[k] = stage.combined[k](frame);
    total = next;
  }

  Program program;
  PointOptions options;
  Frame frame;
  ExprCompiler exprs;
  std::vector<size_t> params;
  std::map<size_t, std::vector<size_t>> writers;  // of each buffer: its stages
  std::vector<std::unique_ptr<PointStage>> stages;
  int64_t steps = 0;
  int depth = 0;
};

PointOracle::PointOracle(const Program& unscheduled, std::span<const HostBuffer> args,
                         const PointOptions& options)
    : state_(std::make_unique<State>(unscheduled, args, options)) {}

PointOracle::~PointOracle() = default;

std::optional<double> PointOracle::at(size_t parameter, int64_t element) {
  const size_t buffer = state_->params.at(parameter);
  BufferState& b = state_->frame.buffers[buffer];
  TENON_CHECK(b.source, "{} is no output", b.name);
  const std::vector<Value> before = state_->frame.slots;
  state_->depth = 0;
  try {
    const Value v = b.source(state_->frame, element);
    return is_float(b.dtype) ? v.f : static_cast<double>(v.i);
  } catch (const NotEvaluated&) {
    state_->frame.slots = before;
    return std::nullopt;
  }
}

int64_t PointOracle::steps() const { return state_->steps; }

}  // namespace tenon
