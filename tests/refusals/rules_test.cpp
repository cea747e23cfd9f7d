#include <catch2/catch.hpp>

#include <tenon/support/files.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "rule_rows.h"

using namespace tenon;
namespace fs = std::filesystem;

namespace {

std::vector<RuleRow> all_rows() {
  std::vector<RuleRow> out;
  for (auto* rows : {loop_rows, compute_at_rows, reverse_compute_at_rows, buffer_rows})
    for (RuleRow& row : rows()) out.push_back(std::move(row));
  return out;
}

/// The texts of all sources in a folder, one behind the other, in order of their names.
std::string sources_in(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(TENON_SOURCE_DIR) / folder))
    if (entry.path().extension() == ".cpp") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string out;
  for (const fs::path& file : files) out += read_file(file.string()).value();
  return out;
}

/// The string literals of a piece of C++, neighbours joined to one.
std::vector<std::string> literals(std::string_view code) {
  std::vector<std::string> out;
  bool joins = false;
  for (size_t n = 0; n < code.size(); ++n) {
    if (code[n] != '"') {
      joins = joins && std::isspace(static_cast<unsigned char>(code[n]));
      continue;
    }
    std::string text;
    for (++n; n < code.size() && code[n] != '"'; ++n) {
      if (code[n] == '\\') ++n;
      text += code[n];
    }
    joins ? void(out.back() += text) : out.push_back(text);
    joins = true;
  }
  return out;
}

/// A call of refuse(), or of what calls it with a rule: the rule and the literals of its text (hint
/// and loop left out).
struct Site {
  std::string rule;
  std::vector<std::string> texts;
};

std::vector<Site> refusal_sites(const std::string& code) {
  static const std::string kRule = "Rule::";
  std::vector<Site> out;
  for (size_t at = code.find(kRule); at != std::string::npos; at = code.find(kRule, at + 1)) {
    if (code[code.find_last_not_of(" \n", at - 1)] != '(') continue;
    const size_t rule = at + kRule.size(), comma = code.find(',', rule);
    size_t end = comma + 1;
    bool quoted = false;
    for (int depth = 0; end < code.size(); ++end) {
      if (code[end] == '\\')
        ++end;
      else if (code[end] == '"')
        quoted = !quoted;
      else if (!quoted && (code[end] == '(' || code[end] == '{'))
        ++depth;
      else if (!quoted && (code[end] == ')' || code[end] == '}') && depth-- == 0)
        break;
      else if (!quoted && code[end] == ',' && depth == 0)
        break;
    }
    // Where the text is put together elsewhere, the hint tells the refusal.
    Site site{code.substr(rule, comma - rule),
              literals(std::string_view(code).substr(comma, end - comma))};
    if (join(site.texts).empty())
      site.texts = literals(std::string_view(code).substr(end, code.find(';', end) - end));
    out.push_back(std::move(site));
  }
  return out;
}

/// The parts of a format text between what is filled in.
std::vector<std::string> fixed_parts(const std::string& format) {
  std::vector<std::string> out(1);
  for (size_t n = 0; n < format.size(); ++n) {
    if (format[n] == '{') {
      n = format.find('}', n);
      out.emplace_back();
    } else {
      out.back() += format[n];
    }
  }
  return out;
}

/// Does a test expect a telling part of the text: at least 12 letters of it in one piece?
bool is_expected(const std::string& text, const std::vector<std::string>& expected) {
  constexpr size_t kTelling = 12;
  for (const std::string& part : fixed_parts(text))
    for (size_t n = 0; n + kTelling <= part.size(); ++n)
      for (const std::string& e : expected)
        if (e.find(part.substr(n, kTelling)) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("each rule refuses the step that breaks it, in these words") {
  for (const RuleRow& row : all_rows()) {
    INFO(info(row.rule).id << ": " << to_text(row.step) << "\n" << row.before.print());
    const auto refusal = check(row.before.program(), row.before.target(), row.step);
    REQUIRE(refusal);
    CHECK(refusal->id == info(row.rule).id);
    const std::string text = row.before.message(row.step, *refusal);
    for (const std::string& part : row.telling) CHECK_THAT(text, Catch::Contains(part));
  }
}

TEST_CASE("every refusal has a test on its text") {
  const std::vector<std::string> expected = literals(sources_in("tests/refusals"));
  const std::string code = sources_in("src/schedule");
  std::vector<std::string> in_rows, untested;
  for (const RuleRow& row : all_rows()) in_rows.emplace_back(info(row.rule).id);
  const std::vector<Site> sites = refusal_sites(code);
  CHECK(sites.size() > 100);
  for (const Site& site : sites) {
    const bool row = std::count(in_rows.begin(), in_rows.end(), site.rule) > 0;
    const bool text = std::any_of(site.texts.begin(), site.texts.end(),
                                  [&](const auto& t) { return is_expected(t, expected); });
    if (!text && !row) untested.push_back(site.rule + ": " + join(site.texts, " ... "));
  }
  INFO("no test of tests/refusals expects a telling part of:\n" << join(untested, "\n"));
  CHECK(untested.empty());
  for (const RuleInfo& r : rules()) {
    INFO(r.id << " stands in the table and nothing refuses by it");
    CHECK(code.find("Rule::" + std::string(r.id) + ",") != std::string::npos);
  }
}
