#pragma once
#include <cstdint>

namespace tenon {

/// The hot loops of the peak probe for one vector width. All run on registers and loads alone,
/// written as assembly so that neither optimisation level nor sanitizer changes them.
struct ProbeLoops {
  void (*fma)(int64_t iterations);
  double flops_per_iteration;
  /// Loads every byte of [data, data + bytes), vectors of the loop's width; bytes is a multiple of
  /// 1024 and > 0.
  void (*read)(const void* data, int64_t bytes);
};

/// Loops for a vector width of 512, 256 or 128 bits. The caller makes sure that this machine has
/// the instructions: AVX-512F, AVX2 with FMA, or SSE2 (where a multiply and an add stand for the
/// fused pair).
ProbeLoops probe_loops(int vector_bits);

/// As many VDPBF16PS of 512 bits as the multiply-adds of probe_loops(512).fma. The caller makes
/// sure that this machine has AVX512-BF16.
void bf16_dots_512(int64_t iterations);

}  // namespace tenon
