#include "draw.h"

#include <fmt/format.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace tenon {

int64_t Tally::all_accepted() const {
  return std::accumulate(accepted.begin(), accepted.end(), int64_t{0},
                         [](int64_t n, const auto& entry) { return n + entry.second; });
}

double Tally::refusals() const {
  const int64_t no = std::accumulate(refused.begin(), refused.end(), int64_t{0},
                                     [](int64_t n, const auto& e) { return n + e.second; });
  return static_cast<double>(no) / static_cast<double>(std::max<int64_t>(all_accepted() + no, 1));
}

double Tally::structural_per_program() const {
  return static_cast<double>(structural) / static_cast<double>(std::max<int64_t>(programs, 1));
}

std::string Tally::text() const {
  std::string out = fmt::format(
      "{} programs, {} steps accepted ({:.1f} structural ones a program), {:.0f}% of all refused\n",
      programs, all_accepted(), structural_per_program(), 100 * refusals());
  auto count = [](const std::map<std::string, int64_t>& in, const std::string& name) {
    const auto found = in.find(name);
    return found == in.end() ? 0 : found->second;
  };
  for (const std::string& name : primitive_names())
    out += fmt::format("  {:<24} accepted {:>6}  refused {:>6}\n", name, count(accepted, name),
                       count(refused, name));
  return out;
}

namespace {

/// A formula of one of the kinds among `directed`, most of the time, where there are any.
RandomFormula directed_formula(Rng& rng, const std::vector<std::string>& directed,
                               Choices& choices) {
  const auto wanted = [&](const std::string& kind) {
    return std::count(directed.begin(), directed.end(), kind) != 0;
  };
  const bool any = std::any_of(formula_kinds().begin(), formula_kinds().end(),
                               [&](const FormulaKind& k) { return wanted(k.name); });
  RandomFormula formula = random_formula(choices);
  for (int tries = 0; any && tries < 30 && !wanted(formula.kind); ++tries) {
    choices = Choices(rng.next());
    formula = random_formula(choices);
  }
  return formula;
}

}  // namespace

DrawnProgram draw_program(uint64_t seed, int64_t number, const Target& target, Tally* tally,
                          const OnRefusal& refused, const std::vector<std::string>& directed) {
  Rng rng(seed * 1000003 + static_cast<uint64_t>(number));
  Choices formula_choices(rng.next()), choices(rng.next());
  RandomFormula formula = directed_formula(rng, directed, formula_choices);
  Schedule s(formula.program, target);
  const int64_t steps = choices.between(5, 22), marks = choices.between(0, 5);
  // Every other program has a favourite step: rare ones meet rare formulas, and themselves. All
  // have a favourite stage, so that others stay unscheduled and can be moved.
  Favourites favourites{{}, choices.one_of(s.stages())};
  for (const StepKind& k : step_kinds())
    if (std::count(directed.begin(), directed.end(), k.primitive)) favourites.steps.push_back(&k);
  if (choices.chance(0.5)) favourites.steps.push_back(&choices.one_of(step_kinds()));
  for (int64_t n = 0; n < steps + marks; ++n) {
    const Primitive step = random_step(s, choices, n >= steps, favourites);
    const std::optional<Refusal> refusal = s.try_apply(step);
    if (refusal && refused) refused(s, step, *refusal);
    if (!tally) continue;
    ++(refusal ? tally->refused : tally->accepted)[std::string(primitive_name(step))];
    if (!refusal && is_structural(step)) ++tally->structural;
  }
  if (tally) {
    ++tally->programs;
    ++tally->kinds[formula.kind];
  }
  return {formula_choices.made(), std::move(formula), rng.next(), std::move(s)};
}

Target narrow_target() {
  Target t;
  t.name = "test/128";
  t.vector_bits = 128;
  t.cores = 2;
  return t;
}

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? parse_int(text).value_or(otherwise) : otherwise;
}

}  // namespace tenon
