#include "autotvm/search/pool.h"

namespace tenon {
namespace {

void list_tiles(int64_t extent, int levels_left, std::vector<int64_t>& sizes,
                std::vector<KnobValue>& out) {
  if (levels_left == 0) {
    out.emplace_back(sizes);
    return;
  }
  for (int64_t size = 1; size <= extent; ++size) {
    if (extent % size != 0) continue;
    sizes.push_back(size);
    list_tiles(extent / size, levels_left - 1, sizes, out);
    sizes.pop_back();
  }
}

std::vector<std::vector<KnobValue>> values_of(const KnobSpace& space) {
  std::vector<std::vector<KnobValue>> out;
  for (const Domain& domain : space.domains) out.push_back(domain_values(domain));
  return out;
}

}  // namespace

std::vector<KnobValue> domain_values(const Domain& domain) {
  if (domain.kind != KnobKind::tile) return domain.values;
  std::vector<KnobValue> out;
  std::vector<int64_t> sizes;
  list_tiles(domain.extent, domain.levels - 1, sizes, out);
  return out;
}

PointPool::PointPool(std::vector<KnobSpace> spaces) : spaces_(std::move(spaces)) {
  for (size_t t = 0; t < spaces_.size(); ++t) {
    if (t == 0) constructive_.push_back({t, spaces_[t].default_point()});
  }
  for (size_t t = 0; t < spaces_.size(); ++t) {
    for (const Point& suggestion : spaces_[t].suggestions) {
      Point whole = spaces_[t].default_point();
      for (const auto& [name, value] : suggestion.values) whole.values[name] = value;
      constructive_.push_back({t, std::move(whole)});
    }
  }
  for (size_t t = 1; t < spaces_.size(); ++t)
    constructive_.push_back({t, spaces_[t].default_point()});
  if (spaces_.empty()) {
    exhausted_ = true;
  } else {
    grid_values_ = values_of(spaces_.front());
    grid_digits_.assign(grid_values_.size(), 0);
  }
}

bool PointPool::take(const SpacePoint& at) {
  if (seen_.count(at) || spaces_[at.template_index].why_not(at.point)) return false;
  return seen_.insert(at).second;
}

std::optional<SpacePoint> PointPool::take_default() {
  if (constructive_.empty() || !take(constructive_.front())) return std::nullopt;
  return constructive_.front();
}

std::optional<SpacePoint> PointPool::take_constructive() {
  while (next_constructive_ < constructive_.size()) {
    const SpacePoint& at = constructive_[next_constructive_++];
    if (take(at)) return at;
  }
  return std::nullopt;
}

std::optional<SpacePoint> PointPool::take_random(Rng& rng) {
  constexpr int kDraws = 100;
  for (int draw = 0; draw < kDraws && !exhausted_; ++draw) {
    const auto t = static_cast<size_t>(rng.below(static_cast<int64_t>(spaces_.size())));
    SpacePoint at{t, spaces_[t].random_point(rng)};
    if (take(at)) return at;
  }
  return take_next();
}

/// To the next place of the grid; false behind the last.
bool PointPool::advance() {
  for (size_t d = grid_digits_.size(); d-- > 0;) {
    if (++grid_digits_[d] < grid_values_[d].size()) return true;
    grid_digits_[d] = 0;
  }
  if (++grid_template_ == spaces_.size()) return false;
  grid_values_ = values_of(spaces_[grid_template_]);
  grid_digits_.assign(grid_values_.size(), 0);
  return true;
}

std::optional<SpacePoint> PointPool::take_next() {
  while (!exhausted_) {
    SpacePoint at{grid_template_, {}};
    for (size_t d = 0; d < grid_digits_.size(); ++d)
      at.point.values[spaces_[grid_template_].domains[d].name] = grid_values_[d][grid_digits_[d]];
    exhausted_ = !advance();
    if (take(at)) return at;
  }
  return std::nullopt;
}

}  // namespace tenon
