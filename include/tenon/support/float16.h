#pragma once
#include <cstdint>

namespace tenon {

/// Bit patterns of the 16-bit float types. To a 16-bit type: round to nearest, ties to even, in one
/// step from double; too large becomes infinity, NaN stays (quiet) NaN, denormals are kept. From
/// one: exact.
uint16_t to_f16(double value);
uint16_t to_bf16(double value);
float from_f16(uint16_t bits);
float from_bf16(uint16_t bits);

}  // namespace tenon
