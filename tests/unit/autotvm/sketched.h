#pragma once
#include <tenon/autotvm/sketch.h>
#include <tenon/autotvm/verify.h>
#include <tenon/compile/compile.h>
#include <tenon/schedule/knobs.h>

#include "autotvm/sketch/anchor.h"
#include "autotvm/sketch/multi_level_tile.h"
#include "interp/interp.h"

namespace tenon {

// What the tests of sketches share.

struct Named {
  std::string name;
  Tensor result;
};

/// The host's instructions in a machine of fixed numbers, so that plans are the same everywhere.
inline Target two_cores() {
  Target target = Target::host();
  target.cores = 2;
  target.l1d_bytes = 48 << 10;
  target.l2_bytes = 2 << 20;
  target.vector_fmas = 2;
  target.far_bytes = 7;
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

/// Why the scheduled program does not give what is expected: interpreted as a loop tree and, with a
/// pool, as machine code. Empty where it does.
inline std::string difference(const Task& task, const std::vector<Array>& expected,
                              const Schedule& s, ThreadPool* pool) {
  const Comparison tree = compare_arguments(task, expected, interpreted(task, s.program()));
  if (!tree.passed) return "interpreted: " + tree.reason;
  if (!pool) return "";
  const Comparison code = compare_arguments(task, expected, outputs_of(task, s.trace(), *pool));
  return code.passed ? "" : "compiled: " + code.reason;
}

/// How many random points of sketches refuse a step.
struct Refusals {
  int tried = 0, refused = 0;
  std::string first;  ///< which, and why

  void count(const Task& task, const NamedTemplate& sketch, int points, Rng& rng) {
    const KnobSpace space = survey(sketch.fn, task.program, task.target);
    for (int n = 0; n < points; ++n, ++tried) {
      const Point point = space.random_point(rng);
      try {
        at(task, sketch, point);
      } catch (const ScheduleError& e) {
        ++refused;
        if (first.empty()) first = task.name + " " + point.to_json() + "\n" + e.what();
      }
    }
  }
  std::string text() const {
    return fmt::format("{} of {} refused; the first: {}", refused, tried, first);
  }
};

inline AnchorNest nest_of(const Named& f, const std::string& stage) {
  return find_anchor_nest(make_program(f.name, {f.result}), stage).value();
}

}  // namespace tenon
