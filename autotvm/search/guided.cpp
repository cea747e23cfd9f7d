#include <tenon/support/error.h>
#include <tenon/support/stats.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "autotvm/search/pool.h"

namespace tenon {
namespace {

constexpr size_t kDrawn = 192;        // random points of each space before the first trial
constexpr size_t kParents = 48;       // of which come the children, by forecast
constexpr int kGenerations = 3;       // on forecasts alone
constexpr size_t kChildren = 96;      // in each generation
constexpr size_t kFastest = 6;        // measured points that have children later
constexpr int kChildrenLater = 48;    // for each batch of proposals
constexpr double kChanceShare = 0.1;  // of the proposals
constexpr size_t kKept = 2048;        // points that wait, the best forecasts of them

/// A point that waits to be proposed.
struct Waiting {
  SpacePoint at;
  double us = 0;  // the forecast, as it was made
};

/// What a template's trials took, beside their forecasts.
struct Calibration {
  std::vector<double> log_ratios;
  /// Measured time for a forecast of 1. Few trials count half: their middle is drawn towards what
  /// all templates' trials say.
  double factor(double of_all) const {
    constexpr double kPrior = 1;
    if (log_ratios.empty()) return std::exp(of_all);
    const auto n = static_cast<double>(log_ratios.size());
    return std::exp((n * median(log_ratios) + kPrior * of_all) / (n + kPrior));
  }
};

class GuidedSearch : public Search {
 public:
  GuidedSearch(std::vector<KnobSpace> spaces, uint64_t seed, Forecaster forecast)
      : pool_(std::move(spaces)), rng_(seed), forecast_(std::move(forecast)) {
    TENON_CHECK(forecast_, "a guided search without forecasts");
    calibrations_.resize(pool_.spaces().size());
  }

  bool done() const override { return pool_.exhausted() && waiting_.empty(); }

  std::vector<SpacePoint> propose(int n) override {
    std::vector<SpacePoint> out;
    if (!default_proposed_ && n > 0) {
      default_proposed_ = true;
      if (const auto at = pool_.take_default()) out.push_back(*at);
    }
    if (static_cast<int>(out.size()) == n) return out;
    populate();
    breed_fastest();
    rank();
    while (static_cast<int>(out.size()) < n) {
      const std::optional<SpacePoint> at = next();
      if (!at) break;
      out.push_back(*at);
    }
    return out;
  }

  void learn(const std::vector<SearchOutcome>& outcomes) override {
    for (const SearchOutcome& outcome : outcomes) {
      pool_.mark(outcome.at);
      const auto place = std::find_if(waiting_.begin(), waiting_.end(),
                                      [&](const Waiting& w) { return w.at == outcome.at; });
      if (place != waiting_.end()) waiting_.erase(place);
      if (outcome.us) learn_time(outcome.at, *outcome.us);
    }
  }

 private:
  void learn_time(const SpacePoint& at, double us) {
    const auto known = forecasts_.find(at);
    const double forecast = known != forecasts_.end() ? known->second : forecast_({at})[0].us;
    if (forecast > 0 && us > 0)
      calibrations_[at.template_index].log_ratios.push_back(std::log(us / forecast));
    fastest_.emplace(us, at);
    if (fastest_.size() > kFastest) fastest_.erase(std::prev(fastest_.end()));
  }

  /// Forecasts the points and lets those with hope wait.
  void add(const std::vector<SpacePoint>& points) {
    const std::vector<Forecast> forecasts = forecast_(points);
    for (size_t n = 0; n < points.size(); ++n) {
      if (!forecasts[n].hopeless.empty()) continue;
      waiting_.push_back({points[n], forecasts[n].us});
      forecasts_[points[n]] = forecasts[n].us;
    }
  }

  /// New children of the parents: at most `count`, fewer where mutation finds nothing new.
  std::vector<SpacePoint> children(const std::vector<SpacePoint>& parents, size_t count) {
    std::vector<SpacePoint> out;
    for (size_t tries = 0; !parents.empty() && tries < 3 * count && out.size() < count; ++tries) {
      const SpacePoint& from =
          parents[static_cast<size_t>(rng_.below(static_cast<int64_t>(parents.size())))];
      SpacePoint child{from.template_index,
                       pool_.spaces()[from.template_index].mutate(from.point, rng_)};
      if (pool_.take(child)) out.push_back(std::move(child));
    }
    return out;
  }

  /// Once: constructive and random points, evolved on their forecasts.
  void populate() {
    if (populated_) return;
    populated_ = true;
    std::vector<SpacePoint> points;
    while (const auto at = pool_.take_constructive()) points.push_back(*at);
    for (size_t t = 0; t < pool_.spaces().size(); ++t)
      for (size_t n = 0; n < kDrawn; ++n) {
        SpacePoint at{t, pool_.spaces()[t].random_point(rng_)};
        if (pool_.take(at)) points.push_back(std::move(at));
      }
    add(points);
    for (int g = 0; g < kGenerations; ++g) {
      rank();
      std::vector<SpacePoint> parents;
      for (size_t n = 0; n < std::min(kParents, waiting_.size()); ++n)
        parents.push_back(waiting_[n].at);
      add(children(parents, kChildren));
    }
  }

  void breed_fastest() {
    std::vector<SpacePoint> parents;
    for (const auto& [us, at] : fastest_) parents.push_back(at);
    add(children(parents, kChildrenLater));
  }

  /// Random points until one has hope or the space is used up.
  void refill() {
    while (waiting_.empty() && !pool_.exhausted()) {
      std::vector<SpacePoint> points;
      while (points.size() < static_cast<size_t>(kChildrenLater)) {
        const auto at = pool_.take_random(rng_);
        if (!at) break;
        points.push_back(*at);
      }
      add(points);
      rank();
    }
  }

  /// By calibrated forecast, the best first; equal ones in the order of their points.
  void rank() {
    std::vector<double> all;
    for (const Calibration& c : calibrations_)
      all.insert(all.end(), c.log_ratios.begin(), c.log_ratios.end());
    const double of_all = all.empty() ? 0 : median(all);
    std::vector<double> factors;
    for (const Calibration& c : calibrations_) factors.push_back(c.factor(of_all));
    std::sort(waiting_.begin(), waiting_.end(), [&](const Waiting& a, const Waiting& b) {
      const double x = a.us * factors[a.at.template_index], y = b.us * factors[b.at.template_index];
      return x != y ? x < y : a.at < b.at;
    });
    if (waiting_.size() > kKept) waiting_.resize(kKept);
  }

  std::optional<SpacePoint> next() {
    refill();
    if (waiting_.empty()) return std::nullopt;
    size_t n = 0;
    if (rng_.chance(kChanceShare)) {
      const size_t half = std::max<size_t>(1, waiting_.size() / 2);
      n = static_cast<size_t>(rng_.below(static_cast<int64_t>(half)));
    }
    SpacePoint at = waiting_[n].at;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(n));
    return at;
  }

  PointPool pool_;
  Rng rng_;
  Forecaster forecast_;
  bool default_proposed_ = false, populated_ = false;
  std::vector<Waiting> waiting_;
  std::map<SpacePoint, double> forecasts_;
  std::vector<Calibration> calibrations_;  // by template
  std::multimap<double, SpacePoint> fastest_;
};

}  // namespace

std::unique_ptr<Search> guided_search(std::vector<KnobSpace> spaces, uint64_t seed,
                                      Forecaster forecast) {
  return std::make_unique<GuidedSearch>(std::move(spaces), seed, std::move(forecast));
}

}  // namespace tenon
