#include <tenon/support/dtype.h>

#include <array>
#include <limits>

namespace tenon {
namespace {

struct Info {
  std::string_view name;
  int bytes;
};

constexpr std::array<Info, 13> kInfo = {{{"bool", 1},
                                         {"i8", 1},
                                         {"i16", 2},
                                         {"i32", 4},
                                         {"i64", 8},
                                         {"u8", 1},
                                         {"u16", 2},
                                         {"u32", 4},
                                         {"u64", 8},
                                         {"f16", 2},
                                         {"bf16", 2},
                                         {"f32", 4},
                                         {"f64", 8}}};

const Info& info(DType t) { return kInfo[static_cast<size_t>(t)]; }

}  // namespace

int byte_size(DType t) { return info(t).bytes; }

std::string_view name(DType t) { return info(t).name; }

std::optional<DType> parse_dtype(std::string_view word) {
  for (size_t k = 0; k < kInfo.size(); ++k) {
    if (kInfo[k].name == word) return static_cast<DType>(k);
  }
  return std::nullopt;
}

int64_t min_int(DType t) {
  if (!is_signed_int(t)) return 0;
  return byte_size(t) == 8 ? std::numeric_limits<int64_t>::min()
                           : -(int64_t{1} << (8 * byte_size(t) - 1));
}

int64_t max_int(DType t) {
  if (is_bool(t)) return 1;
  if (byte_size(t) == 8) return std::numeric_limits<int64_t>::max();
  return (int64_t{1} << (8 * byte_size(t) - (is_signed_int(t) ? 1 : 0))) - 1;
}

int64_t wrap_int(int64_t value, DType t) {
  switch (t) {
    case DType::boolean:
      return value != 0;
    case DType::i8:
      return static_cast<int8_t>(value);
    case DType::i16:
      return static_cast<int16_t>(value);
    case DType::i32:
      return static_cast<int32_t>(value);
    case DType::u8:
      return static_cast<uint8_t>(value);
    case DType::u16:
      return static_cast<uint16_t>(value);
    case DType::u32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

}  // namespace tenon
