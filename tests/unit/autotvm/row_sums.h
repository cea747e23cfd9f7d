#pragma once
#include <tenon/compile/compile.h>
#include <tenon/ir/ops.h>
#include <tenon/support/files.h>

#include "autotvm/measure/local_runner.h"

namespace tenon {

/// The formula that faulty_kernels.c computes.
inline Task row_sums() {
  const Axis i("i", 37), k("k", 130);
  const Tensor a = input("A", f32, {37, 130});
  return Task("row_sums", compute("C", {i}, sum(a(i, k), k)), Target::host());
}

/// A candidate whose program is called `name`, so that row_sums_compiler() puts that kernel in.
inline Candidate named_candidate(const std::string& name) {
  Candidate c;
  c.template_name = name;
  c.program = row_sums().program;
  c.program.name = name;
  return c;
}

/// A function of faulty_kernels.c as a kernel of the task.
inline KernelObject faulty_kernel(const std::string& symbol) {
  KernelObject object;
  object.bytes = read_file(FAULTY_KERNELS).value();
  object.symbol = symbol;
  object.module.name = symbol;
  object.module.parameters = {{"A", f32, {37, 130}, false}, {"C", f32, {37}, true}};
  object.compile_us = 1;
  return object;
}

/// The unscheduled program is compiled as ever; any other by its name.
inline KernelObject compile_row_sums(const Program& program) {
  if (program.name == "row_sums") return compile_object(program, Target::host());
  if (program.name == "compiler_refuses") throw UserError("the register tile is too large");
  if (program.name == "compiler_crashes") std::abort();
  if (program.name == "compiler_hangs") {
    for (volatile int stays = 1; stays;) continue;
  }
  KernelObject object = faulty_kernel(program.name == "huge_workspace" ? "right" : program.name);
  if (program.name == "huge_workspace") object.module.workspace_bytes = int64_t{1} << 50;
  return object;
}

inline RunnerOptions quick_options() {
  RunnerOptions options;
  options.timeout_s = 3;
  options.compile_timeout_s = 3;
  options.memory_bytes = 256 << 20;
  options.sample_us = 200;
  return options;
}

}  // namespace tenon
