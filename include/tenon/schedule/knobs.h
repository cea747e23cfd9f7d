#pragma once
#include <tenon/schedule/schedule.h>
#include <tenon/support/rng.h>

#include <functional>

namespace tenon {

/// A knob's value: a number, a word, or the inner sizes of a tile.
using KnobValue = std::variant<int64_t, std::string, std::vector<int64_t>>;
std::string to_text(const KnobValue& value);

/// Values of all knobs by name.
struct Point {
  std::map<std::string, KnobValue> values;

  bool operator==(const Point&) const = default;
  bool operator<(const Point& other) const { return values < other.values; }
  /// UserError with the nearest names when there is none, or when it is of another kind.
  int64_t number(const std::string& name) const;
  const std::string& word(const std::string& name) const;
  const std::vector<int64_t>& tile(const std::string& name) const;

  std::string to_json() const;  // {"pack":1,"tile_i":64}
  static Point from_json(std::string_view text);
  uint64_t hash() const;
};

enum class KnobKind : uint8_t { ladder, flag, word, tile };

/// What a knob may be. A ladder's values stand in the order of the declaration; neighbours are next
/// to each other.
struct Domain {
  std::string name;
  KnobKind kind = KnobKind::ladder;
  std::vector<KnobValue> values;  // each possible value, except of a tile
  int64_t extent = 0;             // tile: product of all levels ...
  int levels = 0;  // ... of which the inner levels-1 sizes are the value, outer first
  KnobValue default_value;

  bool contains(const KnobValue& value) const;
  int64_t size() const;  // number of values; saturates at INT64_MAX
  KnobValue random(Rng& rng) const;
  /// A value near `from`: next on the ladder, a factor moved between two levels, the flag flipped,
  /// another word.
  KnobValue neighbour(const KnobValue& from, Rng& rng) const;
  bool operator==(const Domain&) const = default;
};

struct Requirement {
  std::function<bool(const Point&)> holds;
  std::string why;
};

/// The space that a template declared.
struct KnobSpace {
  std::vector<Domain> domains;
  std::vector<Requirement> requirements;
  std::vector<Point> suggestions;

  Point default_point() const;
  /// The first requirement that fails or value outside its domain, in words; nothing when the point
  /// is good.
  std::optional<std::string> why_not(const Point& point) const;
  /// Uniform over the domains, redrawn while a requirement fails (at most 1000 times: then the
  /// default point).
  Point random_point(Rng& rng) const;
  /// `from` with one or two knobs changed, requirements kept; `from` itself when nothing near is
  /// allowed. A knob is chosen as often as its weight says (1 where it has none).
  Point mutate(const Point& from, Rng& rng,
               const std::map<std::string, double>& weights = {}) const;
  /// Each knob from one of the two.
  Point cross(const Point& a, const Point& b, Rng& rng) const;
  int64_t size() const;  // before requirements; saturates
};

struct DivisorRange {
  int64_t min = 1, max = INT64_MAX;
  std::optional<int64_t> standard;  // the default; else the largest divisor allowed
};

/// A template asks for numbers here. In *survey* mode it declares knobs and gets defaults (or
/// random values); in *bound* mode it gets the values of a point. All knobs must be declared before
/// the first branch on one of them.
class Knobs {
 public:
  /// Survey with the defaults, or with random answers.
  Knobs() = default;
  explicit Knobs(Rng& rng) : rng_(&rng) {}
  /// Bound: answers from `point`; UserError for a knob that it lacks or a value outside the domain.
  explicit Knobs(Point point) : point_(std::move(point)), bound_(true) {}

  int64_t pick(const std::string& name, std::vector<int64_t> values,
               std::optional<int64_t> standard = {});
  bool flag(const std::string& name, bool standard = false);
  /// A divisor of `extent` in [range.min, range.max]; 1 when there is none.
  int64_t divisor(const std::string& name, int64_t extent, const DivisorRange& range = {});
  /// Inner sizes of a split of `extent` into `levels` loops, outer first: levels-1 numbers whose
  /// product divides extent.
  std::vector<int64_t> tile(const std::string& name, int64_t extent, int levels,
                            std::optional<std::vector<int64_t>> standard = {});
  std::string choice(const std::string& name, std::vector<std::string> words,
                     std::optional<std::string> standard = {});
  /// Points for which `holds` is false are left out; evaluated without running the template.
  void require(std::function<bool(const Point&)> holds, std::string why);
  /// Constructive points worth trying first. Knobs that a point does not name get their default.
  void suggest(std::vector<Point> points);

  const KnobSpace& space() const { return space_; }
  bool is_bound() const { return bound_; }
  /// The answers given so far.
  const Point& answers() const { return answers_; }

 private:
  KnobValue answer(Domain domain);

  KnobSpace space_;
  Point point_, answers_;
  Rng* rng_ = nullptr;
  bool bound_ = false;
};

using Template = std::function<void(Schedule&, Knobs&)>;
struct NamedTemplate {
  std::string name;
  Template fn;
};

/// Runs the template on a fresh schedule and returns what it declared. UserError when two runs with
/// different random answers declare different knobs.
KnobSpace survey(const Template& fn, const Program& program, const Target& target);

}  // namespace tenon
