// Lesson 6: staging and packing.
//
// Where data lies decides as much as the order of the loops. A stage can work on copies of the box
// that it touches (cache_read, cache_write), and a whole buffer can be stored in another order
// (pack), in each call or, for contents that are known ahead, once. Marks say how the copies are
// made: padded rows, two copies in turn, lines fetched ahead.
#include <tenon/tenon.h>

#include <cstdio>

using namespace tenon;

int main() {
  const int M = 90, N = 200, K = 64;
  // `constant` marks B as known ahead: the weights of a layer, say.
  Tensor A = input("A", f32, {M, K}), B = constant("B", f32, {K, N});
  Axis i("i", M), j("j", N), k("k", K);
  Tensor C = compute("C", {i, j}, sum(A(i, k) * B(k, j), k));
  const Target host = Target::host();

  Schedule s(make_program("product", {C}), host);
  // A storage dimension is {dim, divide, modulo}: (index / divide) % modulo. Blocks of 16 columns,
  // each row by row: B[k, j] lies at [j / 16][k][j % 16]. The last block is padded with zeros.
  s.pack(B, {{1, 16, 0}, {0, 1, 0}, {1, 1, 16}}, {.when = PackWhen::ahead});
  auto [jo, ji] = s.split(j, 16);
  auto [ko, ki] = s.split(k, 16);
  auto [io, ii] = s.split(i, 6);
  s.reorder({io, ko, jo, ki, ii, ji});
  // The 6 x 16 elements of A that one iteration of ko touches, copied before they are used ...
  const std::string copy = s.cache_read(A, ko);
  // ... into rows of 17 floats, into one of two copies while the other is in use, and fetched into
  // cache two rows early. Marks change no result, and lowering carries them out.
  s.storage_align(copy, 0, 16, 1).double_buffer(copy, ko);
  s[copy].prefetch(A, "i", 2);
  s["C"].vectorize(ji, {.tail = Tail::mask}).parallel(io).annotate(jo, "user.block", 16);
  std::printf("%s\n", s.print().c_str());

  const Kernel plain = compile(make_program("product", {C}), host);
  const Kernel fast = compile(s.program(), host);
  Array a = random(f32, {M, K}, 1), b = random(f32, {K, N}, 2);
  Array c0 = zeros(f32, {M, N}), c1 = zeros(f32, {M, N});
  plain(a, b, c0);
  try {
    fast(a, b, c1);
  } catch (const UserError& e) {
    std::printf("the kernel wants B as it was packed:\n%s\n\n", e.what());
  }
  const Array packed = fast.prepack("B", b);  // once
  fast(a, packed, c1);                        // often

  try {
    s.double_buffer("C", io);
  } catch (const ScheduleError& e) {
    std::printf("marks are checked, too:\n%s\n", e.what());
  }
  double worst = 0;
  for (int x = 0; x < M * N; ++x) {
    const double d = c0.data<float>()[x] - c1.data<float>()[x];
    worst = d * d > worst * worst ? d : worst;
  }
  std::printf("largest difference from the plain loop nest: %g\n", worst);
  return worst < 1e-4 && worst > -1e-4 ? 0 : 1;
}
