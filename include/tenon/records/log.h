#pragma once
#include <tenon/records/record.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// A place in a log, written "tuning_logs/matmul.jsonl:17". Lines count from 1.
struct LogRef {
  std::string path;
  int64_t line = 0;

  std::string text() const;
  /// UserError when `text` is not FILE:LINE.
  static LogRef parse(std::string_view text);
  bool operator==(const LogRef&) const = default;
};

struct LoggedRecord {
  Record record;
  LogRef where;
};

/// What a log holds. Lines that cannot be used are skipped, each with a warning that names
/// FILE:LINE.
struct LoadedLog {
  std::vector<LoggedRecord> records;  // in the order of the file
  std::vector<std::string> warnings;  // at most 20 lines, then a count
};

/// Longest line, and most text in all, that load_log takes from a log; the rest is skipped with a
/// warning. Bounds the memory that a damaged or foreign file can cost.
inline constexpr int64_t kMaxLineBytes = 4 << 20;
inline constexpr int64_t kMaxLogBytes = 256 << 20;

/// One line of a log as it stands.
struct LogLine {
  LogRef where;
  std::string text;       ///< without its line break; empty where it is too long
  bool too_long = false;  ///< longer than kMaxLineBytes
  bool unended = false;   ///< the last, without a line break
};

/// Each line of a log in order, until `f` says false, in bounded memory. UserError when the file
/// cannot be read.
void for_each_line(const std::string& path, const std::function<bool(const LogLine&)>& f);

/// The record of a line, or what is wrong with it; nothing for a blank line.
std::optional<Result<Record>> record_of(const LogLine& line);

/// Reads a log, whatever the file holds. UserError when it cannot be opened or read.
LoadedLog load_log(const std::string& path);

/// The record at LOG:LINE. UserError when there is no such file or line, or the line is damaged.
Record read_record(const LogRef& where);

/// What merge_logs() did.
struct MergeReport {
  int64_t lines = 0;                  ///< in the new log
  int64_t duplicates = 0;             ///< left out
  std::vector<std::string> warnings;  ///< lines that are no records: kept as they are
};

/// Writes to `out` the lines of `logs` in order, equal lines once, where the first stands. What
/// cannot be read (damaged, or of a newer version) is kept as it is; blank lines go. A merge of a
/// merge is that merge. `out` may be one of `logs`; it is replaced at once or not at all. UserError
/// when `out` holds lines that none of `logs` has, or a line is longer than kMaxLineBytes.
MergeReport merge_logs(const std::vector<std::string>& logs, const std::string& out);

/// A log open for appending. Each record is one write of one whole line under a file lock, so
/// several programs may append at once, and one that is killed at any instant loses at most the
/// line it was writing. A last line without its line break is ended before the next is written;
/// nothing that stands in the file is ever changed.
class RecordLog {
 public:
  /// Creates the file and its folders. UserError when it cannot be written: call it before work
  /// whose result must be kept.
  explicit RecordLog(std::string path);
  ~RecordLog();
  RecordLog(RecordLog&& other) noexcept;
  RecordLog& operator=(RecordLog&& other) noexcept;

  /// The place of the new line; counting may cost a pass over what others appended since. UserError
  /// when the disk is full or the file was deleted; what stood in the file stands there still.
  LogRef append(const Record& record);
  /// Records that others have appended since the log was opened or since the last call.
  std::vector<LoggedRecord> news();
  const std::string& path() const { return path_; }

 private:
  void hear(int64_t size);
  void hear_line(std::string_view end);
  void write_line(const std::string& text, int64_t size);

  std::string path_;
  int fd_ = -1;
  int64_t opened_bytes_ = 0;                   // lines that begin before this are no news
  int64_t heard_bytes_ = 0, heard_lines_ = 0;  // line breaks in the first heard_bytes_
  std::string heard_line_;                     // what stands behind the last of them
  std::vector<LoggedRecord> news_;
};

}  // namespace tenon
