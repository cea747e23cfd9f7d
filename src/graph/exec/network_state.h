#pragma once
#include <tenon/graph/groups.h>
#include <tenon/graph/memory_plan.h>
#include <tenon/graph/network.h>
#include <tenon/runtime/thread_pool.h>

#include <cstddef>
#include <span>

namespace tenon {

/// One group at run time: which kernel, and where its arguments are.
struct Step {
  size_t kernel = 0;
  std::vector<ValueId> arguments;  // roots of views, as the kernel's parameters
  std::vector<void*> pointers;  // the same in memory; those of inputs and outputs are set per run
  std::vector<size_t> outside;  // arguments that are inputs or outputs of the network
  std::vector<std::span<std::byte>>
      dead;  // with NetworkOptions::poison: arena memory read last here
};

/// An input or output of the network.
struct OutsideValue {
  ValueId id = kAbsent;
  NamedShape shape;
  size_t bytes = 0;
};

/// A constant as kernels take it, and the kernel and parameter that know how it lies.
struct PackedConstant {
  Array array;
  Kernel kernel;
  std::string parameter;
};

struct Network::State {
  std::string name;
  NetworkOptions options;
  Graph graph;
  std::vector<Group> groups;
  MemoryPlan plan;
  std::vector<GroupKernel> kernels;
  std::vector<Trace> defaults;   // per kernel
  std::vector<Kernel> compiled;  // undefined where not compiled yet, or the trace changed since
  std::vector<Step> steps;       // one per group
  std::vector<OutsideValue> inputs, outputs;
  /// By (hash of the contents, layout and extents).
  std::map<std::pair<uint64_t, std::string>, PackedConstant> packed;
  std::map<ValueId, uint64_t> hashes;  // of the constants that were packed
  Array arena;
  std::unique_ptr<ThreadPool> pool;
  Workspace workspace;        // shared by all kernels: they run one after the other
  std::vector<void*> memory;  // per value: where the caller's input or output is in this run
};

/// Distinct kernels of the groups, most work first, and the step of each group.
void make_kernels(Network::State& state);

/// Where the value lies, as far as it does not depend on the run. Null for a constant that was
/// dropped.
void* fixed_memory(const Network::State& state, ValueId id);

/// Packs the constants that compiled kernels take packed ahead, each content and layout once, and
/// points the steps at them. Drops the originals that no step and no output of the network reads
/// any more; one that is wanted again is unpacked.
void prepack_constants(Network::State& state);

/// Sets Step::dead from what the steps read: arena memory of no further use after each.
void mark_dead_memory(Network::State& state);

/// The default schedule of each kernel, computed on all of the network's threads.
void make_defaults(Network::State& state);

}  // namespace tenon
