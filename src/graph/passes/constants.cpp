#include "graph/passes/constants.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <limits>

namespace tenon {

namespace {

constexpr int64_t kAddressSpaceBytes = int64_t{1} << 47;

template <class T>
std::vector<int64_t> widened(const Array& array) {
  std::vector<int64_t> elements;
  for (T value : array.elements<T>()) {
    if constexpr (std::is_same_v<T, uint64_t>)
      value = std::min<uint64_t>(value, std::numeric_limits<int64_t>::max());
    elements.push_back(static_cast<int64_t>(value));
  }
  return elements;
}

}  // namespace

int64_t checked_bytes(DType type, const std::vector<int64_t>& shape, const std::string& node) {
  int64_t bytes = byte_size(type);
  bool none = false;
  for (int64_t extent : shape) {
    none = none || extent == 0;
    if (extent > 0 && (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > kAddressSpaceBytes))
      throw UserError(
          fmt::format("model error in node \"{}\": its output {} of {} is larger than an address "
                      "space (2^47 bytes)",
                      node, shape_text(shape), name(type)));
  }
  return none ? 0 : bytes;
}

std::optional<std::vector<int64_t>> integer_elements(const Array& array) {
  switch (array.dtype()) {
    case DType::boolean:
    case DType::u8:
      return widened<uint8_t>(array);
    case DType::u16:
      return widened<uint16_t>(array);
    case DType::u32:
      return widened<uint32_t>(array);
    case DType::u64:
      return widened<uint64_t>(array);
    case DType::i8:
      return widened<int8_t>(array);
    case DType::i16:
      return widened<int16_t>(array);
    case DType::i32:
      return widened<int32_t>(array);
    case DType::i64:
      return widened<int64_t>(array);
    default:
      return std::nullopt;
  }
}

}  // namespace tenon
