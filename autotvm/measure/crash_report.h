#pragma once
#include <cstddef>

namespace tenon {

/// On a deadly signal, sends a last reply over `socket` that says what happened and, for a bad
/// address, where it lies relative to the nearest watched array; then ends the process. Works when
/// the stack has overflowed or the heap is broken.
void report_crashes(int socket);

/// Names the array that lies there. At most 64 are watched at once; those beyond are not named.
void watch_array(const char* name, const void* data, size_t bytes);
void forget_arrays();

}  // namespace tenon
