#include <algorithm>

#include "autotvm/search/pool.h"

namespace tenon {
namespace {

constexpr size_t kPopulation = 8;        // the fastest points, from which children come
constexpr double kRandomShare = 0.10;    // of the proposals
constexpr double kCrossShare = 0.10;     // of the children
constexpr double kTemplateShare = 0.05;  // of the children, where there are several templates
constexpr int kChildTries = 20;

class EvolutionarySearch : public Search {
 public:
  EvolutionarySearch(std::vector<KnobSpace> spaces, uint64_t seed)
      : pool_(std::move(spaces)), rng_(seed) {}

  bool done() const override { return pool_.exhausted(); }

  std::vector<SpacePoint> propose(int n) override {
    std::vector<SpacePoint> out;
    while (static_cast<int>(out.size()) < n) {
      std::optional<SpacePoint> at = pool_.take_constructive();
      // Until enough points are known, chance finds better parents than the default's children.
      if (!at && fastest_.size() == kPopulation && !rng_.chance(kRandomShare)) at = child();
      if (!at) at = pool_.take_random(rng_);
      if (!at) break;
      out.push_back(std::move(*at));
    }
    return out;
  }

  void learn(const std::vector<SearchOutcome>& outcomes) override {
    for (const SearchOutcome& outcome : outcomes) {
      pool_.mark(outcome.at);
      if (!outcome.us) continue;
      fastest_.erase(std::remove_if(fastest_.begin(), fastest_.end(),
                                    [&](const Measured& m) { return m.at == outcome.at; }),
                     fastest_.end());  // measured again
      // A tie keeps the earlier point in front.
      auto place = std::upper_bound(fastest_.begin(), fastest_.end(), *outcome.us,
                                    [](double us, const Measured& other) { return us < other.us; });
      fastest_.insert(place, {*outcome.us, outcome.at});
      if (fastest_.size() > kPopulation) fastest_.pop_back();
    }
  }

 private:
  struct Measured {
    double us;
    SpacePoint at;
  };

  const SpacePoint& parent() {
    return fastest_[static_cast<size_t>(rng_.below(static_cast<int64_t>(fastest_.size())))].at;
  }

  /// The parent's values where the other template has a knob of that name which may have them, else
  /// that knob's default.
  SpacePoint in_other_template(const SpacePoint& from) {
    const auto count = static_cast<int64_t>(pool_.spaces().size());
    const auto shift = static_cast<size_t>(1 + rng_.below(count - 1));
    SpacePoint to{(from.template_index + shift) % pool_.spaces().size(), {}};
    const KnobSpace& space = pool_.spaces()[to.template_index];
    to.point = space.default_point();
    for (const Domain& domain : space.domains) {
      auto value = from.point.values.find(domain.name);
      if (value != from.point.values.end() && domain.contains(value->second))
        to.point.values[domain.name] = value->second;
    }
    return to;
  }

  SpacePoint offspring() {
    const SpacePoint& from = parent();
    const KnobSpace& space = pool_.spaces()[from.template_index];
    if (pool_.spaces().size() > 1 && rng_.chance(kTemplateShare)) return in_other_template(from);
    if (rng_.chance(kCrossShare)) {
      const SpacePoint& other = parent();
      if (other.template_index == from.template_index)
        return {from.template_index, space.cross(from.point, other.point, rng_)};
    }
    return {from.template_index, space.mutate(from.point, rng_)};
  }

  std::optional<SpacePoint> child() {
    for (int i = 0; i < kChildTries; ++i) {
      SpacePoint at = offspring();
      if (pool_.take(at)) return at;
    }
    return std::nullopt;
  }

  PointPool pool_;
  Rng rng_;
  std::vector<Measured> fastest_;  // fastest first
};

}  // namespace

std::unique_ptr<Search> evolutionary_search(std::vector<KnobSpace> spaces, uint64_t seed) {
  return std::make_unique<EvolutionarySearch>(std::move(spaces), seed);
}

}  // namespace tenon
