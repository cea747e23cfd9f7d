#pragma once
#include <tenon/compile/recorded.h>
#include <tenon/graph/graph.h>
#include <tenon/graph/passes.h>
#include <tenon/records/lookup.h>
#include <tenon/runtime/lent_pool.h>
#include <tenon/target/target.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

struct NamedShape {
  std::string name;
  DType dtype = f32;
  std::vector<int64_t> shape;
};

struct NetworkOptions {
  InputBindings bindings;
  Target target = Target::host();
  int threads = 0;                       // 0: all that the process may use
  std::optional<LentPool> lent;          // run on these instead of threads of our own
  bool fuse = true;                      // off: one kernel per node
  std::vector<std::string> skip_passes;  // by name, see simplify_graph
  /// 3 x 3 convolutions may run by Winograd's algorithm where it is faster: other roundings, within
  /// winograd_error_bound() of kernels/winograd.h, and what reads an Inf or NaN is wider.
  bool allow_winograd = false;
  bool poison = false;  // for tests: arena memory is filled with 0xff as soon as nothing reads it
};

/// One distinct kernel of a network: groups with equal programs share it.
struct GroupKernel {
  std::string name;  // "conv.3": the anchor's kind and a number
  Task task;
  std::vector<std::string> nodes;  // of the model, in the first group that uses it
  int uses = 0;                    // groups of the network that run it
  std::string schedule;            // "default", "unscheduled", "LOG:LINE", "adapted from LOG:LINE"
  Trace trace;
};

/// An imported network: passes, groups, kernels, memory plan, executor. Move-only.
class Network {
 public:
  /// Import, passes, groups and memory plan; nothing is compiled yet and every kernel has its
  /// default schedule. UserError as load_onnx, bind_shapes, resolve_operators.
  static Network load(const std::filesystem::path& model, const NetworkOptions& options = {});
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  const std::string& name() const;                  // the file's name without its ending
  const std::vector<GroupKernel>& kernels() const;  // most work first
  std::vector<NamedShape> inputs() const;
  std::vector<NamedShape> outputs() const;

  /// Per kernel the best record for its program, target and thread count, else the nearest one of
  /// its family where `adapted_is_good` accepts it (see recorded_schedule), else its default.
  void select(const RecordStore& records, const TraceCheck& adapted_is_good = {});
  void select_default();
  void select_unscheduled();
  void set_trace(size_t kernel, Trace trace, std::string schedule);

  /// Compiles what has changed, on all cores; `progress(done, all)` after each kernel. Afterwards
  /// run allocates nothing but its outputs.
  void compile(const std::function<void(size_t done, size_t all)>& progress = {});

  /// UserError for an input that is missing, unknown, or of another type or shape; needs no
  /// compile().
  void check_inputs(const std::map<std::string, Array>& inputs) const;
  /// Outputs by name. UserError for an input that is missing, unknown, or of another type or shape,
  /// and before compile().
  std::map<std::string, Array> run(const std::map<std::string, Array>& inputs);
  /// The same into arrays of the caller's; allocates nothing.
  void run_into(const std::map<std::string, Array>& inputs, std::map<std::string, Array>& outputs);

  Kernel kernel(size_t index) const;  // compiled
  const Graph& graph() const;
  int64_t arena_bytes() const;
  /// Of the constants in memory, as the model has them and as kernels take them.
  int64_t constant_bytes() const;
  std::string dot() const;

  struct State;

 private:
  explicit Network(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tenon
