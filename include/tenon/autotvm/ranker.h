#pragma once
#include <tenon/compile/task.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// A scheduled program in numbers: its draft, shares of the draft's cycles, and the stores of its
/// lowered code.
struct RankerFeatures {
  double cycles = 0;          ///< drafted
  std::vector<float> values;  ///< in the order of ranker_feature_names()
};
const std::vector<std::string>& ranker_feature_names();

/// Drafts and lowers the scheduled program, about a millisecond. UserError for what lowering
/// refuses.
RankerFeatures ranker_features(const Program& scheduled, const Target& target, int threads,
                               const std::map<std::string, int64_t>& sizes = {});

/// A measured point, to learn from.
struct RankerRow {
  std::string operator_name;  ///< what leave_one_out() leaves out together
  std::string task;           ///< times are compared within a task
  RankerFeatures features;
  double us = 0;
};

/// What it takes to learn: a number to predict and how much it counts.
struct RankerSample {
  std::vector<float> features;
  double label = 0, weight = 1;
};

/// What trials of other tasks say of a program beside its draft score: the logarithm of measured
/// over drafted time, up to a constant of the task. Gradient-boosted trees. A cheap handle.
class Ranker {
 public:
  /// Knows nothing: the draft score alone decides.
  Ranker() = default;
  /// From rows of several tasks, each task as much as another, its fastest rows most. Knows nothing
  /// where rows are few (under 32) or libxgboost is missing. Deterministic.
  static Ranker fit(const std::vector<RankerRow>& rows);
  /// From a few trials of one task. Knows nothing as fit() does, but from 8 samples on.
  static Ranker fit_session(const std::vector<RankerSample>& samples);

  bool knows() const { return state_ != nullptr; }
  /// One a row of features; 0 where it knows nothing. Not to be called in two threads at once.
  std::vector<double> predict(const std::vector<const std::vector<float>*>& rows) const;

  /// One JSON object: {"ranker": version, "features": names, "check": hash, "trees": ..}. For one
  /// that knows something.
  std::string to_json() const;
  /// UserError, in words, for a text that is none, is damaged, or speaks of other features than
  /// this version's, and when libxgboost is missing.
  static Ranker from_json(const std::string& text);

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// The ranker in a file: one that knows nothing where there is no such file, or where it cannot be
/// used: `warning` says why.
struct LoadedRanker {
  Ranker ranker;
  std::string warning;
};
LoadedRanker load_ranker(const std::string& path);
/// Why no ranker knows anything here: libxgboost is not installed. Nothing when it is.
std::optional<std::string> trees_missing();
/// ranker.json beside the shipped logs; empty where there are none.
std::string shipped_ranker();

/// How far a search follows a ranker before it has trials of its own: the best so many drafts are
/// ordered anew, by drafts corrected by so much of what the ranker says of their logarithms.
constexpr size_t kRankerHead = 32;
constexpr double kRankerTrust = 0.67;

/// How well an order finds the fast points of a task.
struct RankQuality {
  double rho = 0;      ///< Spearman's rank correlation of order and time
  int64_t hits = 0;    ///< of its first 16, how many are in the true best 5%
  double reached = 0;  ///< time of the true best over that of the best of these 16
};
RankQuality rank_quality(const std::vector<double>& order, const std::vector<double>& us);

/// A task, ordered by drafts alone and with a ranker that saw other operators only: rho of drafts
/// as it corrects them, the rest of the order that a search begins with (its head anew).
struct UnseenQuality {
  std::string task;
  size_t points = 0;
  RankQuality draft, ranker;
};
/// For each operator a ranker of all others' rows. Tasks of fewer than 32 rows are left out.
std::vector<UnseenQuality> leave_one_out(const std::vector<RankerRow>& rows);
/// A line a task and one of their means.
std::string quality_table(const std::vector<UnseenQuality>& qualities);

}  // namespace tenon
