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

constexpr int64_t kFmaIterations = 20000;  // 100 us: the threads' meeting does not count
constexpr size_t kMovedBytes = 4 << 20, kComputedNumbers = 1 << 19;  // some 50 us of work
constexpr size_t kSmall = 3072;  // numbers: two such arrays stay in the first cache

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

/// By erf as a quotient of polynomials of |x| < 4, where it is 1 within a float's rounding beyond:
/// what takes fewest operations of the forms that are exact to a few units in the last place.
Floats gelu(Floats x) {
  const Floats most = Floats{} + 4.f;
  Floats z = x * 0.70710678f;
  z = z > most ? most : z;
  z = z < -most ? -most : z;
  const Floats s = z * z;
  Floats p = s * -2.72614225801306e-10f + 2.77068142495902e-08f;
  for (const float factor : {-2.10102402082508e-06f, -5.69250639462346e-05f, -7.34990630326855e-04f,
                             -2.95459980854025e-03f, -1.60960333262415e-02f})
    p = p * s + factor;
  Floats q = s * -1.45660718464996e-05f - 2.13374055278905e-04f;
  for (const float factor :
       {-1.68282697438203e-03f, -7.37332916720468e-03f, -1.42647390514189e-02f})
    q = q * s + factor;
  return x * (1.f + z * p / q) * 0.5f;
}

/// A function of the numbers [0, n) of a small array.
using SmallMap = void (*)(const Floats* from, Floats* to, size_t vectors);

template <Floats (*f)(Floats)>
void map(const Floats* from, Floats* to, size_t vectors) {
  for (size_t k = 0; k < vectors; ++k) to[k] = f(from[k]);
}

Floats silu(Floats v) { return v / (1.f + exponential(-v)); }

/// Greatest, exponentials and their sum, quotients: three passes, as over one row.
void softmax(const Floats* from, Floats* to, size_t vectors) {
  Floats most[4] = {from[0], from[0], from[0], from[0]}, sum[4] = {};
  for (size_t k = 0; k + 4 <= vectors; k += 4)
    for (size_t j = 0; j < 4; ++j) most[j] = from[k + j] > most[j] ? from[k + j] : most[j];
  for (size_t j = 1; j < 4; ++j) most[0] = most[j] > most[0] ? most[j] : most[0];
  for (size_t k = 0; k + 4 <= vectors; k += 4)
    for (size_t j = 0; j < 4; ++j) sum[j] += to[k + j] = exponential(from[k + j] - most[0]);
  const Floats scale = 1.f / (sum[0] + sum[1] + sum[2] + sum[3]);
  for (size_t k = 0; k < vectors; ++k) to[k] *= scale;
}

/// Sum, squares, result: three passes.
void layer_norm(const Floats* from, Floats* to, size_t vectors) {
  Floats sum[4] = {}, squares[4] = {};
  for (size_t k = 0; k + 4 <= vectors; k += 4)
    for (size_t j = 0; j < 4; ++j) sum[j] += from[k + j];
  const Floats mean = (sum[0] + sum[1] + sum[2] + sum[3]) * 1e-3f;
  for (size_t k = 0; k + 4 <= vectors; k += 4) {
    for (size_t j = 0; j < 4; ++j) {
      const Floats off = from[k + j] - mean;
      squares[j] += off * off;
    }
  }
  const Floats scale = 1.f / (squares[0] + squares[1] + squares[2] + squares[3] + 1.f);
  for (size_t k = 0; k < vectors; ++k) to[k] = (from[k] - mean) * scale * from[k] + mean;
}

void compute(SmallMap f, const Storage& x, const Storage& y, size_t numbers) {
  for (size_t left = numbers / kLanes; left > 0;) {
    const size_t n = std::min(left, kSmall / kLanes);
    f(x.as<Floats>(), y.as<Floats>(), n);
    __asm__ volatile("" ::: "memory");
    left -= n;
  }
}

/// So often that the threads' meeting does not count.
int64_t repeats_for(size_t enough, size_t once) {
  return static_cast<int64_t>(std::max<size_t>(1, enough / std::max<size_t>(1, once)));
}

/// Bytes of one thread, in whole lines that the probe's read loop takes (1024).
size_t share(int64_t bytes, int threads) {
  return (static_cast<size_t>(bytes) / static_cast<size_t>(threads) + 1023) / 1024 * 1024;
}

Variant movement(const std::string& name, const Case& c, bool stream) {
  const size_t read = share(c.number("read_bytes"), c.threads),
               write = share(c.number("write_bytes"), c.threads), both = std::min(read, write);
  std::vector<Storage> memory;
  std::vector<Part> parts;
  for (int t = 0; t < c.threads; ++t) {
    memory.emplace_back(read);
    memory.emplace_back(write);
    parts.push_back({memory[memory.size() - 2].as<float>(), memory.back().as<float>(),
                     both / kVector, (read - both) / kVector, (write - both) / kVector});
  }
  const int threads = c.threads;
  const int64_t repeats = repeats_for(kMovedBytes, read + write);
  const auto call = [=] {
    (void)memory;
#pragma omp parallel num_threads(threads)
    {
      const Part& part = parts[static_cast<size_t>(omp_get_thread_num())];
      for (int64_t k = 0; k < repeats; ++k) {
        if (stream)
          move<true>(part);
        else
          move<false>(part);
        __asm__ volatile("" ::: "memory");
      }
    }
  };
  return {name, {}, call, {memory.begin(), memory.end()}, {}, {}, repeats};
}

std::vector<Variant> movements(const Case& c) {
  std::vector<Variant> out = {movement("bytes", c, false)};
  if (c.number("write_bytes") > tenon::Target::host().l2_bytes)
    out.push_back(movement("bytes-streamed", c, true));
  static const std::map<std::string, SmallMap> functions = {{"exp", map<exponential>},
                                                            {"gelu", map<gelu>},
                                                            {"silu", map<silu>},
                                                            {"softmax", softmax},
                                                            {"layer_norm", layer_norm}};
  const auto found = functions.find(c.word("function"));
  if (found == functions.end()) return out;
  const SmallMap function = found->second;
  std::vector<Storage> numbers;
  for (int t = 0; t < 2 * c.threads; ++t) numbers.emplace_back(kSmall * sizeof(float));
  const size_t each = static_cast<size_t>(c.number("numbers") / c.threads);
  const int threads = c.threads;
  const int64_t repeats = repeats_for(kComputedNumbers, each);
  const auto call = [=] {
#pragma omp parallel num_threads(threads)
    {
      const size_t t = 2 * static_cast<size_t>(omp_get_thread_num());
      for (int64_t k = 0; k < repeats; ++k) compute(function, numbers[t], numbers[t + 1], each);
    }
  };
  out.push_back({"arithmetic", {}, call, {}, {}, {}, repeats});
  return out;
}

}  // namespace

int main() { return serve({{{"fma", multiply_adds}, {"memory", movements}}}); }
