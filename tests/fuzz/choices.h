#pragma once
#include <tenon/support/rng.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon {

/// Random decisions that are remembered, so that a failing case can be drawn again from smaller
/// ones: every decision is a number from 0 up, and 0 is the simplest.
class Choices {
 public:
  explicit Choices(uint64_t seed) : rng_(Rng(seed)) {}
  /// Makes these decisions again, each cut to what is allowed; 0 when they are used up.
  explicit Choices(std::vector<int64_t> fixed) : fixed_(std::move(fixed)) {}

  /// In [0, n); n >= 1.
  int64_t below(int64_t n) {
    const size_t at = made_.size();
    int64_t choice = 0;
    if (rng_)
      choice = rng_->below(n);
    else if (at < fixed_.size())
      choice = fixed_[at] < n ? fixed_[at] : n - 1;
    made_.push_back(choice);
    return choice;
  }
  /// In [low, high].
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(double p) { return static_cast<double>(below(1000)) >= 1000 * (1 - p); }
  template <class T>
  const T& one_of(const std::vector<T>& all) {
    return all[static_cast<size_t>(below(static_cast<int64_t>(all.size())))];
  }

  const std::vector<int64_t>& made() const { return made_; }

 private:
  std::optional<Rng> rng_;
  std::vector<int64_t> fixed_, made_;
};

}  // namespace tenon
