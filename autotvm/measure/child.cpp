#include "autotvm/measure/child.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tenon/support/text.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_ADDRESS_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define TENON_ADDRESS_SANITIZER
#endif

namespace tenon {
namespace {

#ifdef TENON_ADDRESS_SANITIZER
constexpr bool kMemoryCanBeLimited = false;
#else
constexpr bool kMemoryCanBeLimited = true;
#endif

void lower_limit(__rlimit_resource resource, double value) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = static_cast<rlim_t>(value);
  if (limit.rlim_max != RLIM_INFINITY) limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  ::setrlimit(resource, &limit);
}

/// By /proc: the fourth word of stat is the parent, behind a name that may hold anything.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", problem)) {
    const std::optional<int64_t> pid = parse_int(entry.path().filename().string());
    if (!pid) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    std::getline(file, line);
    const size_t name_end = line.rfind(") ");
    if (name_end == std::string::npos || name_end + 4 > line.size()) continue;
    if (std::strtol(line.c_str() + name_end + 4, nullptr, 10) == parent)
      out.push_back(static_cast<pid_t>(*pid));
  }
  return out;
}

}  // namespace

void leave_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before the line above
  ::signal(SIGINT, SIG_IGN);
  // A host program's own crash handlers are none of the child's business.
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) ::signal(signal, SIG_DFL);
}

void limit_memory(int64_t more_bytes) {
  if (!kMemoryCanBeLimited) return;
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  if (!(statm >> pages)) return;
  lower_limit(RLIMIT_AS, static_cast<double>(pages * ::sysconf(_SC_PAGESIZE) + more_bytes));
}

void limit_cpu(double more_s) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  lower_limit(RLIMIT_CPU, std::ceil(static_cast<double>(used.ru_utime.tv_sec) +
                                    static_cast<double>(used.ru_stime.tv_sec) + more_s + 2));
}

void limit_files() {
  constexpr double kFileBytes = 64 << 20;  // OpenCL compilers write some
  lower_limit(RLIMIT_CORE, 0);
  lower_limit(RLIMIT_FSIZE, kFileBytes);
}

int64_t own_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0, of_files = 0;
  if (!(statm >> size >> resident >> of_files)) return 0;
  return (resident - of_files) * ::sysconf(_SC_PAGESIZE);
}

void end_descendants() {
  constexpr int kRounds = 5000;
  // Killing a process leaves its children to the subreaper: again until there are none.
  for (int round = 0; round < kRounds; ++round) {
    const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
    if (ended < 0 && errno != EINTR) return;
    if (ended != 0) continue;
    for (pid_t child : children_of(::getpid())) ::kill(child, SIGKILL);
    ::usleep(200);
  }
}

std::string reap(pid_t child, double patience_s) {
  int status = 0;
  for (double waited_s = 0;; waited_s += 0.001) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) return "was lost";
    if (waited_s > patience_s) ::kill(child, SIGKILL);
    ::usleep(waited_s < 0.002 ? 100 : 1000);
  }
  if (WIFSIGNALED(status)) {
    const char* abbreviation = ::sigabbrev_np(WTERMSIG(status));
    return fmt::format("crashed (SIG{}, {})", abbreviation ? abbreviation : "?",
                       ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("exited with {}", WEXITSTATUS(status));
}

}  // namespace tenon
