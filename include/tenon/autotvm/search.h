#pragma once
#include <tenon/schedule/knobs.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// A point of a task's space: one of its templates, with values for that template's knobs.
struct SpacePoint {
  size_t template_index = 0;
  Point point;

  bool operator==(const SpacePoint&) const = default;
  bool operator<(const SpacePoint& other) const {
    return template_index != other.template_index ? template_index < other.template_index
                                                  : point < other.point;
  }
};

/// What became of a point. Without a time: it failed, or was stopped because it was far behind.
struct SearchOutcome {
  SpacePoint at;
  std::optional<double> us;
};

/// Decides what is measured next. Deterministic: the same seed and the same outcomes give the same
/// proposals. Every search proposes the constructive points first: the default of the first
/// template, the suggestions of all templates, the other defaults. No point is proposed twice, nor
/// one that learn() was told of.
class Search {
 public:
  virtual ~Search() = default;
  /// Nothing is left to propose.
  virtual bool done() const = 0;
  /// At most n new points; fewer only when the space runs out.
  virtual std::vector<SpacePoint> propose(int n) = 0;
  /// Outcomes in any order, also of points that come from an earlier session's log.
  virtual void learn(const std::vector<SearchOutcome>& outcomes) = 0;
};

/// Uniform over each template's space, templates in turn.
std::unique_ptr<Search> random_search(std::vector<KnobSpace> spaces, uint64_t seed);

/// Every point, the last knob fastest.
std::unique_ptr<Search> grid_search(std::vector<KnobSpace> spaces);

/// Children of the fastest points: a knob moved to a neighbour (next on the ladder, a factor moved
/// between two levels of a tile, a flag flipped), two parents crossed, or the same values in
/// another template; some random ones so that it cannot get stuck.
std::unique_ptr<Search> evolutionary_search(std::vector<KnobSpace> spaces, uint64_t seed);

/// "random", "grid" or "evolutionary"; UserError with the nearest name for another word.
std::unique_ptr<Search> make_search(const std::string& name, std::vector<KnobSpace> spaces,
                                    uint64_t seed);

}  // namespace tenon
