// How fast a program is made: a trace of 12 steps applied to the unscheduled loop tree, lowered and
// verified, on one core (its own time), without LLVM and without verification between passes. A
// tuner does this thousands of times; at most 5 ms are allowed, 2 aimed at.
//
//   ninja -C build perf_machinery && build/bin/perf_machinery [seconds]
#include <fmt/format.h>
#include <tenon/ir/ops.h>
#include <tenon/schedule/schedule.h>
#include <tenon/support/error.h>
#include <tenon/support/stats.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "lower/lower.h"

using namespace tenon;

namespace {

/// Time of this thread on its core, microseconds: other processes do not count.
double thread_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

Target machine() {
  Target t;
  t.name = "x86-64/avx512";
  t.vector_bits = 512;
  t.vector_registers = 32;
  t.has_fma = t.has_masks = true;
  return t;
}

/// The unscheduled program and the steps.
struct Work {
  std::string name;
  Program program;
  Trace trace;
};

/// C = A*B with odd sizes: blocked over k, B packed, a register tile, threads.
Work matmul() {
  const Tensor a = input("A", f32, {1000, 777}), b = input("B", f32, {777, 999});
  const Axis i("i", 1000), j("j", 999), k("k", 777);
  const Program plain = make_program("matmul", {compute("C", {i, j}, sum(a(i, k) * b(k, j), k))});
  Schedule s(plain, machine());
  s.split("i", 6);
  s.split("j", 64);
  s.split("k", 256);
  s.reorder({"j.o", "k.o", "i.o", "k.i", "i.i", "j.i"});
  s.cache_read("B", "k.o", {.layout = {{1, 64, 0}, {0, 1, 0}, {1, 1, 64}}});
  const CacheWriteStages made = s.cache_write("i.o", {.scope = Scope::reg});
  s["C"].vectorize("j.i", {.tail = Tail::mask}).unroll("i.i");
  s[made.load].vectorize("j", {.tail = Tail::mask});
  s[made.store].vectorize("j", {.tail = Tail::mask});
  s["B.cache"].vectorize("j", {.tail = Tail::mask});
  s["C"].parallel("j.o");
  return {"matmul 1000x999x777", plain, s.trace()};
}

/// relu(conv(pad(X), W)) over 3x3 taps: the padding inlined or at the tile, a register tile of
/// channels, relu at the tile's end.
Work convolution() {
  const int64_t ci = 32, co = 64, h = 28, w = 28;
  const Tensor x = input("X", f32, {ci, h, w}), f = input("W", f32, {co, ci, 3, 3});
  const Axis c("c", ci), y("y", h + 2), z("z", w + 2), o("o", co), p("p", h), q("q", w), r("r", ci),
      u("u", 3), v("v", 3), o2("o", co), p2("p", h), q2("q", w);
  const Expr inside = Expr(y) >= 1 && Expr(y) < h + 1 && Expr(z) >= 1 && Expr(z) < w + 1;
  const Tensor pad = compute("P", {c, y, z}, select(inside, x(c, y - 1, z - 1), float_imm(0)));
  const Tensor conv = compute(
      "C", {o, p, q}, sum(pad(r, Expr(p) + Expr(u), Expr(q) + Expr(v)) * f(o, r, u, v), {r, u, v}));
  const Tensor relu = compute("R", {o2, p2, q2}, max(conv(o2, p2, q2), Expr(0.0)));
  const Program plain = make_program("conv", {relu});
  Schedule s(plain, machine());
  s["C"].split("o", 6);
  s["C"].split("q", 16);
  s["C"].split("r", 8);
  s["C"].reorder({"o.o", "p", "q.o", "r.o", "r.i", "u", "v", "o.i", "q.i"});
  s["P"].compute_at("C", "p");
  s["C"].cache_write("q.o", {.scope = Scope::reg});
  s["R"].reverse_compute_at("C.store", "p");
  s["C"].vectorize("q.i", {.tail = Tail::mask}).unroll("o.i");
  s["C.store"].vectorize("q", {.tail = Tail::mask});
  s["R"].vectorize("q", {.tail = Tail::mask});
  s["C"].parallel("o.o");
  return {"pad, conv, relu 64x28x28x32", plain, s.trace()};
}

struct Times {
  std::vector<double> apply_us, lower_us, verify_us, all_us;
};

Times measure(const Work& work, double seconds) {
  Times t;
  const Target target = machine();
  for (const double start = thread_us(); thread_us() - start < seconds * 1e6;) {
    const double a = thread_us();
    Program program = work.program;
    for (const Primitive& step : work.trace) program = apply(program, target, step);
    const double b = thread_us();
    const Program flat = lower(program, target);
    const double c = thread_us();
    verify(flat, Form::Flat);
    const double d = thread_us();
    t.apply_us.push_back(b - a);
    t.lower_us.push_back(c - b);
    t.verify_us.push_back(d - c);
    t.all_us.push_back(d - a);
  }
  return t;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
    fmt::print("{:28} {:>5} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "program", "steps", "apply_us",
               "lower_us", "verify_us", "median_us", "best_us");
    for (const Work& work : {matmul(), convolution()}) {
      const Times t = measure(work, seconds);
      fmt::print("{:28} {:5} {:9.0f} {:9.0f} {:9.0f} {:9.0f} {:9.0f}\n", work.name,
                 work.trace.size(), median(t.apply_us), median(t.lower_us), median(t.verify_us),
                 median(t.all_us), *std::min_element(t.all_us.begin(), t.all_us.end()));
    }
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "perf_machinery: {}\n", e.what());
    return 1;
  }
}
