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
};

/// A record that answers a query.
struct FoundRecord {
  LoggedRecord logged;
  /// Another member of the family, or another compiler version: its trace is a suggestion, to be
  /// tried step by step, verified before use, and reported as "adapted from LOG:LINE".
  bool adapted = false;
};

/// Whether the record was measured with the sample sizes of symbolic extents that the query names; a
/// query that names none takes any.
bool same_samples(const Record& record, const RecordQuery& query);

/// The best record among `records` that were measured for exactly this query: only those whose
/// check passed, never another target's, thread count's or version's. A trace measured more than
/// once counts as its last trial did. Medians within noise of the lowest are ties and the
/// earliest of them wins, so the default schedule is kept unless something is really faster.
std::optional<LoggedRecord> best_record(const std::vector<LoggedRecord>& records,
                                        const RecordQuery& query);

/// With no exact match: the best record of the family's nearest member on the same target and
/// thread count, or of this program by another compiler version. Near: the sum over the arguments
/// of |log(a / b)|; equal distances go to the faster one, then the earlier.
std::optional<LoggedRecord> nearest_record(const std::vector<LoggedRecord>& records,
                                           const RecordQuery& query);

/// Where records are looked for, in this order. Empty: not there.
struct RecordPlaces {
  std::string log;                         ///< a file: --log
  std::string local = "tuning_logs";       ///< a folder of *.jsonl, under the current one
  std::string shipped = shipped_folder();  ///< the same, from the installation

  /// tuning_logs/shipped of the installation or build that this program belongs to; empty where
  /// there is none.
  static std::string shipped_folder();
};

/// The logs of all places, read once. The first place with an exact match answers; then the first
/// with an adapted one.
class RecordStore {
 public:
  RecordStore() = default;
  /// UserError when `places.log` is given and cannot be read; folders may be absent.
  explicit RecordStore(const RecordPlaces& places);
  /// From records at hand, for tests and programs that keep their own.
  explicit RecordStore(std::vector<LoggedRecord> records);

  std::optional<FoundRecord> find(const RecordQuery& query) const;
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<std::vector<LoggedRecord>> places_;
  std::vector<std::string> warnings_;
};

}  // namespace tenon
