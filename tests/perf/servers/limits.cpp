// What this machine can do at most: multiply-adds from registers; as many bytes read and written as
// an operator does, in memory of its own of that size, so from the cache level that it fits in; and
// the same function of as many numbers that never leave the first cache. Measured in turns with
// everything else.
#include <omp.h>
#include <tenon/target/target.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "server.h"
#include "target/probe_loops.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace {

using namespace perf;

#if defined(__AVX512F__)
constexpr size_t kVector = 64;
#elif defined(__AVX__)
constexpr size_t kVector = 32;
#else
constexpr size_t kVector = 16;
#endif
typedef float Floats __attribute__((vector_size(kVector)));
typedef int32_t Ints __attribute__((vector_size(kVector)));
constexpr size_t kLanes = kVector / sizeof(float);

constexpr int64_t kFmaIterations = 20000;    // 100 us: the threads' meeting does not count
constexpr size_t kLine = 64, kSmall = 4096;  // numbers that stay in the first cache

const tenon::ProbeLoops& loops() {
  static const tenon::ProbeLoops made = tenon::probe_loops(tenon::Target::host().vector_bits);
  return made;
}

std::vector<Variant> multiply_adds(const Case& c) {
  const int threads = c.threads;
  const auto call = [threads] {
#pragma omp parallel num_threads(threads)
    loops().fma(kFmaIterations);
  };
  const double flops = loops().flops_per_iteration * kFmaIterations * threads;
  return {{"fma", {}, call, {}, {}, std::to_string(flops)}};
}

void stream_vector(float* to, Floats v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, reinterpret_cast<__m512>(v));
#elif defined(__AVX__)
  _mm256_stream_ps(to, reinterpret_cast<__m256>(v));
#else
  std::memcpy(to, &v, sizeof v);
#endif
}

/// What one thread moves: `both` vectors are read and written, `read` more only read, `write` more
/// only written.
struct Part {
  const float* from;
  float* to;
  size_t both, read, write;
};

template <bool kStream>
void move(const Part& part) {
  const Floats* from = reinterpret_cast<const Floats*>(part.from);
  const auto put = [&](size_t k, Floats v) {
    if (kStream)
      stream_vector(part.to + k * kLanes, v);
    else
      reinterpret_cast<Floats*>(part.to)[k] = v;
  };
  for (size_t k = 0; k < part.both; ++k) put(k, from[k]);
  if (part.read > 0)
    loops().read(part.from + part.both * kLanes, static_cast<int64_t>(part.read * kVector));
  for (size_t k = 0; k < part.write; ++k) put(part.both + k, Floats{});
}

Floats exponential(Floats x) {
  const float magic = 12582912.f;  // 1.5 * 2^23: adding it rounds to a whole number
  const Floats shifted = x * 1.44269504f + magic, n = shifted - magic;
  const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  for (const float factor :
       {8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f, 1.f, 1.f})
    p = p * r + factor;
  Ints bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + (127 << 23);
  Floats scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

/// By Abramowitz and Stegun 7.1.26.
Floats gelu(Floats x) {
  const Floats z = x * 0.70710678f, a = z < 0 ? -z : z, t = 1.f / (1.f + 0.3275911f * a);
  Floats p = t * 1.061405429f - 1.453152027f;
  for (const float factor : {1.421413741f, -0.284496736f, 0.254829592f}) p = p * t + factor;
  const Floats erf = 1.f - p * t * exponential(-a * a);
  return x * (z < 0 ? 1.f - erf : 1.f + erf) * 0.5f;
}

template <class F>
void map_small(const Buffer& x, const Buffer& y, size_t numbers, F&& f) {
  const Floats* from = x.as<Floats>();
  Floats* to = y.as<Floats>();
  for (size_t left = numbers / kLanes; left > 0;) {
    const size_t n = std::min(left, kSmall / kLanes);
    for (size_t k = 0; k < n; ++k) to[k] = f(from[k]);
    __asm__ volatile("" ::: "memory");
    left -= n;
  }
}

void compute(const std::string& function, const Buffer& x, const Buffer& y, size_t numbers) {
  if (function == "gelu") return map_small(x, y, numbers, gelu);
  if (function == "silu")
    return map_small(x, y, numbers, [](Floats v) { return v / (1.f + exponential(-v)); });
  map_small(x, y, numbers, exponential);
}

/// Bytes of one thread, in whole lines that the probe's read loop takes (1024).
size_t share(int64_t bytes, int threads) {
  return (static_cast<size_t>(bytes) / static_cast<size_t>(threads) + 1023) / 1024 * 1024;
}

Variant movement(const std::string& name, const Case& c, bool stream) {
  const size_t read = share(c.number("read_bytes"), c.threads),
               write = share(c.number("write_bytes"), c.threads), both = std::min(read, write);
  std::vector<Buffer> memory;
  std::vector<Part> parts;
  for (int t = 0; t < c.threads; ++t) {
    memory.emplace_back(read);
    memory.emplace_back(write);
    parts.push_back({memory[memory.size() - 2].as<float>(), memory.back().as<float>(),
                     both / kVector, (read - both) / kVector, (write - both) / kVector});
  }
  const int threads = c.threads;
  const auto call = [=] {
    (void)memory;
#pragma omp parallel num_threads(threads)
    {
      const Part& part = parts[static_cast<size_t>(omp_get_thread_num())];
      if (stream)
        move<true>(part);
      else
        move<false>(part);
    }
  };
  return {name, {}, call, {memory.begin(), memory.end()}};
}

std::vector<Variant> movements(const Case& c) {
  std::vector<Variant> out = {movement("bytes", c, false)};
  if (c.number("write_bytes") > tenon::Target::host().l2_bytes)
    out.push_back(movement("bytes-streamed", c, true));
  const std::string function = c.word("function");
  if (function.empty()) return out;
  std::vector<Buffer> numbers;
  for (int t = 0; t < 2 * c.threads; ++t) numbers.emplace_back(kSmall * sizeof(float));
  const size_t each = static_cast<size_t>(c.number("numbers") / c.threads);
  const int threads = c.threads;
  const auto call = [=] {
#pragma omp parallel num_threads(threads)
    {
      const size_t t = 2 * static_cast<size_t>(omp_get_thread_num());
      compute(function, numbers[t], numbers[t + 1], each);
    }
  };
  out.push_back({"arithmetic", {}, call, {}});
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  return serve(argc, argv, {{{"fma", multiply_adds}, {"memory", movements}}});
}
