#include "autotvm/measure/shared_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <tenon/support/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tenon {

SharedMemory::SharedMemory(int64_t bytes)
    : bytes_(static_cast<size_t>(std::max<int64_t>(bytes, 1))) {
  fd_ = ::memfd_create("tenon-arguments", MFD_CLOEXEC);
  if (fd_ >= 0 && ::ftruncate(fd_, static_cast<off_t>(bytes_)) == 0)
    data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (data_ != nullptr && data_ != MAP_FAILED) return;
  const int error = errno;
  if (fd_ >= 0) ::close(fd_);
  throw UserError(
      fmt::format("no shared memory for {} bytes of arguments: {}", bytes, std::strerror(error)));
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, bytes_);
  ::close(fd_);
}

}  // namespace tenon
