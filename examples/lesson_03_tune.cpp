// Lesson 3: tuning a matmul.
//
// A template leaves numbers open as knobs; the tuner measures candidates on this machine, checks
// their results and keeps every trial in a log. Run it twice: the second run goes on where the
// first stopped.
#include <tenon/tenon.h>

#include <cstdio>

using namespace tenon;

int main() {
  const int M = 256, N = 256, K = 256;
  Tensor A = input("A", f32, {M, K}), B = input("B", f32, {K, N});
  Axis i("i", M), j("j", N), k("k", K);
  Tensor C = compute("C", {i, j}, sum(A(i, k) * B(k, j), k));

  auto tiled = [&](Schedule& s, Knobs& knob) {
    auto [io, ii] = s.split(i, knob.divisor("tile_i", M, {.max = 16}));
    auto [jo, ji] = s.split(j, knob.divisor("tile_j", N, {.max = 128}));
    auto [ko, ki] = s.split(k, knob.pick("tile_k", {4, 8, 16, 32}));
    s.reorder({io, jo, ko, ki, ii, ji}).parallel(io).unroll(ii).vectorize(ji);
  };

  Task task("matmul", C, tiled, Target::host());
  Record best = tune(task, {.trials = 24, .log = "tuning_logs/lesson_03.jsonl", .seed = 7});
  std::printf("best of the log: %.1f us, knobs %s\n", median_us(best), best.knobs.c_str());

  Kernel matmul = compile(task, best);
  std::printf("%s\n", matmul.loops().c_str());
  Array a = random(f32, {M, K}), b = random(f32, {K, N}), c = zeros(f32, {M, N});
  matmul(a, b, c);
  std::printf("C[0,0] = %f\n", c.data<float>()[0]);
  return 0;
}
