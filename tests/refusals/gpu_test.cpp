#include <catch2/catch.hpp>

#include <tenon/ir/ops.h>
#include <tenon/support/error.h>

#include "refused.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

Schedule gpu_matmul(int64_t m = 64, int64_t n = 64, int64_t depth = 32) {
  return {Matmul(m, n, depth).program(), Target::generic_gpu()};
}

}  // namespace

TEST_CASE("bind and the scopes of GPUs are refused on a CPU") {
  Schedule s(Matmul(8, 8, 8).program(), wide_target());
  refused([&] { s.bind("i", ThreadAxis::block_x); },
          {"bind(C, \"i\", ThreadAxis::block_x)", "target x86-64/avx512 has no blocks of threads",
           "--target opencl"});
  refused([&] { s.cache_read("B", "j", {.scope = Scope::local}); }, {"has no local memory"});
}

TEST_CASE("what may be bound") {
  Schedule s = gpu_matmul();
  refused([&] { s.bind("k", ThreadAxis::thread_x); },
          {"loop \"k\" is a reduction loop of stage \"C\"", "bind needs a spatial loop"});
  refused([&] { s.parallel("i"); },
          {"loop \"i\" is parallel, which is for the threads of a CPU", "bind it"});
  refused([&] { s.bind("j", ThreadAxis::block_x); },
          {"loop \"i\" stands outside loop \"j\"", "their loops are outermost",
           "bind \"i\" to a block axis first"});
  s.bind("i", ThreadAxis::block_x);
  refused([&] { s.bind("i", ThreadAxis::block_y); }, {"already marked block_x"});
  refused([&] { s.bind("j", ThreadAxis::block_x); },
          {"loops \"i\" and \"j\" are both bound to block_x"});
  s.bind("j", ThreadAxis::thread_x);
  refused([&] { s.split("j", 2); }, {"marks come after the splits"});
}

TEST_CASE("threads inside vectors, and beside a block loop") {
  Schedule s = gpu_matmul();
  s.reorder({"j", "i"});
  s.vectorize("j");
  refused([&] { s.bind("i", ThreadAxis::thread_x); },
          {"thread loop \"i\" is inside the vectorized loop \"j\""});

  const Tensor x = input("X", f32, {64, 64});
  const Axis a("a", 64), b("b", 64), i("i", 64), j("j", 64);
  const Tensor p = compute("P", {a, b}, x(a, b) * Expr(2.0));
  const Tensor c = compute("C", {i, j}, p(i, j) + Expr(1.0));
  Schedule two(make_program("two", {c}), Target::generic_gpu());
  two["C"].bind("i", ThreadAxis::block_y).bind("j", ThreadAxis::block_x);
  refused([&] { two["P"].compute_at("C", "i"); },
          {"something stands between the block loops \"i\" and \"j\""});
}

TEST_CASE("D51 the limits of the device are named before anything is launched") {
  Schedule wide = gpu_matmul(64, 2048, 8);
  refused([&] { wide.bind("j", ThreadAxis::thread_x); },
          {"2048 threads along thread_x; a common GPU allows 1024"});
  Schedule square = gpu_matmul(64, 64, 8);
  square.bind("i", ThreadAxis::thread_y);
  refused([&] { square.bind("j", ThreadAxis::thread_x); },
          {"4096 threads per block (64 x 64 x 1); a common GPU allows 1024", "bind smaller loops"});
  Schedule deep = gpu_matmul(128, 64, 8);
  refused([&] { deep.bind("i", ThreadAxis::thread_z); },
          {"128 threads along thread_z; a common GPU allows 64"});
  Schedule tall = gpu_matmul(70000, 64, 8);
  refused([&] { tall.bind("i", ThreadAxis::block_y); },
          {"70000 blocks along block_y; a common GPU allows 65535", "bind it to block_x"});
  tall.bind("i", ThreadAxis::block_x);
}

TEST_CASE("memory belongs to the block or to one thread") {
  Schedule s = gpu_matmul(16, 64);
  const CacheWriteStages made = s.cache_write("i", {.scope = Scope::shared});
  refused([&] { s["C"].bind("i", ThreadAxis::thread_x); },
          {"buffer C.cache is shared and allocated inside thread loop \"i\"",
           "outside the thread loops, or use Scope::local"});
  s.set_scope("C.cache", Scope::global);
  s["C"].bind("j", ThreadAxis::thread_x);
  refused([&] { s["C"].bind("i", ThreadAxis::thread_y); },
          {"buffer C.cache is allocated inside thread loop \"i\" and outside thread loop \"j\""});
}

TEST_CASE("local memory is a thread's own") {
  Schedule s = gpu_matmul();
  s.bind("i", ThreadAxis::block_x);
  const CacheWriteStages made = s.cache_write("i");
  s["C"].bind("j", ThreadAxis::thread_x);
  refused([&] { s.set_scope("C.cache", Scope::local); },
          {"buffer C.cache is local memory, a thread's own",
           "stage \"C.store\" reads only what the same thread of stage \"C\" writes",
           "bind the same loops in both stages, or use Scope::shared"});
  s[made.store].bind("j", ThreadAxis::thread_x);
  s.set_scope("C.cache", Scope::local);
}

TEST_CASE("kernels share global memory only") {
  Schedule s = gpu_matmul();
  refused([&] { s.cache_read("B", "root", {.scope = Scope::shared}); },
          {"buffer B.cache is shared memory, but it is allocated outside all loops",
           "kernels share global memory only"});
}

TEST_CASE("the threads of a block are a constant number") {
  const Var n("n"), loop("i");
  const Buffer x("X", f32, {n}), y("Y", f32, {n});
  const Axis i("i", n);
  Stage copy{.name = "C", .axes = {{i, AxisKind::spatial, loop}}, .outputs = {y}, .indices = {i}};
  copy.values = {load(x, {i})};
  For nest{loop, int_imm(0), n, AxisKind::spatial, LoopMark::serial, {}, make_stmt(copy)};
  Schedule s(Program{"open", {{x}, {y, ParamRole::output}}, make_stmt(nest)},
             Target::generic_gpu());
  refused([&] { s.bind("i", ThreadAxis::thread_x); },
          {"thread loop \"i\" has the symbolic extent n", "split it by a constant"});
  s.bind("i", ThreadAxis::block_x);
}
