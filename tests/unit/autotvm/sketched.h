#pragma once
#include <tenon/autotvm/sketch.h>
#include <tenon/autotvm/verify.h>
#include <tenon/compile/compile.h>

#include "autotvm/sketch/anchor.h"
#include "autotvm/sketch/multi_level_tile.h"
#include "interp/interp.h"

namespace tenon {

// What the tests of sketches share.

struct Named {
  std::string name;
  Tensor result;
};

inline Target two_cores() {
  Target target = Target::host();
  target.cores = 2;
  return target;
}

inline std::vector<Array> outputs_of(const Task& task, const Trace& trace, ThreadPool& pool) {
  std::vector<Array> arguments = sample_arguments(task, 3);
  const Kernel kernel = compile(task, trace);
  kernel.run(kernel.prepacked(arguments), pool);
  return arguments;
}

/// What the interpreter makes of the program, in race mode.
inline std::vector<Array> interpreted(const Task& task, const Program& program) {
  std::vector<Array> arguments = sample_arguments(task, 3);
  std::vector<HostBuffer> buffers;
  for (Array& a : arguments) buffers.push_back({a.raw()});
  interpret(program, buffers);
  return arguments;
}

inline Schedule at(const Task& task, const NamedTemplate& sketch, const Point& point) {
  Schedule s(task.program, task.target);
  Knobs knobs(point);
  sketch.fn(s, knobs);
  return s;
}

inline AnchorNest nest_of(const Named& f, const std::string& stage) {
  return find_anchor_nest(make_program(f.name, {f.result}), stage).value();
}

}  // namespace tenon
