#pragma once
#include <tenon/graph/graph.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tenon {

enum class Outcome { passed, wrong, refused, crashed };

/// What runs the groups of the imported graph.
enum class Engine {
  interpreter,
  kernels  // compiled under default schedules
};

struct CaseResult {
  Outcome outcome = Outcome::wrong;
  std::string reason;  // what differs, or the refusal
};

/// Loads FOLDER/model.onnx, runs it on each test_data_set and compares: shapes and types first,
/// then |a - b| <= atol + rtol |b|, NaN equal to NaN, integers and booleans exactly. An UserError
/// is a refusal; any other exception counts as a crash. Inputs on which shapes depend are given as
/// constants.
CaseResult run_case(const std::filesystem::path& folder, double rtol, double atol, Engine engine);

/// The same in a process of its own: one that dies, or takes more than 30 s, has crashed.
CaseResult run_isolated(const std::filesystem::path& folder, double rtol, double atol,
                        Engine engine);

/// Where scripts/fetch_test_data.sh put the onnx package's cases.
std::filesystem::path onnx_cases();

}  // namespace tenon
