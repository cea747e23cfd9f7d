#include "autotvm/claims.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <tenon/support/hash.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace tenon {

// A claim is a socket bound to a name in the abstract namespace: names are unique on the machine,
// and the kernel frees them when the process ends.
Claims::Claims(const std::string& log, const std::string& scope) {
  struct stat info {};
  if (::stat(log.c_str(), &info) != 0) return;
  prefix_ = fmt::format("tenon-trial:{}:{}:{}", info.st_dev, info.st_ino, hex64(hash_text(scope)));
}

bool Claims::take(const std::string& what) {
  const int fd = prefix_.empty() ? -1 : ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return true;
  const std::string name = fmt::format("{}:{}", prefix_, hex64(hash_text(what)));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy_n(name.data(), std::min(name.size(), sizeof address.sun_path - 2),
              address.sun_path + 1);  // the first byte stays 0
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 && errno == EADDRINUSE) {
    ::close(fd);
    return false;
  }
  sockets_.push_back(fd);
  return true;
}

void Claims::release() {
  for (int fd : sockets_) ::close(fd);
  sockets_.clear();
}

}  // namespace tenon
