#include <tenon/autotvm/ranker.h>
#include <tenon/support/error.h>
#include <tenon/support/stats.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

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
constexpr size_t kHead = 64;          // of them that a model of trials corrects
constexpr size_t kNewInHead = 16;     // of these at most so many each time, but for a new model's
constexpr int kProposalsBetween = 8;  // of such times
constexpr size_t kLeastTrials = 8;    // for a model to be fitted, and between two fits

/// A point that waits to be proposed.
struct Waiting {
  SpacePoint at;
  double us = 0;                                        // the forecast, as it was made
  std::optional<Correction> correction = std::nullopt;  // by the model
};

struct Trial {
  SpacePoint at;
  double us = 0, log_ratio = 0;  // measured; of this over the forecast
  double known = 0;              // what the model said of log_ratio before the session
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

/// How much of what the model knew before the session its trials bear out, between 0 and 1: the
/// slope of their logarithms over it, drawn towards kRankerTrust by as much as so many trials would
/// say.
double trust_of(const std::vector<Trial>& trials) {
  constexpr double kPrior = 8 * 0.2 * 0.2;
  double known = 0, ratio = 0;
  for (const Trial& t : trials) {
    known += t.known / static_cast<double>(trials.size());
    ratio += t.log_ratio / static_cast<double>(trials.size());
  }
  double both = kRankerTrust * kPrior, squares = kPrior;
  for (const Trial& t : trials) {
    both += (t.known - known) * (t.log_ratio - ratio);
    squares += (t.known - known) * (t.known - known);
  }
  return std::clamp(both / squares, 0.0, 1.0);
}

class GuidedSearch : public Search {
 public:
  GuidedSearch(std::vector<KnobSpace> spaces, uint64_t seed, Forecaster forecast,
               std::shared_ptr<ForecastModel> model)
      : pool_(std::move(spaces)),
        rng_(seed),
        forecast_(std::move(forecast)),
        model_(std::move(model)) {
    TENON_CHECK(forecast_, "a guided search without forecasts");
    weights_.resize(pool_.spaces().size());
  }

  bool done() const override { return pool_.exhausted() && waiting_.empty(); }

  std::vector<SpacePoint> propose(int n) override {
    std::vector<SpacePoint> out;
    if (!default_proposed_ && n > 0) {
      default_proposed_ = true;
      if (const auto at = pool_.take_default()) out.push_back(*at);
    }
    if (static_cast<int>(out.size()) == n) return out;
    look_at_trials();
    populate();
    breed_fastest();
    rank();
    ask_model();
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
    news_.push_back({at, us});
    reward(at, us);
    fastest_.emplace(us, at);
    if (fastest_.size() > kFastest) fastest_.erase(std::prev(fastest_.end()));
  }

  /// Knobs whose change paid in a child of a measured point are changed more often, others less.
  void reward(const SpacePoint& at, double us) {
    constexpr double kPaid = 1.5, kDidNot = 0.9, kLeast = 0.25, kMost = 8;
    times_[at] = us;
    const auto parent = parents_.find(at);
    if (parent == parents_.end()) return;
    const auto before = times_.find(parent->second);
    if (before == times_.end()) return;
    for (const auto& [knob, value] : at.point.values) {
      if (parent->second.point.values.at(knob) == value) continue;
      double& weight = weights_[at.template_index].try_emplace(knob, 1.0).first->second;
      weight = std::clamp(weight * (us < 0.99 * before->second ? kPaid : kDidNot), kLeast, kMost);
    }
  }

  /// What was learned of since the last proposals, beside its forecasts.
  void look_at_trials() {
    std::vector<SpacePoint> points, unknown;
    for (const Trial& t : news_) {
      points.push_back(t.at);
      if (!forecasts_.count(t.at)) unknown.push_back(t.at);
    }
    const std::vector<Forecast> forecasts = forecast_(unknown);
    for (size_t n = 0; n < unknown.size(); ++n) forecasts_[unknown[n]] = forecasts[n].us;
    const std::vector<Correction> said =
        model_ ? model_->correct(points) : std::vector<Correction>(points.size());
    for (size_t n = 0; n < news_.size(); ++n) {
      Trial& t = news_[n];
      const double forecast = forecasts_.at(t.at);
      if (forecast <= 0 || t.us <= 0) continue;
      t.log_ratio = std::log(t.us / forecast);
      t.known = said[n].known;
      trials_.push_back(std::move(t));
    }
    news_.clear();
  }

  /// Forecasts the points and lets those with hope wait.
  void add(const std::vector<SpacePoint>& points) {
    const std::vector<Forecast> forecasts = forecast_(points);
    for (size_t n = 0; n < points.size(); ++n) {
      if (!forecasts[n].hopeless.empty()) continue;
      if (!forecasts[n].program.empty() && !programs_.insert(forecasts[n].program).second) continue;
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
      SpacePoint child{from.template_index, pool_.spaces()[from.template_index].mutate(
                                                from.point, rng_, weights_[from.template_index])};
      if (!pool_.take(child)) continue;
      parents_[child] = from;
      out.push_back(std::move(child));
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

  /// What sets forecasts right: what is to be believed of the model, and a factor a template.
  struct Mending {
    double trust = 1;
    std::vector<double> factors;
    std::vector<size_t> trials;  // of each template
  };
  Mending mending() const {
    Mending out;
    out.trust = trust_of(trials_);
    std::vector<Calibration> calibrations(pool_.spaces().size());
    std::vector<double> all;
    for (const Trial& t : trials_) {
      all.push_back(t.log_ratio - out.trust * t.known);
      calibrations[t.at.template_index].log_ratios.push_back(all.back());
    }
    const double of_all = all.empty() ? 0 : median(all);
    for (const Calibration& c : calibrations) {
      out.factors.push_back(c.factor(of_all));
      out.trials.push_back(c.log_ratios.size());
    }
    return out;
  }

  /// What the model knew of the points that it corrected, in the middle: what it would say of all
  /// moves none before another.
  double typical_known() const {
    std::vector<double> known;
    for (const Waiting& w : waiting_)
      if (w.correction) known.push_back(w.correction->known);
    return known.empty() ? 0 : median(known);
  }

  /// By calibrated and corrected forecast, the best first; of equal ones first those of templates
  /// with fewer trials, then in the order of their points.
  void rank() {
    const Mending m = mending();
    const Correction typical{typical_known(), 0};
    const auto estimate = [&](const Waiting& w) {
      const Correction c = w.correction.value_or(typical);
      return w.us * m.factors[w.at.template_index] * std::exp(m.trust * c.known + c.session);
    };
    std::sort(waiting_.begin(), waiting_.end(), [&](const Waiting& a, const Waiting& b) {
      const double x = estimate(a), y = estimate(b);
      if (x != y) return x < y;
      const size_t p = m.trials[a.at.template_index], q = m.trials[b.at.template_index];
      return p != q ? p < q : a.at < b.at;
    });
    if (waiting_.size() > kKept) waiting_.resize(kKept);
  }

  /// Now and then: the model learns of the trials and corrects the best forecasts.
  void ask_model() {
    if (!model_) return;
    const bool learns = trials_.size() >= next_fit_;
    if (!learns && asked_ && ++proposals_since_ < kProposalsBetween) return;
    size_t most = asked_ ? kNewInHead : kRankerHead;
    if (learns) {
      fit_model();
      for (Waiting& w : waiting_) w.correction.reset();
      most = kHead;
    }
    asked_ = true;
    proposals_since_ = 0;
    correct_head(most);
    rank();
  }

  void fit_model() {
    next_fit_ = trials_.size() + std::max(kLeastTrials, trials_.size() / 4);
    const Mending m = mending();
    const double best = fastest_.begin()->first;
    std::vector<TrialRest> rests;
    for (const Trial& t : trials_) {
      const double left =
          t.log_ratio - m.trust * t.known - std::log(m.factors[t.at.template_index]);
      rests.push_back({t.at, left, best / t.us});
    }
    model_->fit(rests);
  }

  /// Corrects at most so many of the first points that are not corrected yet.
  void correct_head(size_t most) {
    std::vector<size_t> places;
    for (size_t n = 0; n < std::min(kHead, waiting_.size()) && places.size() < most; ++n)
      if (!waiting_[n].correction) places.push_back(n);
    std::vector<SpacePoint> points;
    for (size_t n : places) points.push_back(waiting_[n].at);
    const std::vector<Correction> said = model_->correct(points);
    for (size_t n = 0; n < places.size(); ++n) waiting_[places[n]].correction = said[n];
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
  std::shared_ptr<ForecastModel> model_;
  bool asked_ = false;  // the model
  int proposals_since_ = 0;
  size_t next_fit_ = kLeastTrials;
  std::vector<Trial> news_, trials_;  // learned of since the last proposals; before
  bool default_proposed_ = false, populated_ = false;
  std::vector<Waiting> waiting_;
  std::map<SpacePoint, double> forecasts_;
  std::map<SpacePoint, SpacePoint> parents_;            // of children
  std::map<SpacePoint, double> times_;                  // measured
  std::vector<std::map<std::string, double>> weights_;  // of changes, by template and knob
  std::set<std::string> programs_;                      // of all points that were let wait
  std::multimap<double, SpacePoint> fastest_;
};

}  // namespace

std::unique_ptr<Search> guided_search(std::vector<KnobSpace> spaces, uint64_t seed,
                                      Forecaster forecast, std::shared_ptr<ForecastModel> model) {
  return std::make_unique<GuidedSearch>(std::move(spaces), seed, std::move(forecast),
                                        std::move(model));
}

}  // namespace tenon
