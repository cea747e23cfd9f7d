#include <catch2/catch.hpp>
#include <cstdio>

TEST_CASE("rules are proved by Z3") {
  std::puts("SKIPPED: Z3 was not found when this was built; Debian has it as libz3-dev");
}
