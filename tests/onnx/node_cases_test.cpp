#include <catch2/catch.hpp>
#include <iostream>
#include <set>

#include "case_set.h"

using namespace tenon;

namespace {

/// The operators of a CNN's inference.
const std::set<std::string> kFirstTier = {"Conv",    "Relu",        "Add",
                                          "Mul",     "MatMul",      "Gemm",
                                          "MaxPool", "AveragePool", "GlobalAveragePool",
                                          "Softmax", "Reshape",     "Sum",
                                          "Concat",  "Flatten",     "Clip",
                                          "Sigmoid", "Transpose",   "BatchNormalization",
                                          "Sub",     "Identity",    "Div",
                                          "Dropout", "Constant"};

std::vector<OnnxCase> of_tier(bool first) {
  std::vector<OnnxCase> chosen;
  for (const OnnxCase& c : node_cases("direct"))
    if ((kFirstTier.count(c.op) > 0) == first) chosen.push_back(c);
  return chosen;
}

bool fetched(const std::vector<OnnxCase>& cases) {
  if (cases.empty())
    std::cout << "SKIPPED: no cases in " << onnx_cases() << "; run scripts/fetch_test_data.sh\n";
  return !cases.empty();
}

}  // namespace

TEST_CASE("operator cases of the first tier") {
  const std::vector<OnnxCase> cases = of_tier(true);
  if (fetched(cases)) CHECK(run_cases("first tier", cases).passed >= 176);
}

TEST_CASE("all other direct operator cases pass or are refused by name") {
  const std::vector<OnnxCase> cases = of_tier(false);
  if (fetched(cases)) CHECK(run_cases("the rest", cases).passed >= 660);
}

TEST_CASE("operator cases by compiled kernels") {
  const std::vector<OnnxCase> cases = node_cases("direct");
  if (fetched(cases)) CHECK(run_cases("compiled", cases, Engine::kernels).passed >= 836);
}

TEST_CASE("layers converted from PyTorch, opset 6") {
  const std::vector<OnnxCase> cases = folder_cases("pytorch-converted");
  if (fetched(cases)) CHECK(run_cases("pytorch-converted", cases).passed >= 82);
}

TEST_CASE("operators converted from PyTorch, opset 6") {
  const std::vector<OnnxCase> cases = folder_cases("pytorch-operator");
  if (fetched(cases)) CHECK(run_cases("pytorch-operator", cases).passed >= 35);
}

TEST_CASE("every line of refused.tsv is about a case") {
  const std::vector<OnnxCase> cases = node_cases("direct");
  if (!fetched(cases)) return;
  std::set<std::string> names, operators;
  for (const OnnxCase& c : cases) names.insert(c.name), operators.insert(c.op);
  const RefusedList list = refused_list();
  for (const auto& [name, reason] : list.cases) CHECK(names.count(name) == 1);
  for (const auto& [name, reason] : list.operators) CHECK(operators.count(name) == 1);
}
