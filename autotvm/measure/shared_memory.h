#pragma once
#include <cstddef>
#include <cstdint>

namespace tenon {

/// Memory that child processes share by its descriptor.
class SharedMemory {
 public:
  /// UserError when there is none left.
  explicit SharedMemory(int64_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int fd() const { return fd_; }
  char* data() const { return static_cast<char*>(data_); }

 private:
  int fd_ = -1;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace tenon
