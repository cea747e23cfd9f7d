#include "autotvm/search/pool.h"

namespace tenon {
namespace {

class RandomSearch : public Search {
 public:
  RandomSearch(std::vector<KnobSpace> spaces, uint64_t seed)
      : pool_(std::move(spaces)), rng_(seed) {}

  bool done() const override { return pool_.exhausted(); }

  std::vector<SpacePoint> propose(int n) override {
    std::vector<SpacePoint> out;
    while (static_cast<int>(out.size()) < n) {
      std::optional<SpacePoint> at = pool_.take_constructive();
      if (!at) at = pool_.take_random(rng_);
      if (!at) break;
      out.push_back(std::move(*at));
    }
    return out;
  }

  void learn(const std::vector<SearchOutcome>& outcomes) override {
    for (const SearchOutcome& outcome : outcomes) pool_.mark(outcome.at);
  }

 private:
  PointPool pool_;
  Rng rng_;
};

}  // namespace

std::unique_ptr<Search> random_search(std::vector<KnobSpace> spaces, uint64_t seed) {
  return std::make_unique<RandomSearch>(std::move(spaces), seed);
}

}  // namespace tenon
