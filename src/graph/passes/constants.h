#pragma once
#include <tenon/runtime/array.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// Bytes of a tensor. UserError that names `node` when they are beyond an address space (2^47);
/// extents of 0 count as 1 there, so that sums and products of two extents never overflow.
int64_t checked_bytes(DType type, const std::vector<int64_t>& shape, const std::string& node);

/// Elements of an integer or boolean array as numbers; nothing for floats. u64 beyond int64
/// saturates.
std::optional<std::vector<int64_t>> integer_elements(const Array& array);

}  // namespace tenon
