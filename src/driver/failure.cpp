#include <tenon/autotvm/failure.h>
#include <tenon/driver/failure.h>
#include <tenon/support/error.h>

#include <cctype>

namespace tenon {

std::string keep_failure(const Task& task, const Trace& trace, TrialStatus status,
                         const std::string& reason, uint64_t seed, int threads) {
  Record r;
  r.task = task.name;
  r.args = task.args;
  r.program = program_hash(task.program);
  r.family = family_hash(task.program);
  r.target = task.target;
  r.threads = threads;
  r.trace = to_json(trace);
  r.status = status;
  r.reason = reason;
  r.seed = seed;
  r.tenon = tenon_version();
  r.llvm = code_generator_version();
  std::string stem;
  for (char c : task.name) stem += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return write_failure(r, task, "tuning_logs/" + stem + ".jsonl");
}

Kernel compile_or_keep(const Task& task, const Trace& trace, int threads) {
  try {
    return compile(task, trace);
  } catch (const InternalError& e) {
    const std::string file =
        keep_failure(task, trace, TrialStatus::compile_error, e.what(), 0, threads);
    throw InternalError(fmt::format("{}\n  tenon replay {} reproduces it", e.what(), file));
  }
}

}  // namespace tenon
