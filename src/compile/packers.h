#pragma once
#include <tenon/compile/compile.h>

namespace tenon {

/// The scheduled program of two parameters that makes the packed array (storage dimensions, zeros
/// in the padding) of the plain one. `packed` has a layout and constant extents.
///
///     B[100, 20] layout(d1//16, d0, d1%16)   ->   B.packed[a, b, c] = select(a*16 + c < 20,
///                                                                            B[b, a*16 + c], 0)
Program packing_program(const Buffer& packed, const Target& target);

/// The inverse: plain[i, j] = packed[j//16, i, j%16].
Program unpacking_program(const Buffer& packed, const Target& target);

}  // namespace tenon
