#pragma once
#include <tenon/autotvm/search.h>

#include <set>

namespace tenon {

/// Which points of a space were proposed or learned of, the constructive ones in their order, and
/// the whole space one point after the other. What all searches share.
class PointPool {
 public:
  explicit PointPool(std::vector<KnobSpace> spaces);

  const std::vector<KnobSpace>& spaces() const { return spaces_; }

  /// Marks the point; false when it was marked before or a requirement forbids it.
  bool take(const SpacePoint& at);
  void mark(const SpacePoint& at) { seen_.insert(at); }

  /// The default of the first template, where it is not marked; marks it.
  std::optional<SpacePoint> take_default();
  /// The next constructive point that is not marked; marks it.
  std::optional<SpacePoint> take_constructive();
  /// A random point of a random template, not marked so far; marks it. Where random draws find no
  /// new point, the next one in the order of the grid. Nothing when the space is used up.
  std::optional<SpacePoint> take_random(Rng& rng);
  /// The next point in the order of the grid; marks it. Nothing when all are marked.
  std::optional<SpacePoint> take_next();

  bool exhausted() const { return exhausted_; }

 private:
  bool advance();

  std::vector<KnobSpace> spaces_;
  std::vector<SpacePoint> constructive_;
  size_t next_constructive_ = 0;
  std::set<SpacePoint> seen_;

  // The grid's place: template, its domains' values, and a digit a domain.
  size_t grid_template_ = 0;
  std::vector<std::vector<KnobValue>> grid_values_;
  std::vector<size_t> grid_digits_;
  bool exhausted_ = false;
};

/// All values of a domain, in order; for a tile the inner sizes whose product divides the extent.
std::vector<KnobValue> domain_values(const Domain& domain);

}  // namespace tenon
