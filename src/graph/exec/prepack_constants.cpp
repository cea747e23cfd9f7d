#include <tenon/support/error.h>
#include <tenon/support/hash.h>
#include <tenon/support/text.h>

#include <set>

#include "graph/exec/network_state.h"

namespace tenon {

namespace {

using Place = MemoryPlan::Place;

std::string key_text(const Parameter& p) {
  std::vector<std::string> extents;
  for (const Extent& e : p.packer->parameters[0].shape) extents.push_back(std::to_string(e.value));
  return fmt::format("{} [{}] {}", name(p.dtype), join(extents), p.layout);
}

class Prepacker {
 public:
  explicit Prepacker(Network::State& state) : state_(state) { keep_outputs(); }

  void run() {
    for (Step& step : state_.steps)
      for (size_t k = 0; k < step.arguments.size(); ++k) bind(step, k);
    state_.packed = std::move(packed_);
    for (const ValueId id : dropped_)
      if (!kept_.count(id)) value(id).constant.reset();
  }

 private:
  Value& value(ValueId id) { return state_.graph.values[static_cast<size_t>(id)]; }
  const MemoryPlan::Home& home(ValueId id) const {
    return state_.plan.homes[static_cast<size_t>(id)];
  }

  /// What is copied out after the run.
  void keep_outputs() {
    for (const OutsideValue& output : state_.outputs)
      if (home(output.id).place == Place::constant) keep(home(output.id).root);
  }

  void keep(ValueId root) {
    kept_.insert(root);
    original(root);
  }

  void bind(Step& step, size_t k) {
    const ValueId root = step.arguments[k];
    if (home(root).place != Place::constant) return;
    const Kernel& kernel = state_.compiled[step.kernel];
    if (kernel.module().parameters[k].packer) {
      step.pointers[k] = packed(kernel, k, root).raw();
      dropped_.insert(root);
    } else {
      keep(root);
      step.pointers[k] = fixed_memory(state_, root);
    }
  }

  uint64_t hash_of(ValueId root) {
    const auto known = state_.hashes.find(root);
    if (known != state_.hashes.end()) return known->second;
    const Array array = original(root);
    return state_.hashes[root] = hash_bytes(array.raw(), static_cast<size_t>(array.bytes()));
  }

  const Array& packed(const Kernel& kernel, size_t k, ValueId root) {
    const Parameter& p = kernel.module().parameters[k];
    const auto key = std::pair(hash_of(root), key_text(p));
    if (const auto made = packed_.find(key); made != packed_.end()) return made->second.array;
    const auto before = state_.packed.find(key);
    if (before != state_.packed.end())
      return packed_.emplace(key, before->second).first->second.array;
    Shape shape;
    for (const Extent& e : p.packer->parameters[0].shape) shape.push_back(e.value);
    const Array array = prepack(kernel.module(), k, original(root).reshaped(shape), *state_.pool);
    return packed_.emplace(key, PackedConstant{array, kernel, p.name}).first->second.array;
  }

  /// The constant as the graph has it; one that was dropped is unpacked again.
  Array original(ValueId root) {
    Value& wanted = value(root);
    if (wanted.constant) return *wanted.constant;
    const uint64_t hash = state_.hashes.at(root);
    const auto from = state_.packed.lower_bound({hash, ""});
    TENON_CHECK(from != state_.packed.end() && from->first.first == hash,
                "constant {} was dropped and nothing keeps its packed form", wanted.name);
    const PackedConstant& packed = from->second;
    wanted.constant = packed.kernel.unpack(packed.parameter, packed.array).reshaped(wanted.shape());
    return *wanted.constant;
  }

  Network::State& state_;
  std::map<std::pair<uint64_t, std::string>, PackedConstant> packed_;
  std::set<ValueId> kept_, dropped_;
};

}  // namespace

void prepack_constants(Network::State& state) { Prepacker(state).run(); }

}  // namespace tenon
