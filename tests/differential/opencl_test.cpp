#include <fmt/format.h>
#include <tenon/ir/ops.h>
#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "fuzz/random_gpu_step.h"
#include "interp/interp.h"
#include "opencl_device.h"
#include "tests/fuzz/draw.h"
#include "tests/fuzz/oracle.h"
#include "user_formulas.h"

// The same programs on an OpenCL device: with the interpreter, with plain loops, and what D50 to
// D52 ask. Drivers take 0.2 s and more for a kernel, so the counts are small.

using namespace tenon;
using namespace tenon::test;

namespace {

std::vector<double> run_one(const Kernel& kernel, const std::vector<Array>& inputs,
                            const Array& out) {
  std::vector<Array> all = inputs;
  all.push_back(out);
  kernel.run(all, default_pool());
  return out.to_doubles();
}

/// Elements with 64 canary bytes on each side.
struct Guarded {
  Array whole, part;
  Guarded(DType t, int64_t n)
      : whole(full(t, {n + 128 / byte_size(t)}, 77)), part(whole.view(64 / byte_size(t), {n})) {}
  bool intact() const {
    const std::vector<double> all = whole.to_doubles();
    const auto edge = static_cast<size_t>(64 / byte_size(whole.dtype()));
    for (size_t k = 0; k < edge; ++k)
      if (all[k] != 77 || all[all.size() - 1 - k] != 77) return false;
    return true;
  }
};

}  // namespace

TEST_CASE("D50 grid tail: spare threads write nothing") {
  const auto target = opencl_device();
  if (!target) return;
  const Axis i("i", 1000);
  const Tensor x = input("X", i32, {1000});
  Schedule s(make_program("tail", {compute("C", {i}, x(i) * 3 + 1)}), *target);
  s.split("i", 256);
  s.bind("i.o", ThreadAxis::block_x).bind("i.i", ThreadAxis::thread_x);
  const Kernel kernel = compile(s.program(), *target);
  CHECK(kernel.source().find("grid 4 1 1 block 256 1 1") != std::string::npos);
  const Array a = random(i32, {1000}, 3);
  const Guarded out(i32, 1000);
  const std::vector<double> in = a.to_doubles(), got = run_one(kernel, {a}, out.part);
  for (size_t k = 0; k < got.size(); ++k) CHECK(got[k] == in[k] * 3 + 1);
  CHECK(out.intact());
}

TEST_CASE("D51 too much shared memory is refused before anything is launched") {
  const auto target = opencl_device();
  if (!target) return;
  const Axis i("i", 64), j("j", 80000);
  const Tensor x = input("X", f32, {64, 80000});
  Schedule s(make_program("wide", {compute("C", {i, j}, x(i, j) + Expr(1.0))}), *target);
  s.bind("i", ThreadAxis::block_x);
  s.cache_read("X", "i", {.scope = Scope::shared});
  CHECK_THROWS_WITH(compile(s.program(), *target),
                    Catch::Contains("a block needs 320000 bytes of shared memory") &&
                        Catch::Contains(fmt::format("allows {}", target->limits.shared_bytes)));
}

TEST_CASE("D51 2048 threads of a block and 70000 blocks along y are refused with the limit") {
  const auto target = opencl_device();
  if (!target) return;
  const Axis i("i", 70000), j("j", 2048);
  const Tensor x = input("X", u8, {70000, 2048});
  Schedule s(make_program("big", {compute("C", {i, j}, x(i, j))}), *target);
  CHECK_THROWS_WITH(s.bind("j", ThreadAxis::thread_x),
                    Catch::Contains("2048 threads along thread_x"));
  CHECK_THROWS_WITH(s.bind("i", ThreadAxis::block_y),
                    Catch::Contains("70000 blocks along block_y") && Catch::Contains("65535"));
}

TEST_CASE("D52 cross-thread reduction with spare threads") {
  const auto target = opencl_device();
  if (!target) return;
  const Axis i("i", 2), t("t", 32), row("row", 2), k("k", 32);
  const Tensor x = input("X", i32, {2, 32});
  const Tensor part = compute("P", {row, k}, x(row, k) * 1);
  const Tensor c = compute("C", {i}, sum(part(i, t), t));
  Schedule s(make_program("rows", {c}), *target);
  auto [io, ii] = s["C"].split("i", 16);
  s["C"].bind(io, ThreadAxis::block_x);
  s["P"].compute_at(io);
  s["P"].split("k", 64);
  s["P"].bind("row", ThreadAxis::thread_y).bind("k.i", ThreadAxis::thread_x);
  s["C"].bind(ii, ThreadAxis::thread_y);
  s.set_scope("P", Scope::shared);
  INFO(s.print());
  const Kernel kernel = compile(s.program(), *target);
  CHECK(kernel.source().find("block 64 16 1") != std::string::npos);
  CHECK(kernel.source().find("barrier(") != std::string::npos);
  const Array a = random(i32, {2, 32}, 3);
  const Guarded out(i32, 2);
  const std::vector<double> in = a.to_doubles(), got = run_one(kernel, {a}, out.part);
  for (size_t r = 0; r < 2; ++r) {
    double want = 0;
    for (size_t n = 0; n < 32; ++n) want += in[r * 32 + n];
    CHECK(got[r] == want);
  }
  CHECK(out.intact());
}

TEST_CASE("a matmul tile: shared staging, local accumulators, odd sizes") {
  const auto target = opencl_device();
  if (!target) return;
  const int64_t m = 45, n = 52, depth = 37;
  const Tensor A = input("A", i32, {m, depth}), B = input("B", i32, {depth, n});
  const Axis i("i", m), j("j", n), k("k", depth);
  const Tensor c = compute("C", {i, j}, sum(A(i, k) * B(k, j), k));
  const Program plain = make_program("matmul", {c});
  Schedule s(plain, *target);
  auto [io, ii] = s.split(i, 16);
  auto [jo, ji] = s.split(j, 32);
  auto [jt, jj] = s.split(ji, 4);
  auto [ko, ki] = s.split(k, 8);
  s.reorder({io, jo, ko, ii, jt, ki, jj});
  const CacheWriteStages made = s.cache_write(jo);
  s["C"].bind(io, ThreadAxis::block_y).bind(jo, ThreadAxis::block_x);
  const std::string a = s["C"].cache_read("A", ko, {.scope = Scope::shared});
  const std::string b = s["C"].cache_read("B", ko, {.scope = Scope::shared});
  s[a].bind("i", ThreadAxis::thread_y).bind("k", ThreadAxis::thread_x);
  s[b].split("j", 8);
  s[b].bind("k", ThreadAxis::thread_y).bind("j.i", ThreadAxis::thread_x);
  s["C"].bind(ii, ThreadAxis::thread_y).bind(jt, ThreadAxis::thread_x);
  auto [so, si] = s[made.store].split("j", 4);
  s[made.store].bind("i", ThreadAxis::thread_y).bind(so, ThreadAxis::thread_x);
  SECTION("local") { s.set_scope("C.cache", Scope::local); }
  SECTION("registers") { s.set_scope("C.cache", Scope::reg); }
  INFO(s.print());
  const Kernel kernel = compile(s.program(), *target);
  INFO(kernel.ir());
  INFO(kernel.source());
  const GuardedArguments got(plain, GuardAt::end, 9), want(plain, GuardAt::end, 9);
  kernel.run(got.all, default_pool());
  std::vector<HostBuffer> buffers;
  for (const Array& x : want.all) buffers.push_back({x.raw()});
  interpret(plain, buffers);
  CHECK(got.all.back().to_doubles() == want.all.back().to_doubles());
}

TEST_CASE("users' formulas on OpenCL: the generic template agrees with plain loops") {
  const auto target = opencl_device();
  if (!target) return;
  const char* all = std::getenv("TENON_ALL_FORMULAS");
  int number = 0;
  for (const Case& c : user_formulas()) {
    if (++number % 4 != 1 && !all) continue;
    INFO(c.name << " " << number);
    const Program program = merge_dimensions(make_program("p", c.outputs));
    Schedule s(program, *target);
    Knobs knobs;
    generic_template(s, knobs);
    INFO(s.print());
    const Kernel kernel = compile(s.program(), *target);
    const GuardedArguments arguments(program, GuardAt::end, 23);
    kernel.run(arguments.all, default_pool());
    const auto want = c.want(arguments.inputs);
    for (size_t o = 0; o < want.size(); ++o) {
      const auto got = arguments.all[arguments.outputs_from + o].to_doubles();
      REQUIRE(got.size() == want[o].size());
      double largest = 0;
      for (double v : want[o])
        if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
      for (size_t k = 0; k < got.size(); ++k)
        if (!(got[k] == want[o][k] || std::fabs(got[k] - want[o][k]) <= c.tolerance * largest)) {
          FAIL_CHECK("output " << o << " element " << k << ": " << got[k] << " and not "
                               << want[o][k]);
          break;
        }
    }
  }
}

TEST_CASE("random schedules with GPU primitives on OpenCL") {
  const auto target = opencl_device();
  if (!target) return;
  const int64_t only = from_environment("TENON_CASE", -1);
  const int64_t first = std::max<int64_t>(only, 0),
                last = only < 0 ? from_environment("TENON_GPU_CASES", 200) : only + 1;
  int64_t refused = 0;
  for (int64_t n = first; n < last; ++n) {
    Rng rng(static_cast<uint64_t>(n) + 20261201);
    const RandomFormula f = random_formula(rng);
    Schedule s(f.program, *target);
    const int64_t attempts = rng.between(8, 24);
    for (int64_t k = 0; k < attempts; ++k) s.try_apply(random_gpu_step(s, rng));
    INFO("TENON_CASE=" << n << "\n" << to_cpp(s.trace()) << s.print());
    bool not_possible = false;
    CHECK(Oracle(f, 5).machine_fault(s.program(), *target, &not_possible) == "");
    refused += not_possible;
  }
  std::cout << fmt::format("opencl: {} of {} random programs refused by lower\n", refused,
                           last - first);
  if (only < 0) CHECK(refused * 2 < last - first);
}
