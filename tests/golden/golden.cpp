#include "golden.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tenon {

void check_golden(const std::string& name, const std::string& text) {
  const auto file = std::filesystem::path(TENON_SOURCE_DIR) / "tests" / "golden" / name;
  if (std::getenv("TENON_UPDATE_GOLDEN")) {
    std::ofstream(file) << text;
    SUCCEED("rewritten");
    return;
  }
  std::ifstream in(file);
  INFO("golden file " << file << "; TENON_UPDATE_GOLDEN=1 rewrites it");
  REQUIRE(in.good());
  std::stringstream expected;
  expected << in.rdbuf();
  CHECK(text == expected.str());
}

}  // namespace tenon
