#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tenon/records/log.h>
#include <tenon/support/text.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

namespace tenon {
namespace {

constexpr size_t kMaxWarnings = 20;

std::string reason_of(int error) { return std::strerror(error); }

/// Lines of a file one after the other in bounded memory.
class LineReader {
 public:
  explicit LineReader(const std::string& path) : path_(path) {
    // Opened non-blocking: a named pipe would wait for its writer.
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info {};
    if (fd_ < 0 || ::fstat(fd_, &info) != 0) fail(errno);
    if (S_ISDIR(info.st_mode)) fail(EISDIR);
  }
  ~LineReader() {
    if (fd_ >= 0) ::close(fd_);
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// False at the end. `too_long` lines come back cut to nothing; `unended`: no line break at the
  /// end.
  bool next(std::string& line, bool& too_long, bool& unended) {
    line.clear();
    too_long = unended = false;
    for (bool any = false;; any = true) {
      if (at_ == filled_ && !fill()) {
        unended = any;
        return any;
      }
      const char* begin = chunk_.data() + at_;
      const auto* end = static_cast<const char*>(std::memchr(begin, '\n', filled_ - at_));
      const size_t count = end ? static_cast<size_t>(end - begin) : filled_ - at_;
      if (line.size() + count > static_cast<size_t>(kMaxLineBytes)) too_long = true;
      if (too_long) {
        line.clear();
      } else {
        line.append(begin, count);
      }
      at_ += count + (end ? 1 : 0);
      if (end) return true;
    }
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw UserError(fmt::format("cannot read the log {}: {}", path_, reason_of(error)));
  }
  bool fill() {
    ssize_t got = 0;
    do {
      got = ::read(fd_, chunk_.data(), chunk_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail(errno);
    at_ = 0;
    filled_ = static_cast<size_t>(got);
    return got > 0;
  }

  std::string path_;
  int fd_ = -1;
  std::string chunk_ = std::string(1 << 16, '\0');
  size_t at_ = 0, filled_ = 0;
};

class Warnings {
 public:
  explicit Warnings(std::vector<std::string>& out) : out_(out) {}
  void add(const LogRef& where, std::string_view problem) {
    ++count_;
    if (count_ <= kMaxWarnings)
      out_.push_back(fmt::format("{}: skipped: {}", where.text(), problem));
  }
  void finish(const std::string& path) {
    if (count_ > kMaxWarnings)
      out_.push_back(fmt::format("{}: {} more lines skipped", path, count_ - kMaxWarnings));
  }

 private:
  std::vector<std::string>& out_;
  size_t count_ = 0;
};

/// Nothing is wrong with a blank line; for any other, the record or why there is none.
std::optional<Result<Record>> read_line(std::string_view line, bool too_long, bool unended) {
  if (too_long) return Failure{fmt::format("longer than {} MiB", kMaxLineBytes >> 20)};
  if (trim(line).empty()) return std::nullopt;
  Result<Record> record = parse_record(line);
  if (!record && unended) return Failure{"cut off in the middle of a line: " + record.error()};
  return record;
}

/// Holds the file's lock while it lives.
class FileLock {
 public:
  FileLock(int fd, const std::string& path) : fd_(fd) {
    while (::flock(fd_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      throw UserError(fmt::format("cannot lock the log {}: {}", path, reason_of(errno)));
    }
  }
  ~FileLock() { ::flock(fd_, LOCK_UN); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int fd_;
};

bool ends_in_mid_line(int fd, off_t size) {
  char last = '\n';
  return size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

}  // namespace

std::string LogRef::text() const { return fmt::format("{}:{}", path, line); }

LogRef LogRef::parse(std::string_view text) {
  const size_t colon = text.rfind(':');
  std::optional<int64_t> line;
  if (colon != std::string_view::npos) line = parse_int(text.substr(colon + 1));
  if (!line || *line < 1 || colon == 0) {
    throw UserError(fmt::format(
        "\"{}\" is no place in a log\n  try: LOG:LINE, for example tuning_logs/NAME.jsonl:17",
        text));
  }
  return {std::string(text.substr(0, colon)), *line};
}

LoadedLog load_log(const std::string& path) {
  LoadedLog out;
  Warnings warnings(out.warnings);
  LineReader reader(path);
  std::string line;
  bool too_long = false, unended = false;
  int64_t taken_bytes = 0;
  for (LogRef where{path, 1}; reader.next(line, too_long, unended); ++where.line) {
    std::optional<Result<Record>> record = read_line(line, too_long, unended);
    if (!record) continue;
    if (record->ok()) taken_bytes += static_cast<int64_t>(line.size());
    if (!record->ok()) {
      warnings.add(where, record->error());
    } else if (taken_bytes > kMaxLogBytes) {
      out.warnings.push_back(fmt::format("{}: the rest is not read: the log is larger than {} MiB",
                                         where.text(), kMaxLogBytes >> 20));
      break;
    } else {
      out.records.push_back({std::move(*record).value(), where});
    }
  }
  warnings.finish(path);
  return out;
}

Record read_record(const LogRef& where) {
  LineReader reader(where.path);
  std::string line;
  bool too_long = false, unended = false;
  int64_t number = 0;
  while (number < where.line && reader.next(line, too_long, unended)) ++number;
  if (number < where.line) {
    throw UserError(fmt::format("{}: there is no such line; the log has {}", where.text(), number));
  }
  std::optional<Result<Record>> record = read_line(line, too_long, unended);
  if (!record) throw UserError(fmt::format("{}: the line is empty", where.text()));
  if (!record->ok())
    throw UserError(fmt::format("{}: no usable record: {}", where.text(), record->error()));
  return std::move(*record).value();
}

RecordLog::RecordLog(std::string path) : path_(std::move(path)) {
  auto fail = [this](const std::string& why) {
    throw UserError(fmt::format("cannot write the log {}: {}\n  try: another place with --log FILE",
                                path_, why));
  };
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::error_code problem;
  if (!folder.empty()) std::filesystem::create_directories(folder, problem);
  if (problem) fail(fmt::format("no folder {}: {}", folder.string(), problem.message()));
  fd_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
  if (fd_ < 0) fail(reason_of(errno));
  struct stat info {};
  if (::fstat(fd_, &info) != 0 || !(S_ISREG(info.st_mode) || S_ISCHR(info.st_mode))) {
    ::close(std::exchange(fd_, -1));
    fail("it is not a file");
  }
}

RecordLog::~RecordLog() {
  if (fd_ >= 0) ::close(fd_);
}

RecordLog::RecordLog(RecordLog&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      counted_bytes_(other.counted_bytes_),
      counted_lines_(other.counted_lines_) {}

RecordLog& RecordLog::operator=(RecordLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(counted_bytes_, other.counted_bytes_);
  std::swap(counted_lines_, other.counted_lines_);
  return *this;
}

/// Line breaks in the first `size` bytes of the file.
int64_t RecordLog::lines_up_to(int64_t size) {
  if (size < counted_bytes_) counted_bytes_ = counted_lines_ = 0;  // someone cut the file
  std::string chunk(1 << 16, '\0');
  while (counted_bytes_ < size) {
    const auto want =
        static_cast<size_t>(std::min(size - counted_bytes_, static_cast<int64_t>(chunk.size())));
    const ssize_t got = ::pread(fd_, chunk.data(), want, counted_bytes_);
    if (got <= 0) break;
    counted_lines_ += std::count(chunk.begin(), chunk.begin() + got, '\n');
    counted_bytes_ += got;
  }
  return counted_lines_;
}

LogRef RecordLog::append(const Record& record) {
  std::string text = to_json_line(record) + "\n";
  FileLock lock(fd_, path_);
  struct stat info {};
  if (::fstat(fd_, &info) != 0)
    throw UserError(fmt::format("cannot write the log {}: {}", path_, reason_of(errno)));
  if (info.st_nlink == 0)
    throw UserError(fmt::format("cannot write the log {}: the file was deleted", path_));
  const bool regular = S_ISREG(info.st_mode);
  const bool mid_line = regular && ends_in_mid_line(fd_, info.st_size);
  const LogRef place{path_, regular ? lines_up_to(info.st_size) + (mid_line ? 2 : 1) : 1};
  if (mid_line) text.insert(text.begin(), '\n');
  ssize_t written = 0;
  do {
    written = ::write(fd_, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(text.size())) return place;
  const int error = written < 0 ? errno : ENOSPC;
  // Only this call's own half line is taken back; the lock keeps others out.
  if (written > 0 && ::ftruncate(fd_, info.st_size) != 0)
    throw UserError(fmt::format("the log {} ends in half a line: {}", path_, reason_of(errno)));
  throw UserError(fmt::format("cannot write the log {}: {}", path_, reason_of(error)));
}

}  // namespace tenon
