#include <catch2/catch.hpp>

#include <tenon/ir/ops.h>
#include <tenon/schedule/schedule.h>

#include "golden.h"
#include "lower/lower.h"
#include "tests/unit/lower/trees.h"
#include "tests/unit/schedule/schedule_formulas.h"

using namespace tenon;

namespace {

// The loop tree and what it becomes, in one file: the diff shows both.
std::string before_and_after(const Program& tree) {
  return print(tree) + "\n" + print(lower(tree, Target::parse("x86-64/avx512")));
}

}  // namespace

TEST_CASE("golden: a 6x64 register tile with tails in all three axes") {
  check_golden("lower/matmul_6x64.txt", before_and_after(matmul_tree({100, 1000, 77, 6, 64, 8})));
}

TEST_CASE("golden: a stencil on blocks of threads, its input staged in shared memory") {
  const Tensor x = input("X", f32, {34});
  const Axis i("i", 30);
  const Tensor c = compute("C", {i}, x(i) + x(Expr(i) + int_imm(2)) + x(Expr(i) + int_imm(4)));
  Schedule s(make_program("stencil", {c}), Target::generic_gpu());
  auto [io, ii] = s.split(i, 16);
  auto [pair, one] = s.split(ii, 2);
  s.bind(io, ThreadAxis::block_x);
  s.cache_read("X", io, {.scope = Scope::shared});
  s["C"].bind(pair, ThreadAxis::thread_x);
  s["X.cache"].bind(s["X.cache"].loops().back(), ThreadAxis::thread_x);
  check_golden("lower/blocks_and_threads.txt",
               s.print() + "\n" + print(lower(s.program(), s.target())));
}

TEST_CASE("golden: padding taken apart over unrolled and vectorised tiles") {
  check_golden("lower/conv_unrolled.txt",
               before_and_after(padded_conv_tree(56, 14, LoopMark::unroll, true)));
  check_golden("lower/conv_vectorised.txt",
               before_and_after(padded_conv_tree(50, 16, LoopMark::vectorize, true)));
}

TEST_CASE("golden: rows padded, the next block copied ahead, lines of A prefetched") {
  Matmul m(8, 32, 40);
  Schedule s(m.program(), wide_target());
  auto [ko, ki] = s.split(m.k, 16);
  s.reorder({ko, "i", ki, "j"});
  s.cache_read(m.B, ko);
  s.storage_align("B.cache", 0, 16, 1).double_buffer("B.cache", ko).prefetch(m.A, "i", 2);
  check_golden("lower/double_buffer.txt", before_and_after(s.program()));
}

TEST_CASE("golden: the next panel of B asked for by the row tiles of this one") {
  Matmul m(8, 64, 40);
  Schedule s(m.program(), wide_target());
  auto [io, ii] = s.split("i", 4);
  auto [jo, ji] = s.split("j", 32);
  s.reorder({jo, io, m.k, ii, ji});
  s.prefetch(m.B, jo, 1, {.over = m.k});
  check_golden("lower/prefetch_over.txt", before_and_after(s.program()));
}

TEST_CASE("golden: a product of inputs packed in the call and ahead") {
  const Tensor a = input("A", f32, {6, 20}), b = constant("B", f32, {20, 36});
  const Axis i("i", 6), j("j", 36), k("k", 20);
  Schedule s(make_program("product", {compute("C", {i, j}, sum(a(i, k) * b(k, j), k))}),
             wide_target());
  s.pack("A", {{1, 1, 0}, {0, 1, 0}});
  s.pack("B", {{1, 16, 0}, {0, 1, 0}, {1, 1, 16}}, {.when = PackWhen::ahead});
  auto [jo, ji] = s["C"].split("j", 16);
  s["C"].reorder({jo, "k", "i", ji}).vectorize(ji);
  check_golden("lower/pack.txt", before_and_after(s.program()));
}
