#include <tenon/support/files.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace tenon {
namespace {

/// Closes with the scope.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

Failure system_failure() { return {std::strerror(errno)}; }

std::optional<Failure> write_all(const std::string& path, std::string_view content) {
  Descriptor file{open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (file.fd < 0) return system_failure();
  while (!content.empty()) {
    const ssize_t n = write(file.fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_failure();
    content.remove_prefix(static_cast<size_t>(n));
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat info = {};
  if (file.fd < 0 || fstat(file.fd, &info) != 0) return system_failure();
  if (S_ISDIR(info.st_mode)) return Failure{"is a directory"};
  if (!S_ISREG(info.st_mode)) return Failure{"is not a regular file"};
  std::string content(static_cast<size_t>(info.st_size), '\0');
  size_t got = 0;
  while (got < content.size()) {
    const ssize_t n = read(file.fd, content.data() + got, content.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_failure();
    if (n == 0) break;  // someone cut the file while we read
    got += static_cast<size_t>(n);
  }
  content.resize(got);
  return content;
}

std::optional<Failure> write_file(const std::string& path, std::string_view content) {
  static std::atomic<unsigned> number{0};
  const std::string partial = fmt::format("{}.{}.{}.tmp", path, getpid(), number++);
  std::optional<Failure> failure = write_all(partial, content);
  if (!failure && std::rename(partial.c_str(), path.c_str()) != 0) failure = system_failure();
  if (failure) unlink(partial.c_str());
  return failure;
}

}  // namespace tenon
