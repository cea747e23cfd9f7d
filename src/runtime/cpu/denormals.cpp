#include <tenon/runtime/denormals.h>

#include <immintrin.h>

namespace tenon {
namespace {

constexpr uint32_t kFlushToZero = 1u << 15, kDenormalsAreZero = 1u << 6;  // bits of MXCSR

}  // namespace

FlushDenormals::FlushDenormals() : before_(_mm_getcsr()) {
  _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero);
}

FlushDenormals::~FlushDenormals() { _mm_setcsr(before_); }

}  // namespace tenon
