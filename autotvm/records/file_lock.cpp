#include "autotvm/records/file_lock.h"

#include <sys/file.h>
#include <tenon/support/error.h>

#include <cerrno>
#include <cstring>

namespace tenon {

FileLock::FileLock(int fd, const std::string& path) : fd_(fd) {
  while (::flock(fd_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    throw UserError(fmt::format("cannot lock the log {}: {}", path, std::strerror(errno)));
  }
}

FileLock::~FileLock() { ::flock(fd_, LOCK_UN); }

}  // namespace tenon
