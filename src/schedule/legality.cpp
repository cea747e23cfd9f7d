#include "schedule/legality.h"

#include <tenon/schedule/fields.h>
#include <tenon/support/error.h>

#include <optional>

namespace tenon {
namespace {

thread_local std::optional<Rule> switched_off;

}  // namespace

const std::vector<RuleInfo>& rules() {
  static const std::vector<RuleInfo> table = {
#define TENON_RULE(id, kind, primitives, text) {Rule::id, #id, RuleKind::kind, primitives, text},
#include "schedule/legality_rules.h"
#undef TENON_RULE
  };
  return table;
}

const RuleInfo& info(Rule rule) { return rules()[static_cast<size_t>(rule)]; }

void refuse(Rule rule, std::string text, std::string hint, std::string loop) {
  if (switched_off == rule) return;
  throw Refusal{std::move(text), std::move(hint), std::move(loop), {}, std::string(info(rule).id)};
}

RuleOff::RuleOff(Rule rule) {
  TENON_CHECK(info(rule).kind != RuleKind::usage, "{} cannot be switched off", info(rule).id);
  switched_off = rule;
}

RuleOff::~RuleOff() { switched_off.reset(); }

}  // namespace tenon
