#include <catch2/catch.hpp>

#include "golden.h"
#include "tests/unit/schedule/schedule_formulas.h"

using namespace tenon;

namespace {

/// The steps and the loop tree they make, beside the primitive's name.
void check_tree(const std::string& name, const Schedule& s) {
  verify_tree(s);
  check_golden("schedule/" + name + ".txt", to_cpp(s.trace()) + "\n" + s.print());
}

/// P[i] = X[i]*2 for 34 points; C[i] = P[i] + P[i+1] + P[i+2] for 32.
Schedule stencil() {
  const Tensor x = input("X", f32, {34});
  const Axis a("a", 34), i("i", 32);
  const Tensor p = compute("P", {a}, x(a) * Expr(2.0));
  const Tensor c = compute("C", {i}, p(i) + p(Expr(i) + int_imm(1)) + p(Expr(i) + int_imm(2)));
  return {make_program("stencil", {c}), wide_target()};
}

/// D[i,j] = max(C[i,j], 0) after a matmul.
Schedule matmul_relu(int64_t m, int64_t n, int64_t depth) {
  Matmul mm(m, n, depth);
  const Axis y("y", m), x("x", n);
  const Tensor d = compute("D", {y, x}, max(mm.C(y, x), Expr(0.0)));
  return {make_program("matmul_relu", {d}), wide_target()};
}

}  // namespace

TEST_CASE("split with and without a rest") {
  Matmul m(10, 32, 8);
  Schedule s(m.program(), wide_target());
  s.split(m.i, 4);
  s.split(m.j, 16);
  s.split(m.k, 3);
  check_tree("split", s);
}

TEST_CASE("tile") {
  Matmul m(13, 29, 8);
  Schedule s(m.program(), wide_target());
  s.tile(m.i, m.j, 4, 8);
  check_tree("tile", s);
}

TEST_CASE("fuse") {
  Matmul m(13, 29, 8);
  Schedule s(m.program(), wide_target());
  const Loop ij = s.fuse(m.i, m.j);
  s.split(ij, 16);
  check_tree("fuse", s);
}

TEST_CASE("reorder") {
  Matmul m(13, 29, 8);
  Schedule s(m.program(), wide_target());
  s.reorder({m.k, m.i});
  check_tree("reorder", s);
}

TEST_CASE("marks") {
  Matmul m(13, 32, 8);
  Schedule s(m.program(), wide_target());
  auto [io, ii] = s.split(m.i, 4);
  s.reorder({io, "k", ii, "j"}).parallel(io).partition(io).unroll(ii).vectorize(m.j);
  check_tree("marks", s);
}

TEST_CASE("bind a tile of a matmul to blocks and threads, its inputs staged in shared memory") {
  Matmul m(60, 64, 32);
  Schedule s(m.program(), Target::generic_gpu());
  auto [io, ii] = s.split(m.i, 16);
  auto [jo, ji] = s.split(m.j, 16);
  auto [ko, ki] = s.split(m.k, 8);
  s.reorder({io, jo, ko, ii, ji, ki});
  const CacheWriteStages made = s.cache_write(jo);
  s.bind(io, ThreadAxis::block_y).bind(jo, ThreadAxis::block_x);
  const std::string a = s["C"].cache_read(m.A, ko, {.scope = Scope::shared});
  s[a].bind("i", ThreadAxis::thread_y).bind("k", ThreadAxis::thread_x);
  s["C"].bind(ii, ThreadAxis::thread_y).bind(ji, ThreadAxis::thread_x);
  s[made.store].bind("i", ThreadAxis::thread_y).bind("j", ThreadAxis::thread_x);
  s.set_scope("C.cache", Scope::local);
  check_tree("bind", s);
}

TEST_CASE("compute_at") {
  Schedule s = stencil();
  auto [io, ii] = s["C"].split("i", 8);
  s["P"].compute_at(io);
  check_tree("compute_at", s);
}

TEST_CASE("reverse_compute_at runs after the last iteration of the reduction outside") {
  Schedule s = matmul_relu(16, 32, 64);
  auto [ko, ki] = s["C"].split("k", 16);
  s["C"].reorder({ko, "i", "j", ki});
  s["D"].reverse_compute_at("C", "i");
  check_tree("reverse_compute_at", s);
}

TEST_CASE("compute_inline") {
  Schedule s = stencil();
  s["P"].compute_inline();
  check_tree("compute_inline", s);
}

TEST_CASE("cache_read in blocks of the register tile") {
  Matmul m(16, 64, 64);
  Schedule s(m.program(), wide_target());
  auto [ko, ki] = s.split(m.k, 16);
  s.reorder({ko, "i", "j", ki});
  s.cache_read(m.B, ko, {.layout = {{1, 16, 0}, {0, 1, 0}, {1, 1, 16}}});
  s.cache_read(m.A, "root");
  check_tree("cache_read", s);
}

TEST_CASE("cache_write copies partial results in and out") {
  Matmul m(16, 64, 64);
  Schedule s(m.program(), wide_target());
  auto [ko, ki] = s.split(m.k, 16);
  auto [io, ii] = s.split(m.i, 4);
  s.reorder({ko, io, ki, ii, "j"});
  const CacheWriteStages made = s.cache_write(io, {.scope = Scope::reg});
  CHECK(made.load == "C.load");
  s[made.store].vectorize("j");
  check_tree("cache_write", s);
}

TEST_CASE("set_scope") {
  Schedule s = matmul_relu(16, 32, 64);
  s["D"].reverse_compute_at("C", "i");
  s.set_scope("C", Scope::reg);
  check_tree("set_scope", s);
}

TEST_CASE("decompose_reduction") {
  Matmul m(16, 32, 8);
  Schedule s(m.program(), wide_target());
  s.reorder({"k", "j"});
  s.decompose_reduction(m.k);
  check_tree("decompose_reduction", s);
}

TEST_CASE("rfactor of an inner part, and the parts at a loop of the reduction") {
  Matmul m(16, 32, 1027);
  Schedule s(m.program(), wide_target());
  s.split("k", 16);
  const std::string parts = s.rfactor("k.i");
  CHECK(parts == "C.rf");
  check_tree("rfactor", s);
  s[parts].compute_at("C", "j");
  s.set_scope(parts, Scope::reg);
  s[parts].vectorize("k.i");
  check_tree("rfactor_at", s);
}

TEST_CASE("rfactor of a tuple") {
  const Tensor x = input("X", f32, {8, 100});
  const Axis i("i", 8), k("k", 100);
  Schedule s(make_program("rows", compute_tuple("M", {i}, arg_max(x(i, k), k))), wide_target());
  s.split("k", 25);
  s["M"].rfactor("k.o", {.dim = 0});
  s["M.rf"].reorder({"k.o", "i"}).parallel("k.o");
  check_tree("rfactor_tuple", s);
}

TEST_CASE("pack an input in each call, a constant ahead, and a temporary where it is") {
  const Tensor a = input("A", f32, {8, 20}), b = constant("B", f32, {20, 36});
  const Axis i("i", 8), j("j", 36), k("k", 20), y("y", 8), x("x", 36);
  const Tensor c = compute("C", {i, j}, sum(a(i, k) * b(k, j), k));
  Schedule s(make_program("product", {compute("D", {y, x}, max(c(y, x), Expr(0.0)))}),
             wide_target());
  CHECK(s.pack("A", {{0, 3, 0}, {1, 1, 0}, {0, 1, 3}}) == "A.packed");
  CHECK(s.pack("B", {{1, 16, 0}, {0, 1, 0}, {1, 1, 16}}, {.when = PackWhen::ahead}) == "");
  s.pack("C", {{1, 1, 0}, {0, 1, 0}});
  check_tree("pack", s);
}

TEST_CASE("storage_align") {
  Matmul m(16, 64, 64);
  Schedule s(m.program(), wide_target());
  s.cache_read(m.A, "root");
  s.storage_align("A.cache", 0, 32, 4);
  check_tree("storage_align", s);
}

TEST_CASE("prefetch, double_buffer and annotate") {
  Matmul m(16, 64, 64);
  Schedule s(m.program(), wide_target());
  auto [ko, ki] = s.split(m.k, 16);
  s.reorder({ko, "i", ki, "j"});
  s.cache_read(m.B, ko);
  s.prefetch(m.A, ki, 8).double_buffer("B.cache", ko).annotate("i", "user.rows", 3);
  check_tree("notes", s);
}

TEST_CASE("split with a last tile that is shifted inward") {
  Matmul m(13, 37, 8);
  Schedule s(m.program(), wide_target());
  s.split("j", 16, {.tail = Tail::shift_inward});
  s.reorder({"k", "j.i"}).vectorize("j.i");
  check_tree("split_shift_inward", s);
}

TEST_CASE("split that rounds a temporary up") {
  const Tensor x = input("X", f32, {30});
  const Axis a("a", 34), i("i", 32);
  const Expr inside = Expr(a) >= 2 && Expr(a) < 32;
  const Tensor p = compute("P", {a}, select(inside, x(a - 2), float_imm(0)));
  Schedule s(make_program("stencil", {compute("C", {i}, p(i) + p(i + 2))}), wide_target());
  s["P"].split("a", 16, {.tail = Tail::pad});
  s["P"].vectorize("a.i");
  check_tree("split_pad", s);
}

TEST_CASE("reverse_compute_inline of an epilogue into the copy of a reduction") {
  Schedule s = matmul_relu(16, 32, 64);
  s["C"].cache_write("i");
  s["D"].reverse_compute_inline();
  check_tree("reverse_compute_inline", s);
}

TEST_CASE("pad_einsum") {
  Matmul m(13, 32, 30);
  Schedule s(m.program(), wide_target());
  s.pad_einsum({4, 16, 8});
  check_tree("pad_einsum", s);
}

TEST_CASE("the lanes of a reduction are combined") {
  Matmul m(16, 32, 64);
  Schedule s(m.program(), wide_target());
  s.split("k", 16);
  s.vectorize("k.i");
  check_tree("vectorize_reduction", s);
}

TEST_CASE("the reference page of primitives is up to date") {
  check_golden("../../docs/primitives.md", primitives_markdown());
}

TEST_CASE("tensorize") {
  const Tensor a = input("A", u8, {6, 10}), b = input("B", i8, {10, 40});
  const Axis i("i", 6), j("j", 40), k("k", 10);
  const Tensor c = compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(k, j)), k));
  Schedule s(make_program("bytes", {c}), wide_target());
  s.split(j, 16);
  s.split(k, 4);
  s.reorder({"j.o", "k.o", "i", "j.i", "k.i"});
  s.cache_read("B", "j.o", {.layout = {{1, 16, 0}, {0, 4, 0}, {1, 1, 16}, {0, 1, 4}}});
  s["C"].tensorize("j.i", "dot4_u8i8_i32");
  check_tree("tensorize", s);
}
