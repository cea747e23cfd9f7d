#pragma once
#include <tenon/ir/program.h>
#include <tenon/runtime/array.h>

namespace tenon {

/// Elements of a tensor, row by row, as they lie in the buffer's layout; zeros in the padding. The
/// definition of a layout in plain loops.
Array as_stored(const BufferNode& buffer, const Array& plain);

}  // namespace tenon
