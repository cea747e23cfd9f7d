#pragma once
#include <tenon/ir/program.h>

#include <cstdint>
#include <vector>

namespace tenon {

/// Elements of a tensor, row by row, as they lie in the buffer's layout; zeros in the padding. The
/// definition of a layout in plain loops.
std::vector<int32_t> as_stored(const BufferNode& buffer, const std::vector<int32_t>& plain);

}  // namespace tenon
