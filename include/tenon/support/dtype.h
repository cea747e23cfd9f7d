#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon {

/// Element types. `boolean` is stored as one byte, 0 or 1.
enum class DType : uint8_t { boolean, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64 };

inline constexpr DType boolean = DType::boolean, i8 = DType::i8, i16 = DType::i16, i32 = DType::i32,
                       i64 = DType::i64, u8 = DType::u8, u16 = DType::u16, u32 = DType::u32,
                       u64 = DType::u64, f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32,
                       f64 = DType::f64;

constexpr bool is_float(DType t) { return t >= DType::f16; }
constexpr bool is_signed_int(DType t) { return t >= DType::i8 && t <= DType::i64; }
constexpr bool is_unsigned_int(DType t) { return t >= DType::u8 && t <= DType::u64; }
constexpr bool is_int(DType t) { return is_signed_int(t) || is_unsigned_int(t); }
constexpr bool is_bool(DType t) { return t == DType::boolean; }

/// Size of one element in memory.
int byte_size(DType t);

/// "f32", "i64", "bool", ...
std::string_view name(DType t);

/// The inverse of name(); nothing for an unknown word.
std::optional<DType> parse_dtype(std::string_view word);

/// Lowest and highest value of an integer type (u64's highest does not fit: it saturates to
/// INT64_MAX).
int64_t min_int(DType t);
int64_t max_int(DType t);

/// Wraps `value` to the range of integer type `t` as two's complement does (bool: value != 0).
int64_t wrap_int(int64_t value, DType t);

}  // namespace tenon
