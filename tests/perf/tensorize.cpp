// What an intrinsic is worth: matmul of u8 by i8 into i32 on dot4_u8i8_i32 beside the same formula
// vectorised without it and beside f32, each with its operand packed and a register tile, on one
// thread in one run, in turns.
//
//   ninja -C build perf_tensorize && build/bin/perf_tensorize [size]
#include <fmt/format.h>
#include <tenon/compile/compile.h>
#include <tenon/runtime/timer.h>
#include <tenon/schedule/schedule.h>
#include <tenon/support/error.h>

#include <cstdlib>

using namespace tenon;

namespace {

constexpr int kRounds = 9;
constexpr double kFloor_us = 30'000;

struct Variant {
  std::string name;
  Kernel kernel;
  std::vector<Array> args;
  Samples samples;
};

Program matmul(int64_t n, DType a_type, DType b_type, DType c_type) {
  const Tensor a = input("A", a_type, {n, n}), b = input("B", b_type, {n, n});
  const Axis i("i", n), j("j", n), k("k", n);
  return make_program(
      "matmul", {compute("C", {i, j}, sum(cast(c_type, a(i, k)) * cast(c_type, b(k, j)), k))});
}

/// B packed per column of tiles in groups of `group` rows; a tile of 6 rows by 4 vectors.
Schedule tiled(const Program& plain, const Target& target, int64_t group) {
  const int64_t lanes = target.lanes(f32);
  Schedule s(plain, target);
  s.split("i", 6);
  s.split("j", 4 * lanes);
  s.split("j.i", lanes);
  s.split("k", group);
  s.reorder({"j.o", "i.o", "k.o", "i.i", "j.i.o", "j.i.i", "k.i"});
  std::vector<LayoutDim> packed = {{1, lanes, 0}, {0, 1, 0}, {1, 1, lanes}};
  if (group > 1) packed = {{1, lanes, 0}, {0, group, 0}, {1, 1, lanes}, {0, 1, group}};
  s.cache_read("B", "j.o", {.layout = packed});
  s.cache_write("i.o", {.scope = Scope::reg});
  s["C.store"].vectorize("j", {.tail = Tail::mask});
  return s;
}

Variant make(const std::string& name, const Schedule& s) {
  std::vector<Array> args;
  for (const Param& p : s.program().params)
    args.push_back(random(p.buffer->dtype, const_shape(p.buffer->shape).value(), 3));
  return {name, compile(s.program(), s.target()), std::move(args), {}};
}

void run(int64_t n) {
  Target target = Target::host();
  target.cores = 1;
  const Program bytes = matmul(n, u8, i8, i32), floats = matmul(n, f32, f32, f32);
  Target plain_target = target;
  std::erase_if(plain_target.features,
                [](const std::string& f) { return f == "avx512vnni" || f == "avxvnni"; });
  const auto tensorized = [&](const Target& t) {
    Schedule s = tiled(bytes, t, 4);
    s["C"].tensorize("j.i.i", "dot4_u8i8_i32").unroll("j.i.o").unroll("i.i");
    return s;
  };
  Schedule single = tiled(floats, target, 1);
  single["C"].reorder({"k.i", "j.i.i"});
  single["C"].vectorize("j.i.i").unroll("j.i.o").unroll("i.i");
  std::vector<Variant> variants = {make("f32", single), make("u8 x i8, dot4", tensorized(target)),
                                   make("u8 x i8, the formula", tensorized(plain_target))};
  ThreadPool pool(1);
  for (int round = 0; round < kRounds; ++round)
    for (Variant& v : variants)
      v.samples.us.push_back(
          time_repeatedly([&] { v.kernel.run(v.args, pool); }, kFloor_us, 1).median());
  const double base = variants[0].samples.median();
  fmt::print("matmul {0}x{0}x{0} on {1}, one thread\n", n, target.name);
  for (const Variant& v : variants)
    fmt::print("{:22} {:10.1f} us  mad {:6.1f}  {:7.1f} Gop/s  {:5.2f} x f32\n", v.name,
               v.samples.median(), v.samples.mad(),
               2.0 * static_cast<double>(n * n * n) * 1e-3 / v.samples.median(),
               base / v.samples.median());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? std::atoll(argv[1]) : 512);
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "perf_tensorize: {}\n", e.what());
    return 1;
  }
}
