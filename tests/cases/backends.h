#pragma once
#include <tenon/ir/program.h>
#include <tenon/runtime/array.h>
#include <tenon/target/target.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tenon::cases {

/// Values of symbolic extents by name.
using Dims = std::map<std::string, int64_t>;
/// Runs a prepared program on its arguments (inputs, then outputs).
using Run = std::function<void(const std::vector<Array>& arguments, const Dims& dims)>;

/// One way to run a scheduled loop tree.
struct Backend {
  std::string name;  ///< column of the score: "interp", "flat", "avx512", ...
  Target target;     ///< that schedules are made for
  /// Lowers or compiles; throws as the product does.
  std::function<Run(const Program& loop_tree)> prepare;
  bool machine_code = false;  ///< run once more with forbidden pages at both ends of the arguments
  bool is_host = false;       ///< of this machine's whole feature set: what the tuner tunes for
};

/// The interpreter in race mode on the loop tree and on flat code, then each vector width that this
/// machine runs. A further target is one more entry here.
const std::vector<Backend>& backends();

/// The interpreter, as backends(), for schedules of a common GPU: flat code runs its threads in
/// lockstep.
const std::vector<Backend>& lockstep_backends();

/// An OpenCL device; null, with a line that says why, where there is none. Apart from the others:
/// its drivers take 0.2 s and more for each kernel, and steps for CPUs mean nothing to it.
const Backend* opencl_backend();

/// The host's target: what schedules that run nowhere are made for.
const Target& host_target();

}  // namespace tenon::cases
