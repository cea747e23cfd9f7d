#include "counted_malloc.h"

#include <atomic>
#include <cerrno>
#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#define TENON_COUNTS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_COUNTS 0
#endif
#endif
#ifndef TENON_COUNTS
#define TENON_COUNTS 1
#endif

namespace {

std::atomic<int64_t> count{0};

}  // namespace

#if TENON_COUNTS
// The C library's own functions under their other names; these stand in front of them.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t number, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) {
  ++count;
  return __libc_malloc(bytes);
}

void* calloc(size_t number, size_t bytes) {
  ++count;
  return __libc_calloc(number, bytes);
}

void* realloc(void* old, size_t bytes) {
  ++count;
  return __libc_realloc(old, bytes);
}

void* memalign(size_t alignment, size_t bytes) {
  ++count;
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }

int posix_memalign(void** out, size_t alignment, size_t bytes) {
  *out = memalign(alignment, bytes);
  return *out ? 0 : ENOMEM;
}
}
#endif

namespace tenon {

int64_t allocation_count() { return count; }

bool counts_allocations() { return TENON_COUNTS != 0; }

}  // namespace tenon
