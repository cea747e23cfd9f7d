#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct Launch {
  std::string kernel;
  std::array<size_t, 3> grid{1, 1, 1}, block{1, 1, 1};
};

/// What the comments at the head of a source say.
struct LaunchPlan {
  std::string device;
  int64_t workspace_bytes = 0;
  std::vector<Launch> launches;
};

/// InternalError for a source without them.
LaunchPlan read_launches(std::string_view source);

}  // namespace tenon
