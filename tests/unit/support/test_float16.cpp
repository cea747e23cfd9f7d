#include <tenon/support/float16.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

using namespace tenon;

TEST_CASE("every f16 and bf16 survives the way through double") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto b = static_cast<uint16_t>(bits);
    const double half = from_f16(b), brain = from_bf16(b);
    const bool half_fine =
        std::isnan(half) ? (to_f16(half) | 0x200) == (b | 0x200) : to_f16(half) == b;
    const bool brain_fine =
        std::isnan(brain) ? (to_bf16(brain) | 0x40) == (b | 0x40) : to_bf16(brain) == b;
    if (!half_fine || !brain_fine) FAIL("bits " << bits);
  }
}

TEST_CASE("known values of f16 and bf16") {
  CHECK(to_f16(1) == 0x3c00);
  CHECK(to_f16(-2) == 0xc000);
  CHECK(to_f16(65504) == 0x7bff);
  CHECK(to_f16(65519.99) == 0x7bff);
  CHECK(to_f16(65520) == 0x7c00);
  CHECK(to_f16(1e300) == 0x7c00);
  CHECK(to_f16(0x1p-24) == 1);
  CHECK(to_f16(0x1p-25) == 0);  // a tie goes to even
  CHECK(to_f16(0x1.8p-25) == 1);
  CHECK(to_f16(-0.0) == 0x8000);
  CHECK(to_f16(0x1p-1070) == 0);
  CHECK(to_f16(-std::numeric_limits<double>::infinity()) == 0xfc00);
  CHECK(std::isnan(from_f16(to_f16(std::nan("")))));
  CHECK(to_bf16(1) == 0x3f80);
  CHECK(to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(std::isnan(from_bf16(to_bf16(std::nan("")))));
}

TEST_CASE("rounding is to nearest even, in one step") {
  const double ulp = 0x1p-10;  // of f16 at 1
  CHECK(to_f16(1 + ulp / 2) == 0x3c00);
  CHECK(to_f16(1 + 3 * ulp / 2) == 0x3c02);
  CHECK(to_f16(1 + ulp / 2 + 0x1p-40) == 0x3c01);  // by way of float it would be a tie
  CHECK(to_bf16(1 + 0x1p-8) == 0x3f80);
  CHECK(to_bf16(1 + 0x1p-8 + 0x1p-50) == 0x3f81);
}
