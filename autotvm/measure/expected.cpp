#include "autotvm/measure/expected.h"

#include <interp/interp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tenon {
namespace {

[[noreturn]] void fail(const Task& task, const std::string& why) {
  throw InternalError(
      fmt::format("{}: the unscheduled kernel {}\n{}", task.name, why, print(task.program)));
}

void check_with_interpreter(const Task& task, const RunnerSetup& setup,
                            const SharedMemory& memory) {
  const std::vector<Array> arguments = sample_arguments(task, setup.seed);
  std::vector<HostBuffer> buffers;
  for (const Array& a : arguments) buffers.push_back({a.raw()});
  InterpOptions options;
  options.race_mode = false;  // unscheduled: nothing runs in parallel
  options.dims = task.sample_sizes;
  interpret(task.program, buffers, options);

  const std::vector<int64_t> offsets = expected_offsets(setup.parameters);
  size_t output = 0;
  for (size_t k = 0; k < arguments.size(); ++k) {
    const Parameter& p = setup.parameters[k];
    if (!p.is_output) continue;
    char* data = static_cast<char*>(memory.data()) + offsets[output++];
    const Array compiled = Array::wrap(data, p.dtype, constant_shape(p), nullptr);
    const Comparison c = compare_output(p.name, arguments[k], compiled, setup.tolerance);
    if (!c.passed) fail(task, "disagrees with the interpreter: " + c.reason);
  }
}

}  // namespace

SharedMemory::SharedMemory(int64_t bytes)
    : bytes_(static_cast<size_t>(std::max<int64_t>(bytes, 1))) {
  fd_ = ::memfd_create("tenon-expected", MFD_CLOEXEC);
  if (fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(bytes_)) == 0)
    data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd_, 0);
  if (data_ != nullptr && data_ != MAP_FAILED) return;
  const int error = errno;
  if (fd_ >= 0) ::close(fd_);
  throw UserError(
      fmt::format("no shared memory for {} bytes of outputs: {}", bytes, std::strerror(error)));
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, bytes_);
  ::close(fd_);
}

bool compute_expected(const Task& task, const RunnerSetup& setup, const SharedMemory& memory,
                      const CompileFn& compile, const ExpectedOptions& options) {
  BuildOptions build;
  build.timeout_s = options.compile_timeout_s;
  build.stop = options.stop;
  const std::vector<Built> built = build_all({&task.program}, compile, build);
  if (built.empty()) return false;
  if (built.front().status != TrialStatus::ok)
    fail(task, "does not compile: " + built.front().reason);

  RunnerSetup writer = setup;
  writer.writes_expected = true;
  RunnerProcess process(options.runner_program, writer, options.stop);
  RunnerReply reply = process.load(0, built.front().object);
  if (reply.status == TrialStatus::ok && !reply.stopped)
    reply = process.make_expected(0, options.timeout_s);
  if (reply.stopped) return false;
  if (reply.status == TrialStatus::run_timeout) {
    throw UserError(fmt::format(
        "{}: the unscheduled kernel, which says what is right, {}\n  try: a smaller task",
        task.name, reply.reason));
  }
  if (reply.status != TrialStatus::ok) fail(task, "does not run: " + reply.reason);
  if (points_of(sample_program(task)) <= options.oracle_limit)
    check_with_interpreter(task, setup, memory);
  return true;
}

}  // namespace tenon
