#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// Rows of so many numbers each, one after the other.
struct TreeRows {
  size_t columns = 0;
  std::vector<float> values;

  size_t count() const { return columns == 0 ? 0 : values.size() / columns; }
  /// InternalError for a row of another length.
  void add(const std::vector<float>& row);
};

struct TreeOptions {
  int rounds = 80;
  int depth = 6;
  double rate = 0.05;       ///< share of each tree's correction that is taken
  double least_weight = 5;  ///< of the rows in a leaf, together
  double columns = 0.3;     ///< share of the columns that a split looks at
};

/// Regression by gradient-boosted trees (XGBoost, one thread): the sum of squares, rows by weight.
/// The library is opened at the first use. The same rows give the same trees.
class BoostedTrees {
 public:
  /// Why there are none: libxgboost is not installed. Nothing when it is.
  static std::optional<std::string> missing();

  /// UserError when libxgboost is missing.
  static BoostedTrees fit(const TreeRows& rows, const std::vector<float>& labels,
                          const std::vector<float>& weights, const TreeOptions& options);
  /// The inverse of to_json(). UserError for another text, for trees over another number of
  /// columns, and when libxgboost is missing.
  static BoostedTrees from_json(const std::string& text, size_t columns);
  /// XGBoost's own format, one JSON object.
  std::string to_json() const;

  /// One number a row. Not to be called in two threads at once.
  std::vector<float> predict(const TreeRows& rows) const;

 private:
  struct Booster;
  explicit BoostedTrees(std::shared_ptr<const Booster> booster) : booster_(std::move(booster)) {}
  std::shared_ptr<const Booster> booster_;
};

}  // namespace tenon
