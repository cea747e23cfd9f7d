#include <sys/wait.h>
#include <tenon/support/error.h>
#include <unistd.h>

#include "run_case.h"

namespace tenon {

namespace {

constexpr unsigned kLimitSeconds = 30;

/// What the child says: the outcome's digit, then the reason.
std::string read_all(int fd) {
  std::string text;
  char part[4096];
  for (ssize_t n = 0; (n = read(fd, part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(n));
  return text;
}

[[noreturn]] void answer_and_exit(int fd, const CaseResult& result) {
  const std::string text = std::to_string(static_cast<int>(result.outcome)) + result.reason;
  const bool whole = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  _exit(whole ? 0 : 1);
}

CaseResult result_of(int status, const std::string& answer) {
  if (WIFSIGNALED(status))
    return {Outcome::crashed, fmt::format("ended by signal {}", WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0 || answer.empty())
    return {Outcome::crashed, fmt::format("ended with code {}", WEXITSTATUS(status))};
  return {static_cast<Outcome>(answer[0] - '0'), answer.substr(1)};
}

}  // namespace

CaseResult run_isolated(const std::filesystem::path& folder, double rtol, double atol,
                        Engine engine) {
  int ends[2];
  TENON_CHECK(pipe(ends) == 0, "no pipe");
  const pid_t child = fork();
  TENON_CHECK(child >= 0, "no process");
  if (child == 0) {
    close(ends[0]);
    alarm(kLimitSeconds);
    answer_and_exit(ends[1], run_case(folder, rtol, atol, engine));
  }
  close(ends[1]);
  const std::string answer = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  TENON_CHECK(waitpid(child, &status, 0) == child, "the child is gone");
  return result_of(status, answer);
}

}  // namespace tenon
