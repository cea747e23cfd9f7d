#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <tenon/records/log.h>
#include <tenon/support/text.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "autotvm/records/file_lock.h"

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
    if (S_ISCHR(info.st_mode)) at_end_ = true;  // a device keeps no records, and may never end
  }
  ~LineReader() {
    if (fd_ >= 0) ::close(fd_);
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// False at the end.
  bool next(LogLine& out) {
    ++out.where.line;
    std::string& line = out.text;
    bool &too_long = out.too_long, &unended = out.unended;
    line.clear();
    too_long = unended = false;
    for (bool any = false;; any = true) {
      if (at_end_ || (at_ == filled_ && !fill())) {
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
  bool at_end_ = false;
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

/// A write beyond a limit on the size of files sends the signal SIGXFSZ, which would end the
/// program: while this lives, the write fails with EFBIG instead.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~NoFileSizeSignal() {
    const timespec none{};
    const bool ours = sigismember(&before_, SIGXFSZ) == 0;
    while (ours && ::sigtimedwait(&signal_, nullptr, &none) < 0 && errno == EINTR) continue;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t signal_{}, before_{};
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

void for_each_line(const std::string& path, const std::function<bool(const LogLine&)>& f) {
  LineReader reader(path);
  LogLine line;
  line.where.path = path;
  while (reader.next(line) && f(line)) continue;
}

std::optional<Result<Record>> record_of(const LogLine& line) {
  if (line.too_long) return Failure{fmt::format("longer than {} MiB", kMaxLineBytes >> 20)};
  if (trim(line.text).empty()) return std::nullopt;
  Result<Record> record = parse_record(line.text);
  if (!record && line.unended) return Failure{"cut off in the middle of a line: " + record.error()};
  return record;
}

LoadedLog load_log(const std::string& path) {
  LoadedLog out;
  Warnings warnings(out.warnings);
  int64_t taken_bytes = 0;
  for_each_line(path, [&](const LogLine& line) {
    std::optional<Result<Record>> record = record_of(line);
    if (!record) return true;
    if (!record->ok()) {
      warnings.add(line.where, record->error());
      return true;
    }
    taken_bytes += static_cast<int64_t>(line.text.size());
    if (taken_bytes > kMaxLogBytes) {
      out.warnings.push_back(fmt::format("{}: the rest is not read: the log is larger than {} MiB",
                                         line.where.text(), kMaxLogBytes >> 20));
      return false;
    }
    out.records.push_back({std::move(*record).value(), line.where});
    return true;
  });
  warnings.finish(path);
  return out;
}

Record read_record(const LogRef& where) {
  std::optional<LogLine> found;
  int64_t lines = 0;
  for_each_line(where.path, [&](const LogLine& line) {
    lines = line.where.line;
    if (lines == where.line) found = line;
    return !found;
  });
  if (!found) {
    throw UserError(fmt::format("{}: there is no such line; the log has {}", where.text(), lines));
  }
  std::optional<Result<Record>> record = record_of(*found);
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
  opened_bytes_ = info.st_size;
}

RecordLog::~RecordLog() {
  if (fd_ >= 0) ::close(fd_);
}

RecordLog::RecordLog(RecordLog&& other) noexcept { *this = std::move(other); }

RecordLog& RecordLog::operator=(RecordLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(opened_bytes_, other.opened_bytes_);
  std::swap(heard_bytes_, other.heard_bytes_);
  std::swap(heard_lines_, other.heard_lines_);
  std::swap(heard_line_, other.heard_line_);
  std::swap(news_, other.news_);
  return *this;
}

/// Counts the line breaks in the first `size` bytes of the file, and takes in what others wrote.
void RecordLog::hear(int64_t size) {
  if (size < heard_bytes_) {  // someone cut the file
    heard_bytes_ = heard_lines_ = 0;
    heard_line_.clear();
    opened_bytes_ = size;
  }
  std::string chunk(1 << 16, '\0');
  while (heard_bytes_ < size) {
    const auto want =
        static_cast<size_t>(std::min(size - heard_bytes_, static_cast<int64_t>(chunk.size())));
    const ssize_t got = ::pread(fd_, chunk.data(), want, heard_bytes_);
    if (got <= 0) break;
    std::string_view rest(chunk.data(), static_cast<size_t>(got));
    for (size_t end = 0; (end = rest.find('\n')) != std::string_view::npos;) {
      heard_bytes_ += static_cast<int64_t>(end) + 1;
      hear_line(rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
    heard_bytes_ += static_cast<int64_t>(rest.size());
    if (static_cast<int64_t>(heard_line_.size()) <= kMaxLineBytes) heard_line_ += rest;
  }
}

/// A line is whole; `end` is what was not in heard_line_ yet, heard_bytes_ is behind its break.
void RecordLog::hear_line(std::string_view end) {
  ++heard_lines_;
  const int64_t begin = heard_bytes_ - 1 - static_cast<int64_t>(heard_line_.size() + end.size());
  if (begin >= opened_bytes_ && static_cast<int64_t>(heard_line_.size()) <= kMaxLineBytes) {
    Result<Record> record = parse_record(heard_line_ + std::string(end));
    if (record) news_.push_back({std::move(record).value(), {path_, heard_lines_}});
  }
  heard_line_.clear();
}

std::vector<LoggedRecord> RecordLog::news() {
  struct stat info {};
  if (::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode) && info.st_size != heard_bytes_) {
    FileLock lock(fd_, path_);  // no half lines
    if (::fstat(fd_, &info) == 0) hear(info.st_size);
  }
  return std::exchange(news_, {});
}

/// In one write behind the `size` bytes that stand there.
void RecordLog::write_line(const std::string& text, int64_t size) {
  const NoFileSizeSignal quiet;
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    rest.remove_prefix(static_cast<size_t>(written));  // less than all: the next says why
  }
  if (rest.empty()) return;
  const int error = errno;
  // Only this call's own half line is taken back; the lock keeps others out.
  if (rest.size() < text.size() && ::ftruncate(fd_, size) != 0)
    throw UserError(fmt::format("the log {} ends in half a line: {}", path_, reason_of(errno)));
  throw UserError(fmt::format(
      "cannot write the log {}: {}\n  what stood in it stands there still; the trial at hand is "
      "lost\n  try: make room, or a larger limit (ulimit -f), and the same command again: it goes "
      "on from the log",
      path_, reason_of(error)));
}

LogRef RecordLog::append(const Record& record) {
  std::string text = to_json_line(record) + "\n";
  FileLock lock(fd_, path_);
  struct stat info {};
  if (::fstat(fd_, &info) != 0)
    throw UserError(fmt::format("cannot write the log {}: {}", path_, reason_of(errno)));
  if (info.st_nlink == 0)
    throw UserError(fmt::format("cannot write the log {}: the file was deleted", path_));
  if (!S_ISREG(info.st_mode)) {
    write_line(text, info.st_size);
    return {path_, 1};
  }
  hear(info.st_size);
  if (ends_in_mid_line(fd_, info.st_size)) {
    text.insert(text.begin(), '\n');
    ++heard_lines_;
  }
  write_line(text, info.st_size);
  heard_line_.clear();
  heard_bytes_ = info.st_size + static_cast<int64_t>(text.size());
  return {path_, ++heard_lines_};
}

}  // namespace tenon
