// Lesson 1: a formula and its loops.
//
// An operator is written as a formula: axes, and what each element is. Nothing says how the loops
// run; the plain loop nest it stands for is the *unscheduled* program, which can be printed,
// compiled and called.
#include <tenon/tenon.h>

#include <cstdio>

using namespace tenon;

int main() {
  const int M = 5, N = 4, K = 3;
  Tensor A = input("A", f32, {M, K}), B = input("B", f32, {K, N});
  Axis i("i", M), j("j", N), k("k", K);
  Tensor C = compute("C", {i, j}, sum(A(i, k) * B(k, j), k));
  Axis i2("i", M), j2("j", N);
  Tensor D = compute("D", {i2, j2}, max(C(i2, j2), 0.0));

  Program program = make_program("matmul_relu", {D});
  std::printf("%s\n", print(program).c_str());

  Kernel kernel = compile(program, Target::host());
  Array a = random(f32, {M, K}), b = random(f32, {K, N}), d = zeros(f32, {M, N});
  kernel(a, b, d);

  // Check one element by hand.
  float expected = 0;
  for (int x = 0; x < K; ++x) expected += a.data<float>()[2 * K + x] * b.data<float>()[x * N + 1];
  expected = expected > 0 ? expected : 0;
  const float got = d.data<float>()[2 * N + 1];
  std::printf("D[2,1] = %f, by hand %f\n", got, expected);
  return got - expected < 1e-6f && expected - got < 1e-6f ? 0 : 1;
}
