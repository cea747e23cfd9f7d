#pragma once
#include <tenon/support/result.h>
#include <tenon/target/target.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The schema this version writes. Lines of a newer one are skipped and left as they are.
inline constexpr int64_t kRecordSchema = 1;

/// How a trial ended. Only `ok` has samples that may be compared; every other one has a reason.
enum class TrialStatus : uint8_t {
  ok,
  refused,          ///< a schedule step was not legal
  outpaced,         ///< far behind the best: stopped early and never verified
  compile_error,    ///< lowering or code generation gave up
  run_error,        ///< it crashed, or returned an error
  wrong_answer,     ///< it ran and its outputs are not those of the unscheduled kernel
  compile_timeout,  ///< it was not compiled in time
  run_timeout,      ///< it did not finish in time
  out_of_memory     ///< it asked for more memory than a trial may have
};

/// Were the outputs compared with the expected ones?
enum class CheckResult : uint8_t { passed, failed, not_run };

std::string_view name(TrialStatus status);  // the enumerator's word
std::string_view name(CheckResult check);
/// The inverse; nothing for another word.
std::optional<TrialStatus> parse_status(std::string_view word);

/// One trial: one line of a log. What JSON holds as an object or array is kept as JSON text, so
/// that a record outlives changes of the things it speaks of.
struct Record {
  int64_t schema = kRecordSchema;
  std::string task;           ///< name of the operator or fused group
  std::string args = "{}";    ///< object: the task's arguments by name
  std::string program;        ///< program_hash() of the unscheduled program
  std::string family;         ///< family_hash() of it
  Target target;              ///< the machine it was compiled for and measured on
  int threads = 1;            ///< threads it was measured with
  std::string template_name;  ///< "template" in the line
  std::string knobs = "{}";   ///< object: knob values by name
  std::string trace = "[]";   ///< array: the schedule's steps
  TrialStatus status = TrialStatus::refused;
  std::string reason;  ///< in words, for every status but ok
  bool cold = false;  ///< timed with its arguments out of the caches; never compared with warm ones
  std::vector<double> samples_us;  ///< time of one call each, raw
  CheckResult check = CheckResult::not_run;
  double check_error = 0;  ///< largest error as a share of the allowed one; NaN where unknown
  double compile_us = 0;
  uint64_t seed = 0;  ///< of the search and of the inputs
  int64_t trial = 0;  ///< number within the log's task; 0 is the default schedule
  /// Timed in turns with the neighbouring ones of that number, of which the default, trial 0, is
  /// the last; 0: a trial by itself.
  int64_t comparison = 0;
  std::string tenon;         ///< version of the compiler
  std::string llvm;          ///< version of the code generator
  std::string time;          ///< UTC, "2026-01-31T12:00:00Z"
  std::string newer = "{}";  ///< object: fields that this version does not know, kept when written

  bool operator==(const Record&) const = default;
};

/// "0.1.0": what this version writes as Record::tenon.
std::string tenon_version();

/// May it be the best: it ran to the end and its outputs were compared and right.
bool can_be_best(const Record& r);

/// Median of the samples, microseconds; NaN for none.
double median_us(const Record& r);

/// What two medians may differ by without meaning anything: the samples' median deviation, at
/// least 0.5% of the median.
double noise_us(const Record& r);

/// One JSON object, no line break. Text that is not UTF-8 is replaced, never refused.
std::string to_json_line(const Record& r);

/// The schema number of a line; 0 where it has none.
int64_t schema_of(std::string_view line);

/// The inverse. The failure says what is wrong with the line: not JSON, nested too deep, a field
/// that is missing or of the wrong type, a schema newer than kRecordSchema.
Result<Record> parse_record(std::string_view line);

}  // namespace tenon
