#pragma once
#include <tenon/records/log.h>

#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What a record is wanted for. Constants are part of the program's hash.
struct RecordQuery {
  std::string program;      ///< program_hash() of the unscheduled program
  std::string family;       ///< family_hash() of it; empty: no look-up by family
  std::string args = "{}";  ///< object: which member of the family is the nearest
  Target target;
  int threads = 1;
  std::string tenon, llvm;  ///< versions; records of others count as adapted. Empty: any
  bool cold = false;        ///< records that were timed so; others answer nothing
};

/// How a record answers a query, the nearest first. Only `exact` is used as it is; each other one
/// is a suggestion: tried step by step, verified before use, and reported as "adapted from
/// LOG:LINE". A record of other instruction features, more or fewer, or of another thread count
/// answers nothing.
enum class Match : uint8_t {
  exact,            ///< this program on this CPU by this compiler, at the same sample sizes
  other_version,    ///< this program on this CPU by another compiler, or at other sample sizes
  other_cpu,        ///< this program on another CPU that has the same instruction features
  family,           ///< another member of the family on this CPU
  family_other_cpu  ///< another member of the family on a CPU of the same features
};

/// How `record` answers `query`; nothing: never.
std::optional<Match> match_of(const Record& record, const RecordQuery& query);

/// A record that answers a query.
struct FoundRecord {
  LoggedRecord logged;
  Match match = Match::exact;

  bool adapted() const { return match != Match::exact; }
};

/// The best of the records that match exactly: only those whose check passed. A trace measured more
/// than once counts as its last trial did, last in the order of the log: times of day order
/// nothing. Where some were timed in turns (Record::comparison), the turn that ends last in the log
/// decides alone: other times are of other minutes. Medians within noise of the lowest are ties and
/// the earliest of them wins, so the default schedule is kept unless something is really faster.
std::optional<LoggedRecord> best_record(const std::vector<LoggedRecord>& records,
                                        const RecordQuery& query);

/// With no exact match: the best record of the nearest match; in a family, of the nearest member.
/// Near: the sum over the arguments of |log(a / b)|; equal distances go to the faster one, then the
/// earlier.
std::optional<LoggedRecord> nearest_record(const std::vector<LoggedRecord>& records,
                                           const RecordQuery& query);

/// Where records are looked for, in this order. Empty: not there.
struct RecordPlaces {
  std::string log;                         ///< a file: --log
  std::string local = "tuning_logs";       ///< a folder of *.jsonl, under the current one
  std::string shipped = shipped_folder();  ///< the same, from the installation

  /// What TENON_SHIPPED_LOGS says (empty: none); where it is not set, tuning_logs/shipped of the
  /// installation or build that this program belongs to, and empty where there is none.
  static std::string shipped_folder();
};

/// The logs of all places, read once. The nearest match of all places answers; among equal ones
/// that of the first place.
class RecordStore {
 public:
  RecordStore() = default;
  /// UserError when `places.log` is given and cannot be read; folders may be absent.
  explicit RecordStore(const RecordPlaces& places);
  /// From records at hand, for tests and programs that keep their own.
  explicit RecordStore(std::vector<LoggedRecord> records);

  std::optional<FoundRecord> find(const RecordQuery& query) const;

  /// For a person: what the logs hold of these programs (or their families) but for other
  /// instruction features, thread counts or caches, where find() has no answer, and what to try.
  /// Empty: there is nothing of the kind.
  std::string passed_over(const std::vector<RecordQuery>& queries) const;
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<std::vector<LoggedRecord>> places_;
  std::vector<std::string> warnings_;
};

}  // namespace tenon
