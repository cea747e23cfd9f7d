// clflush for servers that are not written in C++.
#include <emmintrin.h>

#include <cstddef>

extern "C" void perf_flush(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  for (size_t at = 0; at < bytes; at += 64) _mm_clflush(p + at);
  _mm_mfence();
}
