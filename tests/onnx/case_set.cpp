#include "case_set.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>

namespace tenon {

namespace {

std::string name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed:
      return "passed";
    case Outcome::wrong:
      return "wrong";
    case Outcome::refused:
      return "refused";
    case Outcome::crashed:
      return "crashed";
  }
  return "";
}

/// Lines of tab-separated cells, without the first.
std::vector<std::vector<std::string>> read_table(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::vector<std::string>> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) rows.push_back(split_text(line, '\t'));
  return rows;
}

void count(Outcome outcome, Tally& tally) {
  tally.passed += outcome == Outcome::passed;
  tally.wrong += outcome == Outcome::wrong;
  tally.refused += outcome == Outcome::refused;
  tally.crashed += outcome == Outcome::crashed;
}

}  // namespace

std::vector<OnnxCase> node_cases(const std::string& kind) {
  std::vector<OnnxCase> cases;
  for (const std::vector<std::string>& row : read_table(onnx_cases() / "node" / "index.tsv"))
    if (row.at(2) == kind)
      cases.push_back({row.at(0), row.at(1), onnx_cases() / "node" / row.at(0),
                       std::stod(row.at(4)), std::stod(row.at(5))});
  return cases;
}

std::vector<OnnxCase> folder_cases(const std::string& folder) {
  std::vector<OnnxCase> cases;
  if (!std::filesystem::exists(onnx_cases() / folder)) return cases;
  for (const auto& entry : std::filesystem::directory_iterator(onnx_cases() / folder))
    cases.push_back({entry.path().filename().string(), "", entry.path()});
  std::sort(cases.begin(), cases.end(),
            [](const OnnxCase& a, const OnnxCase& b) { return a.name < b.name; });
  return cases;
}

RefusedList refused_list() {
  RefusedList list;
  const std::filesystem::path path =
      std::filesystem::path(TENON_SOURCE_DIR) / "tests" / "onnx" / "refused.tsv";
  for (const std::vector<std::string>& row : read_table(path)) {
    TENON_CHECK(row.size() == 3 && !row[2].empty() && (row[0] == "operator" || row[0] == "case"),
                "{}: a line is not KIND, NAME, REASON: {}", path.string(), join(row));
    const bool fresh =
        (row[0] == "operator" ? list.operators : list.cases).emplace(row[1], row[2]).second;
    TENON_CHECK(fresh, "{}: {} is listed twice", path.string(), row[1]);
  }
  return list;
}

Tally run_cases(const std::string& what, const std::vector<OnnxCase>& cases, Engine engine) {
  const bool verbose = std::getenv("TENON_ONNX_VERBOSE") != nullptr;
  const RefusedList list = refused_list();
  Tally tally;
  for (const OnnxCase& c : cases) {
    const CaseResult result = run_isolated(c.folder, c.rtol, c.atol, engine);
    count(result.outcome, tally);
    const Outcome expected = list.has(c) ? Outcome::refused : Outcome::passed;
    if (result.outcome != expected || (verbose && expected == Outcome::refused))
      std::cout << name_of(result.outcome) << ": " << c.name << " (" << c.op
                << "): " << result.reason << "\n";
    INFO(c.name << ": " << result.reason);
    if (result.outcome != expected) CHECK(name_of(result.outcome) == name_of(expected));
  }
  std::cout << what << ": " << tally.passed << " passed, " << tally.wrong << " wrong, "
            << tally.refused << " refused, " << tally.crashed << " crashed\n";
  return tally;
}

}  // namespace tenon
