#pragma once
#include <sys/types.h>
#include <tenon/compile/compile.h>

#include <atomic>
#include <functional>
#include <limits>
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
  /// A compiler process whose own memory has grown by so much is replaced.
  int64_t growth_bytes = int64_t{512} << 20;
  const std::atomic<bool>* stop = nullptr;
};

/// Compiler processes, forked when the pool is made and kept: each is warm after its first program
/// and gets the others as text over a socket. One that crashes, hangs or takes all memory costs one
/// trial; another takes its place. Make the pool early: forking a large process takes long.
class CompilerPool {
 public:
  /// UserError when a process cannot be started.
  CompilerPool(CompileFn compile, const BuildOptions& options);
  ~CompilerPool();
  CompilerPool(const CompilerPool&) = delete;
  CompilerPool& operator=(const CompilerPool&) = delete;

  /// Compiles each program, the largest first. Results in order, up to the first program that was
  /// not compiled: once `stop` is set or `until_us` (of now_us()) has passed no other is begun.
  std::vector<Built> build(const std::vector<const Program*>& programs,
                           double until_us = std::numeric_limits<double>::infinity());

  int started() const { return started_; }  ///< processes so far

 private:
  struct Compiler {
    pid_t child = -1;
    int socket = -1;
    size_t program = 0;  // being compiled
    bool busy = false;
    double deadline_us = 0;
    int64_t first_bytes = 0;  // own_bytes() after its first program
  };

  bool stopped() const { return options_.stop && options_.stop->load(); }
  void start(Compiler& c);
  void end(Compiler& c);
  void send(Compiler& c, const Program& program, size_t index);
  Built receive(Compiler& c);
  Built lost(Compiler& c);
  void wait_any() const;

  CompileFn compile_;
  BuildOptions options_;
  std::vector<Compiler> compilers_;
  int started_ = 0;
};

}  // namespace tenon
