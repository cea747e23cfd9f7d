#include <fcntl.h>
#include <tenon/records/log.h>
#include <tenon/support/files.h>
#include <tenon/support/text.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <unordered_set>

#include "autotvm/records/file_lock.h"

namespace tenon {
namespace {

/// The file that is there already, locked so that no tuner appends to what is being replaced.
class Replaced {
 public:
  explicit Replaced(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ >= 0) lock_.emplace(fd_, path);
  }
  ~Replaced() {
    lock_.reset();
    if (fd_ >= 0) ::close(fd_);
  }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  int fd_;
  std::optional<FileLock> lock_;
};

class Merge {
 public:
  void add(const LogLine& line) {
    if (line.too_long)
      throw UserError(fmt::format("{}: longer than {} MiB, which no record is\n  try: without it",
                                  line.where.text(), kMaxLineBytes >> 20));
    const std::optional<Result<Record>> record = record_of(line);
    if (!record) return;
    if (!seen_.insert(line.text).second) {
      ++report_.duplicates;
      return;
    }
    if (!record->ok())
      report_.warnings.push_back(
          fmt::format("{}: kept as it is: {}", line.where.text(), record->error()));
    ++report_.lines;
    text_ += line.text + "\n";
  }

  /// Nothing that only `out` holds may be lost.
  void check_covers(const std::string& out) const {
    int64_t missing = 0;
    for_each_line(out, [&](const LogLine& line) {
      missing += line.too_long || (!trim(line.text).empty() && !seen_.count(line.text));
      return true;
    });
    if (missing == 0) return;
    throw UserError(
        fmt::format("{} is there already and holds {} line(s) that none of the logs to merge has"
                    "\n  try: name it among them, too, or another file",
                    out, missing));
  }

  const std::string& text() const { return text_; }
  const MergeReport& report() const { return report_; }

 private:
  std::unordered_set<std::string> seen_;
  std::string text_;
  MergeReport report_;
};

}  // namespace

MergeReport merge_logs(const std::vector<std::string>& logs, const std::string& out) {
  const Replaced locked(out);
  Merge merge;
  for (const std::string& log : logs) {
    for_each_line(log, [&](const LogLine& line) {
      merge.add(line);
      return true;
    });
  }
  std::error_code none;
  if (std::filesystem::exists(out, none)) merge.check_covers(out);
  if (const auto failed = write_file(out, merge.text()))
    throw UserError(fmt::format("cannot write {}: {}", out, failed->message));
  return merge.report();
}

}  // namespace tenon
