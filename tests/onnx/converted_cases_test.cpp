#include <algorithm>
#include <catch2/catch.hpp>
#include <iostream>

#include "run_case.h"

using namespace tenon;

namespace {

constexpr double kRelative = 1e-3, kAbsolute = 1e-5;

/// Runs all cases of a folder; what is refused is printed.
void run_folder(const std::string& name, int at_least) {
  if (!std::filesystem::exists(onnx_cases() / name)) {
    std::cout << "SKIPPED: no cases in " << onnx_cases() / name
              << "; run scripts/fetch_test_data.sh\n";
    return;
  }
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(onnx_cases() / name))
    folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  int passed = 0, wrong = 0, refused = 0;
  for (const auto& folder : folders) {
    const CaseResult result = run_case(folder, kRelative, kAbsolute);
    passed += result.outcome == Outcome::passed;
    wrong += result.outcome == Outcome::wrong;
    refused += result.outcome == Outcome::refused;
    if (result.outcome != Outcome::passed)
      std::cout << (result.outcome == Outcome::wrong ? "wrong: " : "refused: ")
                << folder.filename().string() << ": " << result.reason << "\n";
  }
  std::cout << name << ": " << passed << " passed, " << wrong << " wrong, " << refused
            << " refused\n";
  CHECK(wrong == 0);
  CHECK(passed >= at_least);
}

}  // namespace

TEST_CASE("layers converted from PyTorch, opset 6") { run_folder("pytorch-converted", 82); }

TEST_CASE("operators converted from PyTorch, opset 6") { run_folder("pytorch-operator", 35); }
