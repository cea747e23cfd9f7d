// Lesson 10: the primitives for GPUs.
//
// A GPU runs blocks of threads. bind() says which loops become blocks and which become threads;
// cache_read() into shared memory stages what the threads of a block use together; local or
// register memory is a thread's own. Barriers are placed where one thread needs what another wrote.
//
// The code is OpenCL C, so it runs wherever an OpenCL driver is found (Debian's pocl-opencl-icd
// runs it on the CPU). Without one the schedule is made and its source printed all the same.
#include <tenon/tenon.h>

#include <cstdio>

using namespace tenon;

namespace {

/// The device of this machine, or the limits of a common GPU to generate code for.
Target gpu(bool* present) {
  try {
    *present = true;
    return Target::opencl();
  } catch (const DeviceError& error) {
    std::printf("%s\n", error.what());
    *present = false;
    return Target::generic_gpu();
  }
}

}  // namespace

int main() {
  const int M = 45, N = 52, K = 37;
  Tensor A = input("A", f32, {M, K}), B = input("B", f32, {K, N});
  Axis i("i", M), j("j", N), k("k", K);
  Tensor C = compute("C", {i, j}, sum(A(i, k) * B(k, j), k));

  bool present = false;
  const Target target = gpu(&present);
  Schedule s(make_program("matmul", {C}), target);

  // Each block computes a tile of 16 x 16, each thread one element of it.
  auto [io, ii] = s.split(i, 16);
  auto [jo, ji] = s.split(j, 16);
  auto [ko, ki] = s.split(k, 8);
  s.reorder({io, jo, ko, ii, ji, ki});
  s.bind(io, ThreadAxis::block_y).bind(jo, ThreadAxis::block_x);

  // Partial sums stay with the thread until the tile is done: the copy begins in global memory,
  // and becomes a thread's own once both stages that use it run on the same threads.
  CacheWriteStages made = s.cache_write(jo);
  s["C"].bind(ii, ThreadAxis::thread_y).bind(ji, ThreadAxis::thread_x);
  s[made.store].bind("i", ThreadAxis::thread_y).bind("j", ThreadAxis::thread_x);
  s.set_scope("C.cache", Scope::local);

  // The threads fetch the strips of A and B that all of them read. 16 x 8 elements for 16 x 16
  // threads: the spare ones wait.
  s["C"].cache_read("A", ko, {.scope = Scope::shared});
  s["C"].cache_read("B", ko, {.scope = Scope::shared});
  s["A.cache"].bind("i", ThreadAxis::thread_y).bind("k", ThreadAxis::thread_x);
  s["B.cache"].bind("k", ThreadAxis::thread_y).bind("j", ThreadAxis::thread_x);
  std::printf("%s\n", s.print().c_str());

  // What cannot be right, or is too much for the device, is refused before anything is compiled.
  try {
    Schedule wrong = s;
    wrong["B.cache"].bind("k", ThreadAxis::block_z);
  } catch (const ScheduleError& error) {
    std::printf("%.*s\n\n", 300, error.what());
  }
  if (!present) return 0;

  Kernel kernel = compile(s.program(), target);
  std::printf("%s\n", kernel.source().c_str());
  Array a = random(f32, {M, K}), b = random(f32, {K, N}), c = zeros(f32, {M, N});
  kernel(a, b, c);

  float expected = 0;
  for (int x = 0; x < K; ++x) expected += a.data<float>()[44 * K + x] * b.data<float>()[x * N + 51];
  const float got = c.data<float>()[44 * N + 51];
  std::printf("C[44,51] = %f, by hand %f\n", got, expected);
  return got - expected < 1e-4f && expected - got < 1e-4f ? 0 : 1;
}
