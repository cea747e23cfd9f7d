#include <target/probe_loops.h>

namespace tenon {
namespace {

// a = a * x + y with x = 0.9999, y = 1e-4 goes to 1: real operands (zeros would draw less power and
// clock higher), no denormals. An FMA has latency 4 and two issue a cycle, so 8 accumulators
// suffice and 24 leave room.
constexpr float kScale = 0.9999f, kShift = 1e-4f;

__attribute__((target("avx512f"))) void fma_512(int64_t iterations) {
  __asm__ volatile(
      "vbroadcastss %1, %%zmm30\n\t"
      "vbroadcastss %2, %%zmm31\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
      "vmovaps %%zmm30, %%zmm\\r\n\t"
      ".endr\n\t"
      ".p2align 6\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
      "vfmadd213ps %%zmm31, %%zmm30, %%zmm\\r\n\t"
      ".endr\n\t"
      "decq %0\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(iterations)
      : "m"(kScale), "m"(kShift)
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
        "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18",
        "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm30", "xmm31");
}

__attribute__((target("avx2,fma"))) void fma_256(int64_t iterations) {
  __asm__ volatile(
      "vbroadcastss %1, %%ymm14\n\t"
      "vbroadcastss %2, %%ymm15\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
      "vmovaps %%ymm14, %%ymm\\r\n\t"
      ".endr\n\t"
      ".p2align 6\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
      "vfmadd213ps %%ymm15, %%ymm14, %%ymm\\r\n\t"
      ".endr\n\t"
      "decq %0\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(iterations)
      : "m"(kScale), "m"(kShift)
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
        "xmm9", "xmm10", "xmm11", "xmm14", "xmm15");
}

void fma_128(int64_t iterations) {
  __asm__ volatile(
      "movss %1, %%xmm14\n\t"
      "shufps $0, %%xmm14, %%xmm14\n\t"
      "movss %2, %%xmm15\n\t"
      "shufps $0, %%xmm15, %%xmm15\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
      "movaps %%xmm14, %%xmm\\r\n\t"
      ".endr\n\t"
      ".p2align 6\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
      "mulps %%xmm14, %%xmm\\r\n\t"
      ".endr\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n\t"
      "addps %%xmm15, %%xmm\\r\n\t"
      ".endr\n\t"
      "decq %0\n\t"
      "jnz 1b"
      : "+r"(iterations)
      : "m"(kScale), "m"(kShift)
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
        "xmm9", "xmm10", "xmm11", "xmm14", "xmm15");
}

__attribute__((target("avx512f"))) void read_512(const void* data, int64_t bytes) {
  __asm__ volatile(
      ".p2align 6\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7\n\t"
      "vmovups \\r*64(%0), %%zmm\\r\n\t"
      ".endr\n\t"
      "addq $512, %0\n\t"
      "subq $512, %1\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(data), "+r"(bytes)
      :
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}

__attribute__((target("avx2"))) void read_256(const void* data, int64_t bytes) {
  __asm__ volatile(
      ".p2align 6\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7\n\t"
      "vmovups \\r*32(%0), %%ymm\\r\n\t"
      ".endr\n\t"
      "addq $256, %0\n\t"
      "subq $256, %1\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(data), "+r"(bytes)
      :
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}

void read_128(const void* data, int64_t bytes) {
  __asm__ volatile(
      ".p2align 6\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7\n\t"
      "movups \\r*16(%0), %%xmm\\r\n\t"
      ".endr\n\t"
      "addq $128, %0\n\t"
      "subq $128, %1\n\t"
      "jnz 1b"
      : "+r"(data), "+r"(bytes)
      :
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7");
}

}  // namespace

__attribute__((target("avx512f,avx512bf16"))) void bf16_dots_512(int64_t iterations) {
  __asm__ volatile(
      "vbroadcastss %1, %%zmm30\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
      "vmovaps %%zmm30, %%zmm\\r\n\t"
      ".endr\n\t"
      ".p2align 6\n"
      "1:\n\t"
      ".irp r,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23\n\t"
      "vdpbf16ps %%zmm30, %%zmm30, %%zmm\\r\n\t"
      ".endr\n\t"
      "decq %0\n\t"
      "jnz 1b\n\t"
      "vzeroupper"
      : "+r"(iterations)
      : "m"(kScale)
      : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
        "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18",
        "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm30");
}

ProbeLoops probe_loops(int vector_bits) {
  if (vector_bits >= 512) return {fma_512, 24 * 16 * 2.0, read_512};
  if (vector_bits >= 256) return {fma_256, 12 * 8 * 2.0, read_256};
  return {fma_128, 12 * 4 * 2.0, read_128};
}

}  // namespace tenon
