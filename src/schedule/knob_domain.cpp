#include <tenon/schedule/knobs.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

namespace tenon {
namespace {

std::vector<int64_t> prime_factors(int64_t n) {
  std::vector<int64_t> out;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) out.push_back(p);
  if (n > 1) out.push_back(n);
  return out;
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t out = 1;
  for (int64_t s : sizes) out *= s;
  return out;
}

bool is_tile_of(const Domain& d, const KnobValue& value) {
  const auto* sizes = std::get_if<std::vector<int64_t>>(&value);
  if (!sizes || static_cast<int>(sizes->size()) != d.levels - 1) return false;
  int64_t rest = std::max<int64_t>(d.extent, 1);
  for (int64_t s : *sizes) {
    if (s < 1 || rest % s != 0) return false;
    rest /= s;
  }
  return true;
}

/// Ways to hand `count` equal prime factors to `levels` levels; saturates.
int64_t ways(int64_t count, int64_t levels) {
  __int128 out = 1;
  for (int64_t n = 1; n < levels; ++n) out = out * (count + n) / n;
  return static_cast<int64_t>(std::min<__int128>(out, INT64_MAX));
}

/// A prime factor goes from one level to another; levels count the outermost, whose size is the
/// rest.
KnobValue move_factor(const Domain& d, std::vector<int64_t> sizes, Rng& rng) {
  std::vector<int64_t> all = {std::max<int64_t>(d.extent, 1) / product(sizes)};
  all.insert(all.end(), sizes.begin(), sizes.end());
  std::vector<size_t> movable;
  for (size_t n = 0; n < all.size(); ++n)
    if (all[n] > 1) movable.push_back(n);
  if (movable.empty() || all.size() < 2) return sizes;
  const size_t from = movable[static_cast<size_t>(rng.below(static_cast<int64_t>(movable.size())))];
  size_t to = static_cast<size_t>(rng.below(static_cast<int64_t>(all.size()) - 1));
  if (to >= from) ++to;
  const std::vector<int64_t> primes = prime_factors(all[from]);
  const int64_t p = primes[static_cast<size_t>(rng.below(static_cast<int64_t>(primes.size())))];
  all[from] /= p;
  all[to] *= p;
  return std::vector<int64_t>(all.begin() + 1, all.end());
}

}  // namespace

std::string to_text(const KnobValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  std::vector<std::string> parts;
  for (int64_t s : std::get<std::vector<int64_t>>(value)) parts.push_back(fmt::format("{}", s));
  return join(parts, "x");
}

bool Domain::contains(const KnobValue& value) const {
  if (kind == KnobKind::tile) return is_tile_of(*this, value);
  return std::find(values.begin(), values.end(), value) != values.end();
}

int64_t Domain::size() const {
  if (kind != KnobKind::tile) return static_cast<int64_t>(values.size());
  const std::vector<int64_t> primes = prime_factors(extent);
  int64_t out = 1;
  for (size_t n = 0; n < primes.size();) {
    const size_t first = n;
    while (n < primes.size() && primes[n] == primes[first]) ++n;
    if (__builtin_mul_overflow(out, ways(static_cast<int64_t>(n - first), levels), &out))
      return INT64_MAX;
  }
  return out;
}

KnobValue Domain::random(Rng& rng) const {
  if (kind != KnobKind::tile)
    return values[static_cast<size_t>(rng.below(static_cast<int64_t>(values.size())))];
  std::vector<int64_t> sizes(static_cast<size_t>(levels), 1);
  for (int64_t p : prime_factors(extent)) sizes[static_cast<size_t>(rng.below(levels))] *= p;
  return std::vector<int64_t>(sizes.begin() + 1, sizes.end());
}

KnobValue Domain::neighbour(const KnobValue& from, Rng& rng) const {
  if (kind == KnobKind::tile) return move_factor(*this, std::get<std::vector<int64_t>>(from), rng);
  const auto n = static_cast<int64_t>(values.size());
  if (n < 2) return from;
  const int64_t at = std::find(values.begin(), values.end(), from) - values.begin();
  if (kind == KnobKind::ladder || kind == KnobKind::flag) {
    const bool up = at == 0 || (at < n - 1 && rng.chance(0.5));
    return values[static_cast<size_t>(up ? at + 1 : at - 1)];
  }
  const int64_t other = rng.below(n - 1);
  return values[static_cast<size_t>(other >= at ? other + 1 : other)];
}

Point KnobSpace::default_point() const {
  Point out;
  for (const Domain& d : domains) out.values[d.name] = d.default_value;
  return out;
}

std::optional<std::string> KnobSpace::why_not(const Point& point) const {
  for (const Domain& d : domains) {
    const auto found = point.values.find(d.name);
    if (found == point.values.end()) return fmt::format("knob \"{}\" has no value", d.name);
    if (!d.contains(found->second))
      return fmt::format("knob \"{}\" cannot be {}", d.name, to_text(found->second));
  }
  for (const auto& knob : point.values) {
    const auto own = [&](const Domain& d) { return d.name == knob.first; };
    if (std::any_of(domains.begin(), domains.end(), own)) continue;
    std::vector<std::string> names;
    for (const Domain& d : domains) names.push_back(d.name);
    return fmt::format("there is no knob \"{}\"; the knobs are {}", knob.first, join(names));
  }
  for (const Requirement& r : requirements)
    if (!r.holds(point)) return r.why;
  return std::nullopt;
}

Point KnobSpace::random_point(Rng& rng) const {
  Point point;
  std::vector<KnobValue*> values;
  for (const Domain& d : domains) values.push_back(&point.values[d.name]);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    for (size_t n = 0; n < domains.size(); ++n) *values[n] = domains[n].random(rng);
    // Each knob has a value of its own domain.
    if (std::all_of(requirements.begin(), requirements.end(),
                    [&](const Requirement& r) { return r.holds(point); }))
      return point;
  }
  return default_point();
}

Point KnobSpace::mutate(const Point& from, Rng& rng,
                        const std::map<std::string, double>& weights) const {
  std::vector<const Domain*> movable;
  std::vector<double> up_to;  // sums of weights
  for (const Domain& d : domains) {
    if (d.size() <= 1) continue;
    const auto weight = weights.find(d.name);
    movable.push_back(&d);
    up_to.push_back((up_to.empty() ? 0 : up_to.back()) +
                    (weight == weights.end() ? 1.0 : weight->second));
  }
  if (movable.empty()) return from;
  const auto draw = [&]() -> const Domain& {
    if (weights.empty())
      return *movable[static_cast<size_t>(rng.below(static_cast<int64_t>(movable.size())))];
    const double at = rng.real() * up_to.back();
    const auto place = std::upper_bound(up_to.begin(), up_to.end() - 1, at);
    return *movable[static_cast<size_t>(place - up_to.begin())];
  };
  for (int attempt = 0; attempt < 100; ++attempt) {
    Point point = from;
    const int changes = rng.chance(0.3) ? 2 : 1;
    for (int n = 0; n < changes; ++n) {
      const Domain& d = draw();
      point.values[d.name] = d.neighbour(point.values.at(d.name), rng);
    }
    if (!(point == from) && !why_not(point)) return point;
  }
  return from;
}

Point KnobSpace::cross(const Point& a, const Point& b, Rng& rng) const {
  Point out;
  for (const Domain& d : domains) out.values[d.name] = (rng.chance(0.5) ? a : b).values.at(d.name);
  return why_not(out) ? a : out;
}

int64_t KnobSpace::size() const {
  int64_t out = 1;
  for (const Domain& d : domains)
    if (__builtin_mul_overflow(out, d.size(), &out)) return INT64_MAX;
  return out;
}

}  // namespace tenon
