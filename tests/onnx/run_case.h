#pragma once
#include <tenon/graph/graph.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tenon {

enum class Outcome { passed, wrong, refused };

struct CaseResult {
  Outcome outcome = Outcome::wrong;
  std::string reason;  // what differs, or the refusal
};

/// Loads FOLDER/model.onnx, runs it on each test_data_set and compares: shapes and types first, then
/// |a - b| <= atol + rtol |b|, NaN equal to NaN, integers and booleans exactly. An UserError is a refusal; whatever else is
/// thrown is wrong. Inputs on which shapes depend are given as constants.
CaseResult run_case(const std::filesystem::path& folder, double rtol, double atol);

/// Where scripts/fetch_test_data.sh put the onnx package's cases.
std::filesystem::path onnx_cases();

}  // namespace tenon
