#pragma once
#include <tenon/compile/compile.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

namespace tenon {

using CompileFn = std::function<KernelObject(const Program&)>;

struct Built {
  TrialStatus status = TrialStatus::ok;
  std::string reason;
  KernelObject object;
};

struct BuildOptions {
  int workers = 1;                          ///< compilers at once
  double timeout_s = 20;                    ///< for one program
  int64_t memory_bytes = int64_t{4} << 30;  ///< that one compiler may add to what this process has
  const std::atomic<bool>* stop = nullptr;
};

/// Compiles each program in a forked child, so that a compiler that crashes, hangs or takes all
/// memory costs one trial. Results in order; fewer, the first ones, when `stop` was set.
std::vector<Built> build_all(const std::vector<const Program*>& programs, const CompileFn& compile,
                             const BuildOptions& options);

}  // namespace tenon
