#pragma once
#include <string>

#include <tenon/runtime/array.h>

namespace tenon {

/// Reads a NumPy .npy file (format 1.0, 2.0 or 3.0; numpy/lib/format.py): either byte order, C or
/// Fortran order (transposed here). Element types: bool, 8 to 64 bit integers, f16, f32, f64; "V2"
/// is taken for bf16, as ml_dtypes writes it. bool bytes become 0 or 1. UserError, with path and
/// reason, for anything else.
Array load_npy(const std::string& path);

/// Writes format 1.0, C order, little-endian, by a rename: `path` is old or new, never half.
/// UserError when the folder refuses.
void save_npy(const std::string& path, const Array& array);

}  // namespace tenon
