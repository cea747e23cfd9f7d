#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>

#include "run_case.h"

using namespace tenon;

namespace {

struct Case {
  std::string name, op, kind;
  double rtol = 0, atol = 0;
};

std::vector<Case> node_cases() {
  std::ifstream file(onnx_cases() / "node" / "index.tsv");
  std::vector<Case> cases;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = split_text(line, '\t');
    cases.push_back(
        {cells.at(0), cells.at(1), cells.at(2), std::stod(cells.at(4)), std::stod(cells.at(5))});
  }
  return cases;
}

struct Tally {
  int passed = 0, wrong = 0, refused = 0;
};

/// Runs the cases chosen and prints the ones that differ; TENON_ONNX_VERBOSE=1 prints the refused
/// ones too.
template <class Chosen>
Tally run_all(const std::string& what, Chosen chosen) {
  Tally tally;
  for (const Case& c : node_cases()) {
    if (!chosen(c)) continue;
    const CaseResult result = run_case(onnx_cases() / "node" / c.name, c.rtol, c.atol);
    tally.passed += result.outcome == Outcome::passed;
    tally.wrong += result.outcome == Outcome::wrong;
    tally.refused += result.outcome == Outcome::refused;
    if (result.outcome == Outcome::wrong)
      std::cout << "wrong: " << c.name << ": " << result.reason << "\n";
    if (result.outcome == Outcome::refused && std::getenv("TENON_ONNX_VERBOSE"))
      std::cout << "refused: " << c.name << ": " << result.reason << "\n";
  }
  std::cout << what << ": " << tally.passed << " passed, " << tally.wrong << " wrong, "
            << tally.refused << " refused\n";
  return tally;
}

bool fetched() {
  if (std::filesystem::exists(onnx_cases() / "node" / "index.tsv")) return true;
  std::cout << "SKIPPED: no operator cases in " << onnx_cases()
            << "; run scripts/fetch_test_data.sh\n";
  return false;
}

const std::set<std::string> kFirstTier = {"Conv",    "Relu",        "Add",
                                          "Mul",     "MatMul",      "Gemm",
                                          "MaxPool", "AveragePool", "GlobalAveragePool",
                                          "Softmax", "Reshape",     "Sum",
                                          "Concat",  "Flatten",     "Clip",
                                          "Sigmoid", "Transpose",   "BatchNormalization",
                                          "Sub",     "Identity",    "Div",
                                          "Dropout", "Constant"};

}  // namespace

TEST_CASE("operator cases of the first tier") {
  if (!fetched()) return;
  const Tally tally = run_all(
      "first tier", [](const Case& c) { return c.kind == "direct" && kFirstTier.count(c.op) > 0; });
  CHECK(tally.wrong == 0);
  CHECK(tally.passed >= 172);
}

TEST_CASE("all other direct operator cases pass or are refused by name") {
  if (!fetched()) return;
  const Tally tally = run_all(
      "the rest", [](const Case& c) { return c.kind == "direct" && kFirstTier.count(c.op) == 0; });
  CHECK(tally.wrong == 0);
  CHECK(tally.passed >= 540);
}
