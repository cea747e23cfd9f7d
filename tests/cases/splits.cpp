#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/rng.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>

#include "case_harness.h"
#include "tests/fuzz/random_step.h"

// Splits, predicates, loop structure.

using namespace tenon;
using namespace tenon::cases;

namespace {

/// C[i] = Z[i] + (1 for each time the update runs): an element computed twice shows as 2.
Work counts(int64_t n) {
  const Tensor z = input("Z", i32, {n});
  const Axis i("i", n), once("once", 1);
  const Tensor c = compute("C", {i}, sum(int_imm(1, i32), {once}, {.start = {z(i)}}));
  return {{c}, {{"Z", zeros(i32, {n})}}, {full(i32, {n}, 1)}};
}

/// Every loop of the program has an extent of at least 0.
bool no_negative_extent(const Program& program) {
  bool good = true;
  walk(
      program.body,
      [&](const Stmt& s) {
        const For* loop = s.as<For>();
        good = good && (!loop || as_int(loop->extent).value_or(-1) >= 0);
        return true;
      },
      nullptr);
  return good;
}

double seconds_of(const std::function<void()>& f) {
  const auto from = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

}  // namespace

TEST_CASE("D01 imperfect split") {
  const Axis i("i", 37);
  const Tensor out = compute("out", {i}, cast(i32, Expr(i) * i));
  const Work work{{out}, {}, {table<int32_t>({37}, [](int64_t n) { return n * n; })}};
  check_default(work, "37");
  check(work, "split by 8, inner vectorised",
        [](Schedule& s) { s.vectorize(s.split("i", 8).inner); });
}

TEST_CASE("D02 factor above the extent") {
  const auto split_to = [](int64_t factor, bool vector) {
    return [=](Schedule& s) {
      const SplitLoops loops = s.split("i", factor);
      holds(no_negative_extent(s.program()), "schedule", "extents", s.print());
      if (vector) s.vectorize(loops.inner, {Tail::mask});
    };
  };
  const Work five = counts(5), eight = counts(8);
  check_default(five, "5");
  check(five, "5 by 32", split_to(32, false));
  check(five, "5 by 32, vectorised", split_to(32, true));
  check_default(eight, "8");
  check(eight, "8 into 32 parts", split_to((8 + 31) / 32, false));
  check(eight, "8 into 32 parts, vectorised", split_to((8 + 31) / 32, true));
  check(eight, "8 by 32, and the outer loop by 32", [](Schedule& s) {
    s.split(s.split("i", 32).outer, 32);
    holds(no_negative_extent(s.program()), "schedule", "extents", s.print());
  });
}

TEST_CASE("D03 split of a split") {
  const Work work = counts(1027);
  check_default(work, "1027");
  check(work, "16, 5, unrolled", [](Schedule& s) {
    const SplitLoops outer = s.split("i", 16);
    s.unroll(s.split(outer.inner, 5).inner);
  });
}

TEST_CASE("D04 tile in every order") {
  const Axis i("i", 13), j("j", 29);
  const Tensor c = compute("C", {i, j}, cast(i32, Expr(i) * 100 + j));
  const Work work{
      {c}, {}, {table<int32_t>({13, 29}, [](int64_t n) { return n / 29 * 100 + n % 29; })}};
  check_default(work, "13x29");
  std::vector<std::string> order = {"i.i", "i.o", "j.i", "j.o"};
  int orders = 0;
  do {
    ++orders;
    check(work, order[0] + " " + order[1] + " " + order[2] + " " + order[3], [&](Schedule& s) {
      s.tile("i", "j", 4, 8);
      s.reorder({order.begin(), order.end()});
    });
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(orders == 24);
}

TEST_CASE("D05 one kernel, many sizes") {
  const Var n = symbol("n", {0, 1000});
  const Tensor x = input("X", i32, {n});
  const Axis i("i", n);
  const Tensor out = compute("out", {i}, x(i) * 3 + cast(i32, i));
  const auto in = [](int64_t k) { return k * k % 97 - 40; };
  const std::vector<std::pair<std::string, Steps>> schedules = {
      {"unscheduled", [](Schedule&) {}},
      {"split by 8, vectorised", [](Schedule& s) { s.vectorize(s.split("i", 8).inner); }},
      {"split by 8, vectorised, parallel", [](Schedule& s) {
         const SplitLoops loops = s.split("i", 8);
         s.vectorize(loops.inner).parallel(loops.outer);
       }}};
  for (const Backend& b : backends()) {
    for (const auto& [name, steps] : schedules) {
      starts(b.name, name);
      Schedule s(make_program("sizes", {out}), b.target);
      steps(s);
      const Run run = b.prepare(s.program());
      for (int64_t size = 0; size <= 70; ++size) {
        const Work work{{out},
                        {{"X", table<int32_t>({size}, in)}},
                        {table<int32_t>({size}, [&](int64_t k) { return in(k)*3 + k; })},
                        0,
                        true,
                        false,
                        {{"n", size}}};
        check_calls(b, run, work, s, fmt::format("{}, n = {}", name, size));
      }
    }
  }
}

TEST_CASE("D06 steps that make no sense") {
  const Axis i("i", 12), j("j", 10), k("k", 8), p("p", 12);
  const Tensor x = input("X", i32, {12, 10, 8});
  const Tensor a = compute("A", {i, j, k}, x(i, j, k) + 1);
  const Axis i2("i", 12), j2("j", 10), k2("k", 8);
  const Tensor b = compute("B", {i2, j2, k2}, a(i2, j2, k2) * 2);
  const std::vector<Tensor> outputs = {b};
  refused(outputs, "factor 0", [](Schedule& s) { s["A"].split("i", 0); },
          {"split", "\"i\"", "factor", "0"});
  refused(outputs, "factor -4", [](Schedule& s) { s["A"].split("i", -4); },
          {"split", "\"i\"", "-4"});
  refused(outputs, "axis of another stage", [](Schedule& s) { s["A"].split("p", 4); },
          {"split", "\"p\""});
  refused(outputs, "loop of another stage",
          [](Schedule& s) {
            s["A"].reorder({"A:j", "B:i"});
          },
          {"reorder"});
  refused(outputs, "axis twice in a reorder",
          [](Schedule& s) {
            s["A"].reorder({"i", "j", "i"});
          },
          {"reorder", "\"i\"", "twice"});
  refused(outputs, "fuse of loops apart", [](Schedule& s) { s["A"].fuse("i", "k"); },
          {"fuse", "\"k\"", "\"i\""});
  refused(outputs, "fuse in the wrong order", [](Schedule& s) { s["A"].fuse("j", "i"); },
          {"fuse", "\"i\""});
  refused(outputs, "fuse with itself", [](Schedule& s) { s["A"].fuse("i", "i"); },
          {"fuse", "\"i\""});
  refused(outputs, "tile by 0", [](Schedule& s) { s["A"].tile("i", "j", 4, 0); },
          {"tile", "\"j\"", "0"});
}

TEST_CASE("D07 dependent loops") {
  int32_t want = 0;
  for (int64_t a = 0; a < 37; ++a)
    for (int64_t b = a; b < 37; ++b) want += (a + b) % 3 == 0;
  REQUIRE(want == 235);
  const Axis i("i", 37), j("j", 37);
  const Expr hit = cast(i32, floor_mod(Expr(i) + j, 3) == 0);
  const Tensor c = compute("C", {}, sum(hit, {i, j}, {.condition = Expr(i) <= j}));
  const Work work{{c}, {}, {table<int32_t>({}, [=](int64_t) { return want; })}};
  check_schedules(work, "i <= j");
  check(work, "j starts at i", [](Schedule& s) { s.partition("j"); });
  check(work, "fused", [](Schedule& s) { s.fuse("i", "j"); }, {true, {"fuse"}});
  check(work, "fused and split", [](Schedule& s) { s.split(s.fuse("i", "j"), 8); },
        {true, {"fuse"}});

  // The same count with the bound in the axis: its extent speaks of another axis.
  const Axis p("p", 37), q("q", 37 - Expr(p));
  const Expr hit2 = cast(i32, floor_mod(Expr(p) * 2 + q, 3) == 0);
  refused_call("schedule", "an extent that speaks of another axis",
               [&] {
                 compute("C", {}, sum(hit2, {p, q}));
               },
               {"\"q\"", "\"p\""});
}

TEST_CASE("D08 unroll of a million") {
  const int64_t n = 1000000;
  const Axis i("i", n);
  const Tensor c = compute("C", {i}, cast(i32, Expr(i) * 3));
  const Work work{{c}, {}, {table<int32_t>({n}, [](int64_t k) { return k * 3; })}};
  double seconds = seconds_of([&] {
    refused({c}, "unroll 10^6", [](Schedule& s) { s.unroll("i"); }, {"unroll", "\"i\"", "1024"});
  });
  holds(seconds < 10, "schedule", "unroll 10^6 in time", fmt::format("{} s", seconds));
  for (const Backend& b : backends()) {
    if (!b.machine_code) continue;
    for (const char* what : {"unroll", "vectorize"}) {
      seconds = seconds_of([&] {
        check_on(b, work, fmt::format("{} the most that is allowed", what),
                 [&](Schedule& s) {
                   if (what == std::string("vectorize"))
                     s.vectorize("i");
                   else
                     s.unroll(s.split("i", 1000).inner);
                 },
                 {true, {what}});
      });
      holds(seconds < 10, b.name, fmt::format("{} in time", what), fmt::format("{} s", seconds));
    }
  }
  refused({c}, "two unrolled loops",
          [](Schedule& s) {
            const SplitLoops a = s.split("i", 1000);
            s.unroll(a.inner);
            s.unroll(a.outer);
          },
          {"unroll", "1024"});
}

namespace {

/// out = relu(conv3x3(pad(X)))
Work pad_conv_relu() {
  const int64_t h = 7, w = 9, channels = 3;
  const Tensor x = input("X", i32, {channels, h, w}), weight = input("W", i32, {4, channels, 3, 3});
  const Axis pc("c", channels), py("y", h + 2), px("x", w + 2);
  const Expr inside = Expr(py) >= 1 && Expr(py) <= h && Expr(px) >= 1 && Expr(px) <= w;
  const Tensor pad = compute("pad", {pc, py, px},
                             select(inside, x(pc, Expr(py) - 1, Expr(px) - 1), int_imm(0, i32)));
  const Axis o("o", 4), y("y", h), v("x", w), c("c", channels), r("r", 3), t("t", 3);
  const Tensor conv = compute(
      "conv", {o, y, v}, sum(pad(c, Expr(y) + r, Expr(v) + t) * weight(o, c, r, t), {c, r, t}));
  const Axis ro("o", 4), ry("y", h), rx("x", w);
  const Tensor relu = compute("relu", {ro, ry, rx}, max(conv(ro, ry, rx), int_imm(0, i32)));

  Work work{{relu},
            {{"X", random(i32, {channels, h, w}, 1)}, {"W", random(i32, {4, channels, 3, 3}, 2)}},
            {}};
  const int32_t* in = work.inputs["X"].data<int32_t>();
  const int32_t* wd = work.inputs["W"].data<int32_t>();
  work.want = {table<int32_t>({4, h, w}, [=](int64_t n) {
    const int64_t oo = n / (h * w), yy = n / w % h, xx = n % w;
    int64_t total = 0;
    for (int64_t k = 0; k < channels * 9; ++k) {
      const int64_t a = yy + k / 3 % 3 - 1, b = xx + k % 3 - 1;
      if (a < 0 || a >= h || b < 0 || b >= w) continue;
      total += int64_t{in[(k / 9 * h + a) * w + b]} * wd[oo * channels * 9 + k];
    }
    return std::max<int64_t>(total, 0);
  })};
  return work;
}

bool is_of_case(const Primitive& p) {
  return std::holds_alternative<Split>(p) || std::holds_alternative<Fuse>(p) ||
         std::holds_alternative<Reorder>(p) || std::holds_alternative<ComputeAt>(p) ||
         std::holds_alternative<ComputeInline>(p) || std::holds_alternative<Vectorize>(p) ||
         std::holds_alternative<Unroll>(p) || std::holds_alternative<Parallel>(p);
}

}  // namespace

TEST_CASE("D09 schedule fuzz") {
  const Work work = pad_conv_relu();
  check_default(work, "pad, conv, relu");
  int64_t accepted = 0, tried = 0;
  for (uint64_t n = 0; n < 500; ++n) {
    const auto draw = [&](Schedule& s) {
      Rng rng(n + 99);
      for (int64_t left = rng.between(2, 10); left > 0;) {
        const Primitive step = random_step(s, rng);
        if (!is_of_case(step)) continue;
        --left;
        ++tried;
        accepted += !s.try_apply(step);
      }
    };
    check_on(backends()[n % backends().size()], work, fmt::format("sequence {}", n), draw,
             {true, {"lower error"}});
  }
  INFO(accepted << " of " << tried);
  CHECK(accepted * 3 > tried);
}
