#include <tenon/graph/network.h>
#include <tenon/graph/onnx.h>
#include <tenon/support/error.h>
#include <tenon/support/log.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

#include "graph/exec/network_state.h"

namespace tenon {

namespace {

using Place = MemoryPlan::Place;

const MemoryPlan::Home& home_of(const Network::State& state, ValueId id) {
  return state.plan.homes[static_cast<size_t>(id)];
}

}  // namespace

void* fixed_memory(const Network::State& state, ValueId id) {
  const MemoryPlan::Home& home = home_of(state, id);
  if (home.place == Place::arena) return static_cast<char*>(state.arena.raw()) + home.offset;
  if (home.place != Place::constant) return nullptr;
  const std::optional<Array>& constant = state.graph.value(home.root).constant;
  return constant ? constant->raw() : nullptr;
}

namespace {

void bind_steps(Network::State& state) {
  for (Step& step : state.steps)
    for (size_t k = 0; k < step.arguments.size(); ++k) {
      const MemoryPlan::Home& home = home_of(state, step.arguments[k]);
      step.pointers.push_back(fixed_memory(state, step.arguments[k]));
      step.arguments[k] = home.root;
      if (home.place == Place::input || home.place == Place::output) step.outside.push_back(k);
    }
}

/// Each once, also where the model lists it twice.
std::vector<OutsideValue> outside_values(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<OutsideValue> values;
  std::set<ValueId> seen;
  for (ValueId id : ids) {
    if (!seen.insert(id).second) continue;
    const Value& value = graph.value(id);
    values.push_back({id,
                      {value.name, *value.type, value.shape()},
                      static_cast<size_t>(element_count(value.shape()) * byte_size(*value.type))});
  }
  return values;
}

std::vector<NamedShape> shapes_of(const std::vector<OutsideValue>& values) {
  std::vector<NamedShape> shapes;
  for (const OutsideValue& value : values) shapes.push_back(value.shape);
  return shapes;
}

std::string shape_and_type(DType type, const std::vector<int64_t>& shape) {
  return fmt::format("{} {}", name(type), shape_text(shape));
}

void check_array(const Network::State& state, const char* kind, const NamedShape& wanted,
                 const Array& given) {
  if (given && given.dtype() == wanted.dtype && given.shape() == wanted.shape) return;
  throw UserError(
      fmt::format("network {}: {} \"{}\" is {}, the array given is {}", state.name, kind,
                  wanted.name, shape_and_type(wanted.dtype, wanted.shape),
                  given ? shape_and_type(given.dtype(), given.shape()) : "no array at all"));
}

[[noreturn]] void refuse_names(const Network::State& state, const std::vector<OutsideValue>& values,
                               const char* kind, const std::map<std::string, Array>& given) {
  std::vector<std::string> known;
  for (const OutsideValue& value : values) known.push_back(value.shape.name);
  for (const auto& [name, array] : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::vector<std::string> near = nearest_names(name, known);
    throw UserError(fmt::format("network {} has no {} \"{}\"; its {}s: {}{}", state.name, kind,
                                name, kind, join(known),
                                near.empty() ? "" : "\n  try: " + near[0]));
  }
  for (const OutsideValue& value : values) {
    const NamedShape& wanted = value.shape;
    if (given.count(wanted.name)) continue;
    throw UserError(fmt::format("network {}: {} \"{}\" ({}) is missing", state.name, kind,
                                wanted.name, shape_and_type(wanted.dtype, wanted.shape)));
  }
  throw InternalError(fmt::format("network {}: two {}s of one name", state.name, kind));
}

void check_arrays(const Network::State& state, const std::vector<OutsideValue>& values,
                  const char* kind, const std::map<std::string, Array>& arrays) {
  if (arrays.size() != values.size()) refuse_names(state, values, kind, arrays);
  for (const OutsideValue& value : values) {
    const auto at = arrays.find(value.shape.name);
    if (at == arrays.end()) refuse_names(state, values, kind, arrays);
    check_array(state, kind, value.shape, at->second);
  }
}

void set_memory(Network::State& state, const std::vector<OutsideValue>& values, const char* kind,
                const std::map<std::string, Array>& arrays) {
  check_arrays(state, values, kind, arrays);
  for (const OutsideValue& value : values)
    state.memory[static_cast<size_t>(value.id)] = arrays.find(value.shape.name)->second.raw();
}

/// Outputs that no group writes: views, and what is there before the run.
void copy_outputs(Network::State& state) {
  for (const OutsideValue& output : state.outputs) {
    const MemoryPlan::Home& home = home_of(state, output.id);
    if (output.bytes == 0 || (home.place == Place::output && home.root == output.id)) continue;
    const bool outside = home.place == Place::input || home.place == Place::output;
    const void* from =
        outside ? state.memory[static_cast<size_t>(home.root)] : fixed_memory(state, output.id);
    std::memcpy(state.memory[static_cast<size_t>(output.id)], from, output.bytes);
  }
}

void poison(const std::vector<std::span<std::byte>>& memory) {
  for (std::span<std::byte> part : memory) std::memset(part.data(), 0xff, part.size());
}

}  // namespace

Network::Network(std::unique_ptr<State> state) : state_(std::move(state)) {}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

Network Network::load(const std::filesystem::path& model, const NetworkOptions& options) {
  auto state = std::make_unique<State>();
  state->name = model.stem().string();
  state->options = options;
  const Evaluator evaluate = formula_evaluator();
  const Graph resolved =
      resolve_operators(bind_shapes(load_onnx(model), options.bindings), evaluate);
  const int64_t block = options.target.is_gpu() ? 0 : options.target.lanes(f32);
  state->graph = simplify_graph(
      resolved, evaluate,
      {.skip = options.skip_passes, .block = block, .allow_winograd = options.allow_winograd});
  state->groups = group_nodes(state->graph, {.fuse = options.fuse});
  state->plan = plan_memory(state->graph, state->groups);
  state->arena = Array::empty(u8, {state->plan.arena_bytes});
  state->memory.resize(state->graph.values.size(), nullptr);
  state->pool = options.lent ? std::make_unique<ThreadPool>(*options.lent)
                             : std::make_unique<ThreadPool>(options.threads);
  make_kernels(*state);
  make_defaults(*state);
  bind_steps(*state);
  state->inputs = outside_values(state->graph, state->graph.inputs);
  state->outputs = outside_values(state->graph, state->graph.outputs);
  if (options.poison) mark_dead_memory(*state);
  log_line(1, "graph",
           fmt::format("{}: {} nodes in {} groups, {} kernels, {} KB arena", state->name,
                       state->graph.nodes.size(), state->groups.size(), state->kernels.size(),
                       state->plan.arena_bytes / 1024));
  Network network(std::move(state));
  network.select_default();
  return network;
}

const std::string& Network::name() const { return state_->name; }
const std::vector<GroupKernel>& Network::kernels() const { return state_->kernels; }
const Graph& Network::graph() const { return state_->graph; }
int64_t Network::arena_bytes() const { return state_->plan.arena_bytes; }
int64_t Network::constant_bytes() const {
  int64_t bytes = 0;
  for (const Value& value : state_->graph.values)
    if (value.constant) bytes += value.constant->bytes();
  for (const auto& [key, packed] : state_->packed) bytes += packed.array.bytes();
  return bytes;
}
std::string Network::dot() const { return tenon::dot(state_->graph); }

std::vector<NamedShape> Network::inputs() const { return shapes_of(state_->inputs); }
std::vector<NamedShape> Network::outputs() const { return shapes_of(state_->outputs); }

void Network::set_trace(size_t kernel, Trace trace, std::string schedule) {
  GroupKernel& target = state_->kernels.at(kernel);
  state_->compiled[kernel] = Kernel();
  target.trace = std::move(trace);
  target.schedule = std::move(schedule);
}

void Network::select_default() {
  for (size_t k = 0; k < state_->kernels.size(); ++k) set_trace(k, state_->defaults[k], "default");
}

void Network::select_unscheduled() {
  for (size_t k = 0; k < state_->kernels.size(); ++k) set_trace(k, {}, "unscheduled");
}

void Network::select(const RecordStore& records, const TraceCheck& adapted_is_good) {
  std::vector<const Task*> tasks;
  for (const GroupKernel& kernel : state_->kernels) tasks.push_back(&kernel.task);
  warn_of_passed_over(records, tasks, state_->pool->workers());
  for (size_t k = 0; k < state_->kernels.size(); ++k) {
    const Task& task = state_->kernels[k].task;
    const auto recorded =
        recorded_schedule(task, records, state_->pool->workers(), adapted_is_good);
    if (recorded)
      set_trace(k, recorded->trace, recorded->schedule);
    else
      set_trace(k, state_->defaults[k], "default");
  }
}

void Network::compile(const std::function<void(size_t done, size_t all)>& progress) {
  std::vector<size_t> open;
  for (size_t k = 0; k < state_->kernels.size(); ++k)
    if (!state_->compiled[k].defined()) open.push_back(k);
  std::mutex mutex;
  size_t done = 0;
  std::atomic<size_t> next{0};  // kernels differ in what they cost: each worker takes one at a time
  state_->pool->for_ranges(state_->pool->workers(), [&](int64_t, int64_t, int32_t) {
    for (size_t i = 0; (i = next++) < open.size();) {
      const size_t k = open[i];
      state_->compiled[k] = tenon::compile(state_->kernels[k].task, state_->kernels[k].trace);
      const std::lock_guard<std::mutex> lock(mutex);
      if (progress) progress(++done, open.size());
    }
  });
  int64_t workspace = 0;
  for (const Kernel& kernel : state_->compiled)
    workspace = std::max(workspace, kernel.module().workspace_total(state_->pool->workers()));
  state_->workspace.reserve(workspace);
  prepack_constants(*state_);
}

Kernel Network::kernel(size_t index) const {
  const Kernel& kernel = state_->compiled.at(index);
  if (!kernel.defined())
    throw UserError(fmt::format("network {}: kernel {} is not compiled\n  try: compile() first",
                                state_->name, state_->kernels[index].name));
  return kernel;
}

void Network::check_inputs(const std::map<std::string, Array>& inputs) const {
  check_arrays(*state_, state_->inputs, "input", inputs);
}

void Network::run_into(const std::map<std::string, Array>& inputs,
                       std::map<std::string, Array>& outputs) {
  State& state = *state_;
  for (size_t k = 0; k < state.kernels.size(); ++k)
    if (!state.compiled[k].defined()) kernel(k);
  set_memory(state, state.inputs, "input", inputs);
  set_memory(state, state.outputs, "output", outputs);
  const ThreadPool::Busy busy(*state.pool);
  for (Step& step : state.steps) {
    for (size_t k : step.outside)
      step.pointers[k] = state.memory[static_cast<size_t>(step.arguments[k])];
    call_unchecked(state.compiled[step.kernel].module(), step.pointers.data(), nullptr, *state.pool,
                   state.workspace);
    poison(step.dead);
  }
  copy_outputs(state);
}

std::map<std::string, Array> Network::run(const std::map<std::string, Array>& inputs) {
  std::map<std::string, Array> results;
  for (const OutsideValue& output : state_->outputs)
    results[output.shape.name] = Array::empty(output.shape.dtype, output.shape.shape);
  run_into(inputs, results);
  return results;
}

}  // namespace tenon
