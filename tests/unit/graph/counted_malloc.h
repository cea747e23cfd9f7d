#pragma once
#include <cstdint>

namespace tenon {

/// Calls of malloc and its kin by any thread of this program so far; operator new is one of them.
/// Always 0 in a sanitizer build, whose allocator cannot be replaced.
int64_t allocation_count();

/// Does this build count.
bool counts_allocations();

}  // namespace tenon
