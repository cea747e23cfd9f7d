#include <tenon/schedule/knobs.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

namespace tenon {
namespace {

KnobValue numeric_default(const std::vector<KnobValue>& values, std::optional<int64_t> standard,
                          const KnobValue& other) {
  if (!standard) return other;
  KnobValue best = values.front();  // the largest value that is not above the wish
  for (const KnobValue& v : values)
    if (std::get<int64_t>(v) <= *standard && (std::get<int64_t>(best) > *standard || v > best))
      best = v;
  return best;
}

[[noreturn]] void bad_knob(const std::string& name, const std::string& rule) {
  throw UserError(fmt::format("knob \"{}\": {}", name, rule));
}

template <class T>
std::vector<KnobValue> distinct(const std::string& name, const std::vector<T>& values) {
  std::vector<KnobValue> out;
  for (const T& v : values)
    if (std::find(out.begin(), out.end(), KnobValue(v)) == out.end()) out.emplace_back(v);
  if (out.empty()) bad_knob(name, "needs at least one value");
  return out;
}

}  // namespace

KnobValue Knobs::answer(Domain domain) {
  for (const Domain& d : space_.domains)
    if (d.name == domain.name) bad_knob(domain.name, "is declared twice");
  KnobValue value = domain.default_value;
  if (bound_) {
    const auto found = point_.values.find(domain.name);
    if (found == point_.values.end())
      bad_knob(domain.name, "the point has no value for it: " + point_.to_json());
    value = found->second;
    if (!domain.contains(value)) {
      std::vector<std::string> allowed;
      for (const KnobValue& v : domain.values) allowed.push_back(to_text(v));
      bad_knob(domain.name, domain.kind == KnobKind::tile
                                ? fmt::format("{} is not {} inner sizes of {}", to_text(value),
                                              domain.levels - 1, domain.extent)
                                : fmt::format("{} is none of {}", to_text(value), join(allowed)));
    }
  } else if (rng_) {
    value = domain.random(*rng_);
  }
  answers_.values[domain.name] = value;
  space_.domains.push_back(std::move(domain));
  return value;
}

int64_t Knobs::pick(const std::string& name, std::vector<int64_t> values,
                    std::optional<int64_t> standard) {
  Domain d;
  d.name = name;
  d.values = distinct(name, values);
  d.default_value = numeric_default(d.values, standard, d.values.front());
  return std::get<int64_t>(answer(std::move(d)));
}

bool Knobs::flag(const std::string& name, bool standard) {
  Domain d;
  d.name = name;
  d.kind = KnobKind::flag;
  d.values = {KnobValue(int64_t{0}), KnobValue(int64_t{1})};
  d.default_value = d.values[standard ? 1 : 0];
  return std::get<int64_t>(answer(std::move(d))) != 0;
}

int64_t Knobs::divisor(const std::string& name, int64_t extent, const DivisorRange& range) {
  Domain d;
  d.name = name;
  for (int64_t n = 1; n * n <= extent; ++n) {
    if (extent % n != 0) continue;
    d.values.emplace_back(n);
    if (n != extent / n) d.values.emplace_back(extent / n);
  }
  std::erase_if(d.values, [&](const KnobValue& v) {
    return std::get<int64_t>(v) < range.min || std::get<int64_t>(v) > range.max;
  });
  if (d.values.empty()) d.values.emplace_back(int64_t{1});
  std::sort(d.values.begin(), d.values.end());
  d.default_value = numeric_default(d.values, range.standard, d.values.back());
  return std::get<int64_t>(answer(std::move(d)));
}

std::vector<int64_t> Knobs::tile(const std::string& name, int64_t extent, int levels,
                                 std::optional<std::vector<int64_t>> standard) {
  if (levels < 1) bad_knob(name, fmt::format("a tile needs at least 1 level, not {}", levels));
  Domain d;
  d.name = name;
  d.kind = KnobKind::tile;
  d.extent = extent;
  d.levels = levels;
  d.default_value = standard.value_or(std::vector<int64_t>(static_cast<size_t>(levels - 1), 1));
  if (!d.contains(d.default_value))
    bad_knob(name, fmt::format("the default {} is not {} inner sizes of {}",
                               to_text(d.default_value), levels - 1, extent));
  return std::get<std::vector<int64_t>>(answer(std::move(d)));
}

std::string Knobs::choice(const std::string& name, std::vector<std::string> words,
                          std::optional<std::string> standard) {
  Domain d;
  d.name = name;
  d.kind = KnobKind::word;
  d.values = distinct(name, words);
  d.default_value = standard ? KnobValue(*standard) : d.values.front();
  if (!d.contains(d.default_value))
    bad_knob(name, fmt::format("the default {} is none of {}", *standard, join(words)));
  return std::get<std::string>(answer(std::move(d)));
}

void Knobs::require(std::function<bool(const Point&)> holds, std::string why) {
  space_.requirements.push_back({std::move(holds), std::move(why)});
}

void Knobs::suggest(std::vector<Point> points) {
  for (Point& p : points) space_.suggestions.push_back(std::move(p));
}

KnobSpace survey(const Template& fn, const Program& program, const Target& target) {
  Knobs defaults;
  Schedule s(program, target);
  fn(s, defaults);
  Rng rng(1);
  for (int run = 0; run < 2; ++run) {
    Knobs random(rng);
    Schedule trial(program, target);
    try {
      fn(trial, random);
    } catch (const ScheduleError&) {
      // A random point may be refused; its knobs were declared before the first step.
    }
    if (!(random.space().domains == defaults.space().domains))
      throw UserError(
          "a template declared other knobs for other answers; declare all knobs before the first "
          "branch");
  }
  KnobSpace space = defaults.space();
  for (Point& p : space.suggestions)
    for (const Domain& d : space.domains) p.values.emplace(d.name, d.default_value);
  return space;
}

}  // namespace tenon
