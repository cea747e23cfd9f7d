#pragma once
#include <map>
#include <string>
#include <vector>

#include "run_case.h"

namespace tenon {

struct OnnxCase {
  std::string name, op;
  std::filesystem::path folder;
  double rtol = 1e-3, atol = 1e-5;
};

/// The node cases of the kind ("direct", "expanded"), as index.tsv lists them; empty where they
/// were not fetched.
std::vector<OnnxCase> node_cases(const std::string& kind);

/// The cases of a folder ("pytorch-converted"), by name; `op` is empty.
std::vector<OnnxCase> folder_cases(const std::string& folder);

/// tests/onnx/refused.tsv: "operator NAME reason" (every case of that operator is refused) and
/// "case NAME reason".
struct RefusedList {
  std::map<std::string, std::string> operators, cases;  // name -> reason
  bool has(const OnnxCase& c) const { return operators.count(c.op) + cases.count(c.name) > 0; }
};
RefusedList refused_list();

struct Tally {
  int passed = 0, wrong = 0, refused = 0, crashed = 0;
};

/// Runs the cases, prints the four numbers and every case that is wrong, has crashed, is refused
/// and not listed, or listed and not refused. The test fails for each of those.
/// TENON_ONNX_VERBOSE=1 prints all that are refused.
Tally run_cases(const std::string& what, const std::vector<OnnxCase>& cases,
                Engine engine = Engine::interpreter);

}  // namespace tenon
