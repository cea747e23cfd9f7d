#include <tenon/compile/compile.h>
#include <tenon/ir/ops.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "case_harness.h"
#include "kernels/softmax.h"

// Sizes, vectors, memory.

using namespace tenon;
using namespace tenon::cases;

namespace {

double small(int64_t n) { return static_cast<double>(n * 7 % 101) - 50; }

}  // namespace

TEST_CASE("D46 tail with guard pages") {
  for (int64_t n = 1; n <= 40; ++n) {
    Work work;
    for (int64_t stride : {1, 2}) {
      for (DType t : {f32, i8, f64}) {
        const int64_t size = (n - 1) * stride + 1;
        const std::string name = fmt::format("X{}{}", tenon::name(t), stride);
        const Tensor x = input(name, t, {size});
        const Axis i("i", n);
        work.outputs.push_back(compute("out_" + name, {i}, x(Expr(i) * stride)));
        work.inputs[name] = table_of(t, {size}, small);
        work.want.push_back(table_of(t, {n}, [=](int64_t k) { return small(k * stride); }));
      }
    }
    check(work, fmt::format("{}", n), split_and_vectorize);
    if (n % 8 == 5) {
      check_default(work, fmt::format("{}", n));
      check(work, fmt::format("{}, vectorised whole", n), [](Schedule& s) {
        for (const std::string& stage : s.stages()) s[stage].vectorize("i", {Tail::mask});
      });
      check(work, fmt::format("{}, peeled", n), [](Schedule& s) {
        for (const std::string& stage : s.stages()) {
          const SplitLoops loops = s[stage].split("i", 8);
          s[stage].vectorize(loops.inner);
          if (s.program().body.defined()) s.try_apply(Partition{stage, loops.outer.name});
        }
      });
    }
  }
}

TEST_CASE("D47 misaligned views") {
  // The harness runs machine code on arrays one element off a multiple of 64 bytes, and flush with
  // the end of a page.
  const int64_t rows = 5, columns = 1027;
  for (DType t : {f16, f32, i8}) {
    const Tensor x = input("X", t, {rows, columns});
    const Axis i("i", rows), j("j", columns);
    const Work work{{compute("out", {i, j}, x(i, j) * imm(-1, t))},
                    {{"X", table_of(t, {rows, columns}, small)}},
                    {table_of(t, {rows, columns}, [](int64_t k) { return small(k) * -1.0; })}};
    check_default(work, fmt::format("{}", name(t)));
    check(work, fmt::format("{}, rows vectorised", name(t)), [](Schedule& s) {
      s.split("j", 64);
      s.vectorize("j.i");
    });
    check(work, fmt::format("{}, rows vectorised and peeled", name(t)), [](Schedule& s) {
      s.split("j", 64);
      s.partition("j.o").vectorize("j.i").parallel("i");
    });
    // Row 1 and a view one element into an array, given to the compiled kernel.
    for (const Backend& b : backends()) {
      if (!b.machine_code) continue;
      const Axis k("k", columns - 2);
      const Tensor y = input("Y", t, {columns - 2});
      Schedule s(make_program("view", {compute("out", {k}, y(k))}), b.target);
      s.vectorize(s.split("k", 64).inner);
      const Array whole = table_of(t, {rows * columns}, small);
      const Array got = Array::empty(t, {columns});
      const Run run = b.prepare(s.program());
      int64_t wrong = 0;
      for (int64_t offset : {int64_t{1}, columns, columns + 3}) {
        const Array out = got.view(1, {columns - 2});
        run({whole.view(offset, {columns - 2}), out}, {});
        const std::vector<double> values = out.to_doubles();
        for (int64_t m = 0; m < columns - 2; ++m)
          wrong += values[static_cast<size_t>(m)] != small(offset + m);
      }
      holds(wrong == 0, b.name, fmt::format("{}, views", name(t)), fmt::format("{} wrong", wrong));
    }
  }
}

TEST_CASE("D48 zero-size") {
  const Tensor x = input("X", f32, {0, 5});
  const Axis i("i", 0), j("j", 5);
  check_schedules(
      {{compute("out", {i, j}, x(i, j) + 1.0)}, {{"X", zeros(f32, {0, 5})}}, {zeros(f32, {0, 5})}},
      "elementwise (0,5)");

  const Tensor a = input("A", f32, {3, 0}), b = input("B", f32, {0, 4});
  const Axis p("p", 3), q("q", 4), k("k", 0);
  check_schedules({{compute("C", {p, q}, sum(a(p, k) * b(k, q), k))},
                   {{"A", zeros(f32, {3, 0})}, {"B", zeros(f32, {0, 4})}},
                   {zeros(f32, {3, 4})}},
                  "matmul (3,0)x(0,4)");

  const Tensor u = input("U", f32, {0, 3}), v = input("V", f32, {2, 3});
  const Axis r("r", 2), c("c", 3);
  check_schedules({{compute("joined", {r, c}, select(Expr(r) < 0, u(r, c), v(r, c)))},
                   {{"U", zeros(f32, {0, 3})}, {"V", table_of(f32, {2, 3}, small)}},
                   {table_of(f32, {2, 3}, small)}},
                  "concat of (0,3) and (2,3)");

  const Tensor y = input("Y", f32, {0, 4});
  check_schedules({{softmax(y, 1)}, {{"Y", zeros(f32, {0, 4})}}, {zeros(f32, {0, 4})}},
                  "softmax (0,4)");
}

TEST_CASE("D49 more than 2^31 elements") {
  const int64_t n = (int64_t{1} << 31) + 64;
  REQUIRE(n - 1 == 2147483711);
  const auto bytes_modulo = [](int64_t elements) {
    const Axis i("i", elements);
    return compute("out", {i}, cast(u8, floor_mod(i, 251)));
  };
  const auto ir_of = [&](int64_t elements) {
    Schedule s(make_program("case", {bytes_modulo(elements)}), host_target());
    return compile(s.program(), host_target()).source();
  };
  const std::string large = ir_of(n), few = ir_of(1000);
  holds(large.find("i64") != std::string::npos && large.find("trunc i64 %") == std::string::npos,
        "build", "64-bit index", large);
  CHECK(!few.empty());
  // OpenCL: an index is an int where 32 bits are proved to be enough. LLVM keeps 64,
  // the width of an address.
  const auto opencl_of = [&](int64_t elements) {
    Schedule s(make_program("case", {bytes_modulo(elements)}), Target::generic_gpu());
    s.split("i", 64);
    s.bind("i.o", ThreadAxis::block_x).bind("i.i", ThreadAxis::thread_x);
    return compile_object(s.program(), Target::generic_gpu()).bytes;
  };
  const std::string wide = opencl_of(n), narrow = opencl_of(1000), limit = opencl_of(n - 64);
  for (const std::string& text : {wide, narrow, limit}) {
    INFO(text);
    CHECK(text.find("const int i_o_ = (int)get_group_id(0);") != std::string::npos);
  }
  const std::string in_long = "const long T = (((long)i_o_ * 64L) + (long)thread_x_);",
                    in_int = "const int T = ((i_o_ * 64) + thread_x_);";
  holds(wide.find(in_long) != std::string::npos, "opencl text", "64-bit index", wide);
  holds(narrow.find(in_int) != std::string::npos, "opencl text", "32-bit index", narrow);
  holds(limit.find(in_int) != std::string::npos, "opencl text", "2^31 elements", limit);
  if (!std::getenv("TENON_LARGE_CASES")) {
    std::cout << "D49: 2.1 GiB are filled only with TENON_LARGE_CASES=1\n";
    return;
  }
  const auto fill = [&](const Backend& b, const Steps& steps) {
    Schedule s(make_program("case", {bytes_modulo(n)}), b.target);
    steps(s);
    const Array got = Array::empty(u8, {n});
    b.prepare(s.program())({got}, {});
    int64_t wrong = 0;
    for (int64_t k :
         {int64_t{0}, int64_t{1}, n / 2, (int64_t{1} << 31) - 1, int64_t{1} << 31, n - 1})
      wrong += got.data<uint8_t>()[k] != k % 251;
    holds(wrong == 0, b.name, "2.1 GiB", fmt::format("{} wrong", wrong));
  };
  for (const Backend& b : backends())
    if (b.machine_code) fill(b, [](Schedule& s) { s.vectorize(s.split("i", 64).inner); });
  if (const Backend* device = opencl_backend())
    fill(*device, [](Schedule& s) {
      auto [block, thread] = s.split("i", 256);
      s.bind(block, ThreadAxis::block_x).bind(thread, ThreadAxis::thread_x);
    });
}
