// Lesson 2: scheduling by hand.
//
// Every step rewrites the loop tree and is checked: what is not legal is refused in words, and what
// is legal never changes the result.
#include <tenon/tenon.h>

#include <cstdio>

using namespace tenon;

int main() {
  const int M = 96, N = 256, K = 64;
  Tensor A = input("A", f32, {M, K}), B = input("B", f32, {K, N});
  Axis i("i", M), j("j", N), k("k", K);
  Tensor C = compute("C", {i, j}, sum(A(i, k) * B(k, j), k));
  const Target host = Target::host();

  Schedule s(make_program("matmul", {C}), host);
  auto [io, ii] = s.split(i, 6);
  auto [jo, ji] = s.split(j, 64);
  s.reorder({io, jo, k, ii, ji}).parallel(io);
  // The tile of C that one iteration of jo computes lives in registers; `made.store` writes it out.
  // Registers hold whole vectors, so each stage that touches the tile runs vectorised along the
  // same axis.
  const CacheWriteStages made = s.cache_write(jo, {.scope = Scope::reg});
  s["C"].unroll(ii).vectorize(ji);
  s[made.store].unroll("i").vectorize("j");
  std::printf("%s\n", s.print().c_str());
  std::printf("the same schedule as C++:\n%s\n", to_cpp(s.trace()).c_str());

  try {
    s["C"].split("k", 0);
  } catch (const ScheduleError& e) {
    std::printf("a step that is not legal is refused:\n%s\n\n", e.what());
  }

  Kernel plain = compile(make_program("matmul", {C}), host), fast = compile(s.program(), host);
  Array a = random(f32, {M, K}, 1), b = random(f32, {K, N}, 2);
  Array c0 = zeros(f32, {M, N}), c1 = zeros(f32, {M, N});
  plain(a, b, c0);
  fast(a, b, c1);
  double worst = 0;
  for (int x = 0; x < M * N; ++x) {
    const double d = c0.data<float>()[x] - c1.data<float>()[x];
    worst = d * d > worst * worst ? d : worst;
  }
  std::printf("largest difference from the plain loop nest: %g\n", worst);
  return worst < 1e-4 && worst > -1e-4 ? 0 : 1;
}
