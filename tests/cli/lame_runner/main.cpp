// A tenon-runner for tests, of a machine on which every trial crashes: started for the first time
// it becomes the real one, which computes the expected outputs; later its workers die of the first
// call of a kernel. It keeps the file "started" beside itself.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "autotvm/measure/child.h"
#include "autotvm/measure/message.h"

namespace tenon {
namespace {

using Json = nlohmann::json;

constexpr int kSocketFd = 3;
constexpr double kForEver = std::numeric_limits<double>::infinity();

bool answer(int socket, const Json& reply) { return send_message(socket, {reply.dump(), ""}); }

[[noreturn]] void work(int socket) {
  ::signal(SIGILL, SIG_DFL);
  Message message;
  while (receive_message(socket, message, kForEver) == Received::message) {
    if (Json::parse(message.head).at("do") == "first") ::raise(SIGILL);
    if (!answer(socket, {{"status", "ok"}})) break;
  }
  ::_exit(0);
}

int serve() {
  Message message;
  pid_t worker = -1;
  while (receive_message(kSocketFd, message, kForEver) == Received::message) {
    const std::string verb = Json::parse(message.head).at("do");
    Json reply = {{"status", "ok"}};
    if (verb == "start") {
      const int socket = receive_descriptor(kSocketFd);
      worker = ::fork();
      if (worker == 0) work(socket);
      ::close(socket);
    } else if (verb == "end") {
      reply["reason"] = reap(worker);
    }
    if (!answer(kSocketFd, reply)) break;
  }
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int, char** argv) {
  const std::filesystem::path started = std::filesystem::path(argv[0]).parent_path() / "started";
  const int first = ::open(started.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (first >= 0) {
    ::execv(TENON_RUNNER, argv);
    return 127;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return tenon::serve();
}
