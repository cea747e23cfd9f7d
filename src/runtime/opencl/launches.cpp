#include "runtime/opencl/launches.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <sstream>

#include "runtime/opencl/opencl.h"

namespace tenon {
namespace {

constexpr std::string_view kMark = "// tenon ";

std::array<size_t, 3> read_sizes(std::istringstream& in, const std::string& word) {
  std::string found;
  std::array<size_t, 3> out{};
  in >> found >> out[0] >> out[1] >> out[2];
  TENON_CHECK(in && found == word, "a launch of OpenCL source lacks its {}", word);
  return out;
}

}  // namespace

bool is_opencl_source(std::string_view text) { return text.rfind("// tenon device ", 0) == 0; }

LaunchPlan read_launches(std::string_view source) {
  TENON_CHECK(is_opencl_source(source), "this is no OpenCL source of tenon's");
  LaunchPlan plan;
  std::istringstream lines{std::string(source)};
  for (std::string line; std::getline(lines, line) && line.rfind(kMark, 0) == 0;) {
    std::istringstream in(line.substr(kMark.size()));
    std::string word;
    in >> word;
    if (word == "device") {
      plan.device = line.substr(kMark.size() + word.size() + 1);
    } else if (word == "workspace") {
      in >> plan.workspace_bytes;
    } else if (word == "launch") {
      Launch launch;
      in >> launch.kernel;
      launch.grid = read_sizes(in, "grid");
      launch.block = read_sizes(in, "block");
      plan.launches.push_back(std::move(launch));
    }
  }
  return plan;
}

}  // namespace tenon
