#pragma once
#include <string>

namespace tenon {

/// Holds the lock of a log while it lives: who appends or replaces takes it.
class FileLock {
 public:
  /// UserError with the path when it cannot be had.
  FileLock(int fd, const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

}  // namespace tenon
