#include <fmt/format.h>
#include <tenon/compile/compile.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>

#include "kernels/blocking.h"
#include "kernels/table.h"
#include "kernels/templates.h"
#include "template_cases.h"

using namespace tenon;

namespace {

Program product(int64_t m, int64_t n, int64_t k) {
  const KernelEntry& entry = find_kernel("matmul");
  return make_program(
      "p", entry.build(parse_kernel_args(
               entry, {fmt::format("m={}", m), fmt::format("n={}", n), fmt::format("k={}", k)})));
}

Contraction parts(const Program& program, const std::string& stage) {
  auto c = find_contraction(program, stage);
  REQUIRE(c);
  return *c;
}

Target machine(int cores, int64_t l2_bytes) {
  Target t = Target::parse("x86-64/avx512");
  t.cores = cores;
  t.l1d_bytes = 48 << 10;
  t.l2_bytes = l2_bytes;
  t.vector_fmas = 2;
  t.far_bytes = 7;
  return t;
}

/// C[i, j] = sum of A[i, k] * B[k, j], B known ahead, and a map after it.
Program with_constant(int64_t m, int64_t n, int64_t k, bool transposed) {
  Tensor a = input("A", DType::f32, {m, k});
  Tensor b = transposed ? constant("B", DType::f32, {n, k}) : constant("B", DType::f32, {k, n});
  Axis i("i", m), j("j", n), r("k", k);
  Tensor c = compute("C", {i, j}, sum(a(i, r) * (transposed ? b(j, r) : b(r, j)), r));
  return make_program("p", {compute("Y", {i, j}, max(c(i, j), Expr(0.0f)))});
}

}  // namespace

TEST_CASE("blocks of a large product fit the second cache whatever its size") {
  for (const int64_t l2 : {512 << 10, 1 << 20, 2 << 20})
    for (const int64_t size : {700, 1024, 2048, 4096}) {
      const Contraction c = parts(product(size, size, size), "C");
      const Blocking b = best_blocking(c, machine(2, l2), false);
      INFO(l2 << " " << size);
      CHECK(b.packed);
      const int64_t width = b.tile.vectors * 16, columns = b.panels > 0 ? b.panels * width : size,
                    steps = b.k_block > 0 ? b.k_block : size;
      CHECK(steps * columns * 4 <= l2);
      CHECK(registers_used(b.tile) <= registers_free(machine(2, l2)));
      CHECK(b.tile.rows * b.tile.vectors >= 20);
    }
}

TEST_CASE("rows that straddle lines are packed where what is far comes fast") {
  const Contraction c = parts(product(256, 196, 1024), "C");
  Target target = machine(2, 1 << 20);
  CHECK_FALSE(best_blocking(c, target, false).packed);
  target.far_bytes = 27;
  target.vector_fmas = 1;
  CHECK(best_blocking(c, target, false).packed);
}

TEST_CASE("few rows are not worth packing for, and both cores get their share") {
  for (const int64_t rows : {2, 7, 17}) {
    const Contraction c = parts(product(rows, 2048, 2048), "C");
    const Blocking b = best_blocking(c, machine(2, 2 << 20), false);
    INFO(rows);
    CHECK_FALSE(b.packed);
    CHECK((b.k_block > 0 && b.k_block <= 64));
    const int64_t width = b.tile.vectors * 16,
                  blocks = b.panels > 0 ? (2048 + b.panels * width - 1) / (b.panels * width) : 1;
    CHECK(blocks * b.row_pieces >= 2);
  }
}

TEST_CASE("tiny products stay on one core") {
  const Contraction c = parts(product(8, 16, 8), "C");
  const Blocking b = best_blocking(c, machine(2, 2 << 20), false);
  CHECK(b.row_pieces == 1);
  CHECK(b.panels == 0);
}

TEST_CASE("tiles are narrow where each vector lies across two lines") {
  const Target one = machine(1, 2 << 20);
  for (const int64_t size : {119, 127, 150, 255}) {
    INFO(size);
    const Blocking b = best_blocking(parts(product(size, size, size), "C"), one, false);
    CHECK_FALSE(b.packed);
    CHECK(b.tile.vectors == 2);
    CHECK(b.tile.rows >= 12);
  }
  const Blocking b{{8, 1, 3}};
  CHECK(blocked_cycles(parts(product(127, 127, 127), "C"), b, one, false) >
        1.02 * blocked_cycles(parts(product(127, 128, 127), "C"), b, one, false));
}

TEST_CASE("a block of rows that lie across lines stays in the first cache") {
  for (const int64_t l1 : {32 << 10, 48 << 10}) {
    Target one = machine(1, 2 << 20);
    one.l1d_bytes = l1;
    const Blocking b = best_blocking(parts(product(127, 127, 127), "C"), one, false);
    INFO(l1);
    CHECK(b.panels == 1);
    CHECK(127 * b.tile.vectors * 16 * 4 <= l1 / 2);
  }
  // Rows 16 KB apart fall into the same sets: there a block would not stay.
  const Contraction apart = parts(product(64, 4096, 64), "C");
  CHECK(best_blocking(apart, machine(1, 2 << 20), false).panels == 0);
}

TEST_CASE("many rows are worth packing for where vectors lie across lines") {
  const Target one = machine(1, 2 << 20);
  CHECK(best_blocking(parts(product(1001, 1001, 37), "C"), one, false).packed);
  CHECK_FALSE(best_blocking(parts(product(1001, 1008, 37), "C"), one, false).packed);
}

TEST_CASE("pieces of rows are fetched in place where all but X stays in the second cache") {
  const Target one = machine(1, 2 << 20);
  for (const int64_t k : {768, 3072}) {
    INFO(k);
    const Blocking b = best_blocking(parts(product(128, 768, k), "C"), one, false);
    CHECK(b.panels_outside);
    CHECK_FALSE(b.packed);
    CHECK((b.k_block > 0 && 2 * b.k_block * b.tile.vectors * 16 * 4 <= one.l2_bytes / 2));
  }
  // Many rows; rows of X that fall into the same sets; an X that stays by itself.
  CHECK(best_blocking(parts(product(1000, 768, 768), "C"), one, false).packed);
  CHECK_FALSE(best_blocking(parts(product(128, 1024, 1024), "C"), one, false).panels_outside);
  CHECK_FALSE(best_blocking(parts(product(128, 128, 128), "C"), one, false).panels_outside);
}

TEST_CASE("a product that reads pieces of rows in place asks for the next of them") {
  const Program program = product(100, 96, 300);
  const Target host = Target::host();
  const Task task("p", program, templates_for(program, host), host);
  REQUIRE(task.templates[0].name == "matmul");
  const KnobSpace space = survey(task.templates[0].fn, program, host);
  Point point = space.default_point();
  point.values["rows"] = int64_t{6};
  point.values["vectors"] = int64_t{2};
  point.values["panels"] = int64_t{0};
  point.values["pack"] = int64_t{0};
  point.values["k_block"] = int64_t{128};
  point.values["panels_outside"] = int64_t{1};
  const Schedule s = apply_template(task, "matmul", point);
  CHECK(s.print().find("prefetch_part(B)") != std::string::npos);
  const Kernel plain = compile(program, host), fetched = compile(s.program(), host);
  const std::vector<Array> args = {random(f32, {100, 300}, 1), random(f32, {300, 96}, 2),
                                   zeros(f32, {100, 96})};
  std::vector<Array> own = args;
  own[2] = zeros(f32, {100, 96});
  plain.run(args, serial_pool());
  fetched.run(own, serial_pool());
  const auto expected = args[2].elements<float>(), got = own[2].elements<float>();
  for (size_t e = 0; e < got.size(); ++e) REQUIRE(std::abs(got[e] - expected[e]) <= 1e-6 * 300);

  point.values["pack"] = int64_t{1};
  const auto why = space.why_not(point);
  REQUIRE(why);
  CHECK(why->find("a copy of X is not read in place") != std::string::npos);
}

TEST_CASE("cores share rows rather than lines of the results") {
  for (const int64_t size : {127, 255}) {
    INFO(size);
    const Contraction c = parts(product(size, size, size), "C");
    const Blocking b = best_blocking(c, machine(2, 2 << 20), false);
    CHECK(b.row_pieces == 2);
    CHECK(b.panels == 0);
  }
}

TEST_CASE("what is a matrix product and what is not") {
  CHECK(is_matrix_product(parts(product(4, 5, 6), "C")));
  const KernelEntry& conv = find_kernel("conv2d");
  const Program program = make_program(
      "p", conv.build(parse_kernel_args(conv, {"c_in=8", "h=9", "w=20", "c_out=16", "k=3"})));
  CHECK_FALSE(is_matrix_product(parts(program, "Y")));
}

TEST_CASE("a constant operand is packed ahead and gives the same results") {
  const Target host = Target::host();
  Rng rng(3);
  for (const bool transposed : {false, true})
    for (const auto& [m, n, k] :
         {std::tuple<int64_t, int64_t, int64_t>{17, 70, 33}, {1, 100, 37}, {40, 150, 1100}}) {
      INFO(m << " " << n << " " << k << " " << transposed);
      const Program program = with_constant(m, n, k, transposed);
      const Task task("p", program, templates_for(program, host), host);
      const Schedule s = default_schedule(task);
      CHECK(to_json(s.trace()).find("ahead") != std::string::npos);
      const Kernel plain = compile(program, host), packed = compile(s.program(), host);
      const std::vector<Array> args = {random(f32, {m, k}, 1),
                                       random(f32, transposed ? Shape{n, k} : Shape{k, n}, 2),
                                       zeros(f32, {m, n})};
      std::vector<Array> own = packed.prepacked(args);
      own[2] = zeros(f32, {m, n});
      CHECK(own[1].shape() != args[1].shape());
      plain.run(args, serial_pool());
      packed.run(own, serial_pool());
      const auto expected = args[2].elements<float>(), got = own[2].elements<float>();
      for (size_t e = 0; e < got.size(); ++e)
        REQUIRE(std::abs(got[e] - expected[e]) <= 1e-6 * static_cast<double>(k));
    }
}
