#include "minimise.h"

#include <fmt/format.h>
#include <tenon/ir/program_json.h>
#include <tenon/support/text.h>

namespace tenon {
namespace {

class Shrinker {
 public:
  Shrinker(FuzzCase c, const Judge& judge, int64_t tries, const std::atomic<bool>& stop)
      : best_(std::move(c)), judge_(judge), tries_(tries), stop_(stop) {}

  FuzzCase run() {
    bool progress = true;
    while (progress && !ended()) {
      progress = drop_steps();
      progress = shrink_choices() || progress;
      progress = shrink_factors() || progress;
    }
    return best_;
  }

 private:
  bool ended() const { return stop_ || tries_ <= 0; }

  /// Keeps the candidate when it still fails.
  bool take(FuzzCase candidate) {
    if (ended()) return false;
    --tries_;
    const std::optional<RebuiltCase> made = rebuild(candidate);
    if (!made) return false;
    try {
      const Oracle oracle(made->formula, candidate.data_seed);
      if (judge_(oracle, made->schedule).empty()) return false;
    } catch (const std::exception&) {
      return false;  // the formula itself cannot be run
    }
    candidate.trace = made->schedule.trace();
    best_ = std::move(candidate);
    return true;
  }

  bool drop_steps() {
    bool progress = false;
    for (size_t n = best_.trace.size(); n-- > 0;) {
      if (n >= best_.trace.size()) continue;
      FuzzCase candidate = best_;
      candidate.trace.erase(candidate.trace.begin() + static_cast<std::ptrdiff_t>(n));
      progress = take(std::move(candidate)) || progress;
    }
    return progress;
  }

  bool shrink_choices() {
    bool progress = false;
    for (size_t n = 0; n < best_.choices.size(); ++n)
      for (const int64_t smaller : {int64_t{0}, best_.choices[n] / 2, best_.choices[n] - 1}) {
        if (n >= best_.choices.size() || smaller < 0 || smaller >= best_.choices[n]) continue;
        FuzzCase candidate = best_;
        candidate.choices[n] = smaller;
        progress = take(std::move(candidate)) || progress;
      }
    return progress;
  }

  /// Whole numbers in the fields of steps.
  bool shrink_factors() {
    bool progress = false;
    for (size_t n = 0; n < best_.trace.size(); ++n)
      for (size_t field = 0; field < 8; ++field)
        for (const int64_t by : {2, 1}) {
          FuzzCase candidate = best_;
          if (n >= candidate.trace.size() || !lessen(candidate.trace[n], field, by)) continue;
          progress = take(std::move(candidate)) || progress;
        }
    return progress;
  }

  /// Halves (by 2) or decrements (by 1) the step's field of that number; false where it has none.
  static bool lessen(Primitive& step, size_t field, int64_t by) {
    bool changed = false;
    std::visit(
        [&](auto& p) {
          using P = std::decay_t<decltype(p)>;
          size_t at = 0;
          for_each_field<P>([&](const auto& f) {
            using T = std::decay_t<decltype(p.*f.member)>;
            if constexpr (std::is_same_v<T, int64_t>) {
              int64_t& value = p.*f.member;
              if (at == field && value > 1) {
                value = by == 2 ? value / 2 : value - 1;
                changed = true;
              }
            }
            ++at;
          });
        },
        step);
    return changed;
  }

  FuzzCase best_;
  const Judge& judge_;
  int64_t tries_;
  const std::atomic<bool>& stop_;
};

std::string commented(const std::string& text) {
  std::string out;
  for (const std::string& line : split_text(text, '\n'))
    if (!line.empty()) out += "  // " + line + "\n";
  return out;
}

std::string indented(const std::string& text) {
  std::string out;
  for (const std::string& line : split_text(text, '\n'))
    if (!line.empty()) out += "  " + line + "\n";
  return out;
}

}  // namespace

std::optional<RebuiltCase> rebuild(const FuzzCase& c) {
  try {
    Choices choices(c.choices);
    RandomFormula formula = random_formula(choices);
    Schedule s(formula.program, c.target);
    for (const Primitive& step : c.trace) s.try_apply(step);
    return RebuiltCase{std::move(formula), std::move(s)};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

FuzzCase minimise(FuzzCase c, const Judge& judge, int64_t tries, const std::atomic<bool>& stop) {
  return Shrinker(std::move(c), judge, tries, stop).run();
}

std::string cpp_case(const FuzzCase& c, const std::string& fault) {
  const std::optional<RebuiltCase> made = rebuild(c);
  if (!made) return "the case cannot be made again\n";
  const RandomFormula& f = made->formula;
  std::string out = fmt::format("TEST_CASE(\"{} after {} steps\") {{\n", f.kind, c.trace.size());
  out += commented(fault.substr(0, 400)) + commented(print(f.program));
  out += fmt::format(
      "  const RandomFormula f{{\"{}\", program_from_json(R\"json({})json\"), {}, {}}};\n", f.kind,
      to_json(f.program), f.index_limit, f.exact);
  out += c.target.name == narrow_target().name
             ? std::string("  Schedule s(f.program, narrow_target());\n")
             : fmt::format("  Schedule s(f.program, Target::parse(\"{}\"));\n", c.target.name);
  out += indented(to_cpp(made->schedule.trace()));
  out += fmt::format("  const Oracle oracle(f, {}u);\n", c.data_seed);
  out += "  CHECK(oracle.tree_fault(s.program()) == \"\");\n";
  out += "  CHECK(oracle.flat_fault(s.program(), s.target()) == \"\");\n";
  out += "  CHECK(oracle.machine_fault(s.program(), Target::host()) == \"\");\n}\n";
  return out;
}

}  // namespace tenon
