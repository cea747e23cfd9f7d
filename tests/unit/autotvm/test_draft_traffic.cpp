#include "drafted.h"

using namespace tenon;

TEST_CASE("Bytes from beyond the second cache follow the loops that keep a block there") {
  // for j.o 8, i.o 64, k: a packed panel of B (128 KiB) stays while A (1 MiB) passes by, once for
  // each panel; B and C pass by once, C fetched before it is written.
  const NestTree packed = nests_of(tiled(product(512, 512, 512), 8, 64, 1, true).program(), {});
  CHECK(beyond(packed, "C", "A", second_cache) == 8 * kMiB);
  CHECK(beyond(packed, "C", "B.packed", second_cache) == kMiB);
  CHECK(beyond(packed, "C.store", "C", second_cache) == 2 * kMiB);
  // Rows of 2 KiB fall into an eighth of its sets: the panel does not stay.
  const NestTree plain = nests_of(tiled(product(512, 512, 512), 8, 64, 1).program(), {});
  CHECK(beyond(plain, "C", "B", second_cache) == 64 * kMiB);
  // What fits as a whole is there at the next call.
  const NestTree small = nests_of(tiled(product(64, 64, 64), 8, 64, 1).program(), {});
  CHECK(beyond(small, "C", "A", second_cache) == 0);
}

TEST_CASE("A reader right behind its writer finds the data in the cache") {
  const Tensor x = input("X", f32, {1024, 1024});
  const Axis i("i", 1024), j("j", 1024), i2("i2", 1024), j2("j2", 1024);
  const Tensor e = compute("E", {i, j}, exp(x(i, j)));
  const Program p = make_program("two", {compute("Y", {i2, j2}, e(i2, j2) * e(i2, 0))});
  const Schedule apart(p, machine());
  Schedule together = apart;
  together["E"].compute_at("Y", "i2");
  CHECK(beyond(nests_of(apart.program(), {}), "Y", "E", second_cache) == 4 * kMiB);
  CHECK(beyond(nests_of(together.program(), {}), "Y", "E", second_cache) == 0);
  CHECK(draft_of(together).cycles < draft_of(apart).cycles);
}

TEST_CASE("A loop that takes a part of each row brings in the lines of that part alone") {
  const Tensor x = input("X", f32, {64, 2048});
  const Axis i("i", 64), l("l", 64), k("k", 32);
  const Program p =
      make_program("parts", {compute("Y", {i, l}, sum(x(i, Expr(k) * 64 + Expr(l)), k))});
  // Eight rows of 8 KiB do not fit the first cache; lines of their parts come once all the same.
  const auto brought = [&](int64_t part) {
    Schedule s(p, machine());
    s.split("i", 8);
    s.split("l", part);
    s.reorder({"i.o", "l.o", "k", "i.i", "l.i"});
    return beyond(nests_of(s.program(), {}), "Y", "X", first_cache);
  };
  CHECK(brought(16) == 64 * 2048 * 4);
  CHECK(brought(8) > 64 * 2048 * 4);  // half a line at a time
}

TEST_CASE("Stores past the caches do not fetch lines first") {
  const Tensor x = input("X", f32, {4096, 1024});
  const Axis i("i", 4096), j("j", 1024);
  Schedule s(make_program("copy", {compute("Y", {i, j}, x(i, j))}), machine());
  s.split("j", 16);
  s.vectorize("j.i");
  const Draft plain = draft_of(s);
  s.annotate("j.i", "stream", 1);
  const Draft streamed = draft_of(s);
  CHECK(plain.features.far_bytes == 3 * 16 * kMiB);
  CHECK(streamed.features.far_bytes == 16 * kMiB);
  CHECK(streamed.cycles < plain.cycles);
}

TEST_CASE("Threads share the pieces of a loop, and what is left over waits") {
  const Tensor x = input("X", f32, {3, 1 << 16});
  const Axis i("i", 3), j("j", 1 << 16);
  Schedule s(make_program("map", {compute("Y", {i, j}, exp(x(i, j)))}), machine());
  s.split("j", 16);
  s.vectorize("j.i");
  const Draft one = draft_of(s, 2);
  CHECK(one.hopeless.value() == "most of the work on one core");
  CHECK(one.features.balance == 0.5);
  CHECK(one.features.pieces == 0);
  CHECK(one.features.fork_cycles == 0);
  CHECK_FALSE(draft_of(s, 1).hopeless);
  s.parallel("i");
  const Draft two = draft_of(s, 2);
  CHECK_FALSE(two.hopeless);
  CHECK(two.features.pieces == 3);
  CHECK(two.features.balance == Approx(0.75));
  CHECK(two.features.fork_cycles == 4000);
  CHECK(two.features.compute_cycles == Approx(one.features.compute_cycles * 2 / 3));
  CHECK(two.cycles < one.cycles);
  CHECK(draft_of(s, 3).cycles < two.cycles);
}

TEST_CASE("A short last piece leaves most of the work to the first") {
  const Tensor x = input("X", f32, {19, 1 << 14});
  const Axis i("i", 19), j("j", 1 << 14);
  Schedule s(make_program("map", {compute("Y", {i, j}, exp(x(i, j)))}), machine());
  s.split("i", 16);
  s.split("j", 16);
  s.vectorize("j.i").parallel("i.o");
  CHECK(draft_of(s, 2).features.balance ==
        Approx(19. / 32));  // 16 rows on one core, 3 on the other
}
