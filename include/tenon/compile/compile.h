#pragma once
#include <tenon/compile/task.h>
#include <tenon/records/lookup.h>
#include <tenon/runtime/module.h>

namespace tenon {

/// Machine code of one kernel, not yet loaded into a process.
struct KernelObject {
  std::string bytes;   ///< an ELF object file, or OpenCL C for a GPU
  std::string symbol;  ///< its entry
  /// The workspace depends on the symbolic extents: the code has a function that says how much.
  bool symbolic_workspace = false;
  Module module;                      ///< everything but `entry` and `keep_alive`
  double compile_us = 0;              ///< lowering and code generation
  std::vector<KernelObject> packers;  ///< of the parameters that are packed ahead, in their order
};

/// Lowers a loop tree and generates machine code for `target`. Thread-safe. UserError for what the
/// schedule asks and the target cannot do.
KernelObject compile_object(const Program& loop_tree, const Target& target);

/// Flat code of a loop tree, without code generation. UserError as compile_object() throws.
Program flat_program(const Program& loop_tree, const Target& target);

/// Links the code into this process. DeviceError when the target's code cannot run on this machine.
Module load_kernel(const KernelObject& object, const Target& target);

/// A compiled kernel and the texts it came from. A cheap handle; the code lives as long as a copy
/// does.
class Kernel {
 public:
  Kernel() = default;

  /// Arguments: the formula's inputs, then its outputs (written in place). UserError as runtime's
  /// call().
  void run(std::span<const Array> arguments, ThreadPool& pool) const;
  void run(Arguments arguments, ThreadPool& pool) const;
  template <class... Arrays>
  void operator()(const Arrays&... arrays) const {
    const Array* const list[] = {&arrays...};
    run(Arguments(list), default_pool());
  }

  /// What the kernel takes for the input `parameter`, which its schedule packs ahead
  /// (pack(.., PackWhen::ahead)), made of the array as the formula has it; and back. UserError for
  /// a name that is none of these and for an array of another shape.
  Array prepack(std::string_view parameter, const Array& array) const;
  Array unpack(std::string_view parameter, const Array& packed) const;
  /// run()'s arguments, given as the formula has them: those packed ahead are replaced by
  /// prepack()'s.
  std::vector<Array> prepacked(std::span<const Array> arguments) const;

  bool defined() const { return state_ != nullptr; }
  const Module& module() const;
  const Program& program() const;  ///< the scheduled loop tree
  double compile_us() const;

  std::string loops() const;     ///< the scheduled loop tree as text
  std::string ir() const;        ///< flat code
  std::string source() const;    ///< LLVM IR, or OpenCL C
  std::string assembly() const;  ///< of the target's processor

 private:
  friend Kernel compile(const Program& loop_tree, const Target& target);
  template <class Args>
  void run_on(Args arguments, ThreadPool& pool) const;
  struct State;
  std::shared_ptr<const State> state_;
};

Kernel compile(const Program& loop_tree, const Target& target);

/// The task's formula under `trace` (empty: unscheduled). ScheduleError where a step is not legal.
Kernel compile(const Task& task, const Trace& trace);
/// Under the record's trace. UserError when the record is for another target's code.
Kernel compile(const Task& task, const Record& record);

/// The schedule that the task's first template (the generic one where there is none) makes at its
/// default knobs.
Schedule default_schedule(const Task& task);
/// The template called `name` at `point`; UserError with the nearest names for an unknown template.
Schedule apply_template(const Task& task, const std::string& name, const Point& point);

/// Version of the code generator, "19.1.7": what records keep as Record::llvm.
std::string code_generator_version();

/// What the task's records are looked up by when it runs with so many threads.
RecordQuery record_query(const Task& task, int threads);

}  // namespace tenon
