#include <tenon/support/float16.h>

#include <bit>
#include <cmath>

namespace tenon {
namespace {

/// IEEE 754 binary64 to a binary format of 16 bits with `mantissa` stored bits.
uint16_t narrow(double value, int mantissa) {
  const int bias = (1 << (14 - mantissa)) - 1;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 48 & 0x8000);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  const uint64_t infinity = static_cast<uint64_t>(2 * bias + 1) << mantissa;
  if (std::isnan(value)) {
    const uint64_t payload = bits << 12 >> (64 - mantissa);
    return static_cast<uint16_t>(sign | infinity | uint64_t{1} << (mantissa - 1) | payload);
  }
  if (exponent > bias) return static_cast<uint16_t>(sign | infinity);
  const int denormal = exponent < 1 - bias ? 1 - bias - exponent : 0;
  const int shift = 52 - mantissa + denormal;
  if (shift > 53)
    return sign;  // below half the smallest denormal; doubles' own denormals are here too
  const uint64_t significand = (bits & 0xfffffffffffff) | uint64_t{1} << 52;
  const uint64_t kept = significand >> shift, rest = significand << (64 - shift),
                 half = uint64_t{1} << 63;
  const uint64_t rounded = kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
  if (denormal > 0) return static_cast<uint16_t>(sign | rounded);
  // The hidden bit adds one to the exponent field; a carry out of the mantissa adds another, up to
  // infinity.
  return static_cast<uint16_t>(
      sign | ((static_cast<uint64_t>(exponent + bias - 1) << mantissa) + rounded));
}

}  // namespace

uint16_t to_f16(double value) { return narrow(value, 10); }
uint16_t to_bf16(double value) { return narrow(value, 7); }

float from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
  if (exponent == 0) {
    const float tiny = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -tiny : tiny;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

float from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace tenon
