#include "autotvm/search/pool.h"

namespace tenon {
namespace {

class GridSearch : public Search {
 public:
  explicit GridSearch(std::vector<KnobSpace> spaces) : pool_(std::move(spaces)) {}

  bool done() const override { return pool_.exhausted(); }

  std::vector<SpacePoint> propose(int n) override {
    std::vector<SpacePoint> out;
    while (static_cast<int>(out.size()) < n) {
      std::optional<SpacePoint> at = pool_.take_constructive();
      if (!at) at = pool_.take_next();
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
};

}  // namespace

std::unique_ptr<Search> grid_search(std::vector<KnobSpace> spaces) {
  return std::make_unique<GridSearch>(std::move(spaces));
}

}  // namespace tenon
