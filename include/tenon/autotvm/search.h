#pragma once
#include <tenon/schedule/knobs.h>

#include <functional>
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
/// proposals. The default of the first template is proposed first; searches without forecasts go on
/// with the suggestions of all templates and the other defaults. No point is proposed twice, nor
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

/// What is known of a point before it is measured.
struct Forecast {
  double us = 0;  ///< estimated time; only ratios count
  /// Why it cannot be good or is not allowed, as a class of reasons that are counted; such a point
  /// is not proposed.
  std::string hopeless;
  /// Hash of the program it makes; empty: not known. Of points that make the same one is proposed.
  std::string program = {};
};

/// Forecasts of many points at once, in order. Deterministic.
using Forecaster = std::function<std::vector<Forecast>(const std::vector<SpacePoint>&)>;

/// Logarithms of measured over forecast time, up to a constant of the task: what was known before
/// this session's trials, and what they say beyond that.
struct Correction {
  double known = 0, session = 0;
};
/// A trial as a model learns from it: what is left of the logarithm of measured over forecast time
/// after what was known, as far as trials bear it out, and its template's calibration; and how much
/// the trial counts.
struct TrialRest {
  SpacePoint at;
  double left = 0, weight = 1;
};

/// A learned model beside the forecasts; asked for few points, for each takes some milliseconds.
/// Deterministic.
class ForecastModel {
 public:
  virtual ~ForecastModel() = default;
  virtual std::vector<Correction> correct(const std::vector<SpacePoint>& points) = 0;
  /// Of all trials of this session, in their order; replaces what earlier calls said.
  virtual void fit(const std::vector<TrialRest>& trials) = 0;
};

/// The points of the best forecasts. Before the first trial a population is drawn and evolved on
/// forecasts alone; then each template's forecasts are set right by what its trials took, children
/// of the fastest points join, and each proposal is the best forecast left (one in so many is the
/// choice of chance among the rest). The default of the first template still comes first. `model`
/// (null: none) corrects the best kRankerHead forecasts; it is fitted after 8 trials and each time
/// they are a quarter more, at least 8, and corrects the best 64 from then on.
std::unique_ptr<Search> guided_search(std::vector<KnobSpace> spaces, uint64_t seed,
                                      Forecaster forecast,
                                      std::shared_ptr<ForecastModel> model = {});

/// "guided" (which needs forecasts), "random", "grid" or "evolutionary"; UserError with the nearest
/// name for another word.
std::unique_ptr<Search> make_search(const std::string& name, std::vector<KnobSpace> spaces,
                                    uint64_t seed, Forecaster forecast = {},
                                    std::shared_ptr<ForecastModel> model = {});

}  // namespace tenon
