#pragma once
#include <cstdint>

namespace tenon {

/// While it lives, the calling thread (and what it starts on a ThreadPool) takes denormal operands
/// for zero and flushes denormal results to zero: faster on tiny numbers, no longer IEEE. Tenon
/// never does so by itself.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint32_t before_;
};

}  // namespace tenon
