#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// What a refusal is about.
/// legality: without the check a step makes a wrong program, one beyond a limit, or one that
/// lowering
///   cannot carry out; the random tests must notice when it is switched off.
/// backup: no wrong program gets through without it: another rule refuses the same, no tree that
///   today's steps make needs it, or the step would only make slow code. It stands for its better
///   words.
/// usage: the call itself makes no sense; the step could not be carried out.
enum class RuleKind : uint8_t { legality, backup, usage };

/// Every reason why a step is refused: the rows of legality_rules.h. Each id stands at one or more
/// refuse() calls and has a test on its text in tests/refusals.
enum class Rule : uint8_t {
#define TENON_RULE(id, kind, primitives, text) id,
#include "schedule/legality_rules.h"
#undef TENON_RULE
};

struct RuleInfo {
  Rule rule;
  std::string_view id;
  RuleKind kind;
  std::string_view primitives;  // names with spaces between; empty: all
  std::string_view text;        // what must hold
};
/// The table above, in its order.
const std::vector<RuleInfo>& rules();
const RuleInfo& info(Rule rule);

/// Throws Refusal. It returns only where a test has switched the rule off; code after it must then
/// not crash.
void refuse(Rule rule, std::string text, std::string hint = {}, std::string loop = {});

/// Switches one legality or backup rule off for this thread while it lives: the random tests show
/// with it that they find what the rule prevents.
class RuleOff {
 public:
  explicit RuleOff(Rule rule);
  ~RuleOff();
  RuleOff(const RuleOff&) = delete;
  RuleOff& operator=(const RuleOff&) = delete;
};

}  // namespace tenon
