#include <catch2/catch.hpp>

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <iostream>

#include "schedule/legality.h"
#include "tests/fuzz/draw.h"
#include "tests/fuzz/oracle.h"

// Proof that the random tests find faults: each legality rule is switched off in turn, and programs
// that it would have refused must be noticed.

using namespace tenon;

namespace {

constexpr int64_t kPrograms = 2000;

struct Attempt {
  Schedule before;
  Primitive step;
  Rule rule;
};

/// What came of switching one rule off.
struct Hunt {
  int64_t fired = 0, tried = 0;
  int64_t found_at = -1;  // number of the program
  std::string fault;
  std::map<std::string, int64_t> shadows;  // rules that refuse the same steps

  /// Carries the refused step out and looks for what is wrong then.
  void take(int64_t program, const Attempt& a, const Oracle& oracle) {
    ++fired;
    try {
      Program tree;
      {
        const RuleOff off(a.rule);
        tree = apply(a.before.program(), a.before.target(), a.step);
      }
      fault = oracle.tree_fault(tree);
      if (fault.empty()) fault = oracle.flat_fault(tree, a.before.target());
    } catch (const Refusal& other) {
      ++shadows[other.id];
      return;
    } catch (const std::exception& e) {
      fault = e.what();
    }
    ++tried;
    if (!fault.empty()) found_at = program;
    if (const char* show = std::getenv("TENON_RULE"); show && info(a.rule).id == show)
      std::cout << fmt::format(
          "program {}\n{}  fault: {}\n", program,
          a.before.message(a.step, *check(a.before.program(), a.before.target(), a.step)), fault);
  }
};

using Hunts = std::map<Rule, Hunt>;

/// What to draw more of for a rule: its primitives, and the steps and formulas that lead to where
/// it matters.
std::vector<std::string> directed_at(Rule rule) {
  static const std::map<Rule, std::string> kLeadUp = {
      {Rule::cache_read_part, "reverse_compute_at split tile normalised rows"},
      {Rule::decompose_overlap, "split matmul rows stencil"},
      {Rule::fold_input_later, "fan"},
      {Rule::fold_limit, "growing"},
      {Rule::fold_two_writers, "decompose_reduction cache_write"},
      {Rule::inline_limit, "growing"},
      {Rule::reorder_dependent, "scan split"},
      {Rule::reverse_empty, "rfactor reorder matmul"},
      {Rule::reverse_last, "split reorder matmul rows"},
      {Rule::split_pad_divides, "quotients"},
      {Rule::split_pad_writers, "cache_write reorder matmul"},
      {Rule::split_shift_order, "scan cache_write compute_at"},
  };
  std::vector<std::string> out = split_text(info(rule).primitives, ' ');
  if (const auto more = kLeadUp.find(rule); more != kLeadUp.end())
    for (const std::string& name : split_text(more->second, ' ')) out.push_back(name);
  return out;
}

/// Programs `first` to `last` of the random tests, with each refusal by one of the rules that they
/// meet carried out all the same. A rule that has been found is left alone, as is one that was
/// tried `trials` times.
void hunt(Hunts& hunts, int64_t first, int64_t last, int64_t trials,
          const std::vector<std::string>& directed = {}) {
  std::map<std::string, Rule> by_id;
  for (const auto& [rule, h] : hunts) by_id.emplace(info(rule).id, rule);
  const auto seed = static_cast<uint64_t>(from_environment("TENON_SEED", 20261129));
  for (int64_t n = first; n < last; ++n) {
    std::vector<Attempt> attempts;
    auto remember = [&](const Schedule& before, const Primitive& step, const Refusal& refusal) {
      const auto rule = by_id.find(refusal.id);
      if (rule == by_id.end()) return;
      const Hunt& h = hunts[rule->second];
      if (h.found_at < 0 && h.tried < trials) attempts.push_back({before, step, rule->second});
    };
    const DrawnProgram drawn = draw_program(seed, n, narrow_target(), nullptr, remember, directed);
    if (attempts.empty()) continue;
    const Oracle oracle(drawn.formula, drawn.data_seed);
    for (const Attempt& a : attempts)
      if (Hunt& h = hunts[a.rule]; h.found_at < 0) h.take(n, a, oracle);
  }
}

Hunts rules_of(RuleKind kind) {
  Hunts out;
  for (const RuleInfo& r : rules())
    if (r.kind == kind && r.primitives != "bind") out[r.rule];  // a CPU binds nothing
  return out;
}

std::string line(const RuleInfo& rule, const Hunt& h) {
  std::string out = fmt::format("  {:<28} refused {:>4}, tried {:>4}  ", rule.id, h.fired, h.tried);
  if (h.found_at >= 0)
    out += fmt::format("found by program {}: {}", h.found_at, h.fault.substr(0, 80));
  for (const auto& [other, count] : h.shadows) out += fmt::format(" {} {},", other, count);
  return out + "\n";
}

}  // namespace

TEST_CASE("the random programs notice when a legality rule is switched off") {
  Hunts hunts = rules_of(RuleKind::legality);
  hunt(hunts, 0, kPrograms / 4, 200);
  int64_t found = 0;
  for (auto& [rule, h] : hunts) {
    if (h.found_at < 0) {  // the others are drawn with more of what the rule is about
      Hunts alone{{rule, h}};
      hunt(alone, kPrograms / 4, kPrograms, 600, directed_at(rule));
      h = alone[rule];
    }
    found += h.found_at >= 0;
    std::cout << line(info(rule), h);
  }
  std::cout << fmt::format("equivalence: {} of {} legality rules noticed when off\n", found,
                           hunts.size());
  CHECK(found * 10 >= static_cast<int64_t>(hunts.size()) * 9);
}

TEST_CASE("nothing wrong gets through without the backup rules") {
  Hunts hunts = rules_of(RuleKind::backup);
  hunt(hunts, 0, kPrograms, 60);
  for (const auto& [rule, h] : hunts) {
    std::cout << line(info(rule), h);
    INFO(info(rule).id << "\n" << h.fault);
    CHECK(h.found_at < 0);
  }
}
