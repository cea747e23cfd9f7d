#include <tenon/ir/ops.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "case_harness.h"

// Reductions.

using namespace tenon;
using namespace tenon::cases;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

const std::vector<DType> kNumbers = {i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64};

double lowest_of(DType t) { return is_float(t) ? -kInf : static_cast<double>(min_int(t)); }

/// What a maximum over nothing is; i64's lowest is no double that converts back.
Array lowest(DType t, Shape shape) {
  if (t == i64) return table<int64_t>(std::move(shape), [](int64_t) { return INT64_MIN; });
  return full(t, std::move(shape), lowest_of(t));
}

}  // namespace

TEST_CASE("D18 constant start") {
  const int64_t n = 1027;
  const Tensor x = input("X", i32, {n});
  const Axis k("k", n);
  const Tensor c = compute("C", {}, sum(x(k), {k}, {.start = {int_imm(10, i32)}}));
  const Work work{{c},
                  {{"X", table<int32_t>({n}, [](int64_t m) { return m; })}},
                  {table<int32_t>({}, [](int64_t) { return 526861; })}};
  check_schedules(work, "0 to 1026");
  check(work, "rfactor into 4 parts in parallel", [](Schedule& s) {
    const Loop parts = s.split("k", 257).outer;
    const std::string partial = s["C"].rfactor(parts);
    s[partial].parallel(parts.name);
  });
}

TEST_CASE("D19 start from a tensor") {
  const int64_t n = 27;
  const Tensor start = input("I", i32, {n, n}), a = input("A", i32, {n, n}),
               b = input("B", i32, {n, n});
  const Axis i("i", n), j("j", n), k("k", n);
  const Tensor c = compute("C", {i, j}, sum(a(i, k) * b(k, j), {k}, {.start = {start(i, j)}}));
  const auto av = [](int64_t q) { return q * 11 % 37 - 18; };
  const auto bv = [](int64_t q) { return q * 5 % 41 - 20; };
  const auto iv = [](int64_t q) { return q * 1000; };
  const Work work{{c},
                  {{"I", table<int32_t>({n, n}, iv)},
                   {"A", table<int32_t>({n, n}, av)},
                   {"B", table<int32_t>({n, n}, bv)}},
                  {table<int32_t>({n, n}, [&](int64_t q) {
                    int64_t total = iv(q);
                    for (int64_t r = 0; r < n; ++r) total += av(q / n * n + r) * bv(r * n + q % n);
                    return total;
                  })}};
  check_schedules(work, "27x27");
  check(work, "k split by 4", [](Schedule& s) { s.split("k", 4); });
  for (const char* loop : {"k.o", "k.i"})
    check(work, fmt::format("k split by 4, rfactor {}", loop), [&](Schedule& s) {
      s.split("k", 4);
      s["C"].rfactor(loop);
    });
  check(work, "k split by 4, outside", [](Schedule& s) {
    s.split("k", 4);
    s.reorder({"k.o", "i", "j", "k.i"});
    s.cache_write("i");
  });
}

TEST_CASE("D20 identity in tails") {
  const int64_t n = 1003;
  for (DType t : {i8, i32, f32}) {
    const Tensor x = input("X", t, {2, n});
    const Axis i("i", 2), k("k", n);
    const Tensor c = compute("C", {i}, reduce_max(x(i, k), {k}));
    const Work work{{c},
                    {{"X", table_of(t, {2, n}, [](int64_t m) { return -6.0 - m * 13 % 71; })}},
                    {table_of(t, {2}, [](int64_t) { return -6.0; })}};
    check_schedules(work, fmt::format("max of {}", name(t)));
    check(work, fmt::format("max of {}, k split by 8, i vectorised", name(t)), [](Schedule& s) {
      s.split("k", 8);
      s.reorder({"k.o", "k.i", "i"}).vectorize("i", {Tail::mask});
    });
    check(work, fmt::format("max of {}, k split by 8 and vectorised", name(t)),
          [](Schedule& s) { s.vectorize(s.split("k", 8).inner); },
          {true, {"vectorize", "\"k.i\"", "rfactor"}});

    const Steps vector_of_parts = [](Schedule& s) {
      const std::string stage = s.stages()[0];
      const Loop lanes = s[stage].split(s[stage].loops().back(), 8).inner;
      s[s[stage].rfactor(lanes)].vectorize(lanes.name, {Tail::mask});
    };
    check(work, fmt::format("max of {}, 8 lanes of parts", name(t)), vector_of_parts);

    const Axis p("p", 2), q("q", n);
    const Tensor d = compute("D", {p}, prod(x(p, q), {q}));
    const auto value = [](int64_t m) { return m % 1003 == 77 || m % 1003 == 1002 ? 2.0 : 1.0; };
    const Work product{
        {d}, {{"X", table_of(t, {2, n}, value)}}, {table_of(t, {2}, [](int64_t) { return 4.0; })}};
    check_schedules(product, fmt::format("product of {}", name(t)));
    check(product, fmt::format("product of {}, 8 lanes of parts", name(t)), vector_of_parts);
  }
}

TEST_CASE("D21 empty domain") {
  for (DType t : kNumbers) {
    const Tensor x = input("X", t, {5, 0});
    std::vector<Tensor> outputs;
    std::vector<Array> want;
    const auto add = [&](const char* what, const std::function<Expr(Expr, Axis)>& f,
                         const Array& a) {
      const Axis i("i", 5), k("k", 0);
      outputs.push_back(compute(what, {i}, f(x(i, k), k)));
      want.push_back(a);
    };
    add(
        "total", [](Expr e, Axis k) { return sum(e, k); }, full(t, {5}, 0));
    add(
        "product", [](Expr e, Axis k) { return prod(e, {k}); }, full(t, {5}, 1));
    add(
        "top", [](Expr e, Axis k) { return reduce_max(e, {k}); }, lowest(t, {5}));
    const Work work{outputs, {{"X", zeros(t, {5, 0})}}, want};
    if (t == i32 || t == f32)
      check_schedules(work, fmt::format("{}", name(t)));
    else
      check_default(work, fmt::format("{}", name(t)));
  }
  const Tensor b = input("B", boolean, {5, 0});
  const Axis i("i", 5), k("k", 0), p("p", 5), q("q", 0);
  const Work work{
      {compute("some", {i}, any(b(i, k), {k})), compute("every", {p}, all(b(p, q), {q}))},
      {{"B", zeros(boolean, {5, 0})}},
      {full(boolean, {5}, 0), full(boolean, {5}, 1)}};
  check_schedules(work, "bool");
}

namespace {

/// The 32 threads of a warp keep one partial result each, in shared memory; `tree`: 8 of them join
/// 4 each, and one the 8.
void reduce_by_warps(Schedule& s, bool tree) {
  s["best"].split("k", 32);
  const std::string part = s["best"].rfactor("k.i");
  s["best"].split("i", 4);
  s["best"].bind("i.o", ThreadAxis::block_x);
  s[part].compute_at("best", "i.o");
  std::vector<std::string> partial = {part};
  if (tree) {
    s["best"].split("k.i", 8);
    partial.push_back(s["best"].rfactor("k.i.i"));
    s[partial[1]].bind("i.i", ThreadAxis::thread_y).bind("k.i.i", ThreadAxis::thread_x);
  }
  s[part].bind("i", ThreadAxis::thread_y).bind("k.i", ThreadAxis::thread_x);
  s["best"].bind("i.i", ThreadAxis::thread_y);
  for (const std::string& stage : partial)
    for (const char* output : {"best.v0", "best.v1"})
      s.set_scope(output + stage.substr(std::string("best").size()), Scope::shared);
}

}  // namespace

TEST_CASE("D22 tuple argmax with ties") {
  const std::vector<double> values = {3, 9, 9, -1, 9};
  for (DType t : {i32, f32, i8, f64}) {
    const int64_t rows = 19;
    const Tensor x = input("X", t, {rows, 5});
    const Axis i("i", rows), k("k", 5);
    const std::vector<Tensor> best = compute_tuple("best", {i}, arg_max(x(i, k), k));
    const Work work{best,
                    {{"X", table_of(t, {rows, 5}, [&](int64_t n) { return values[n % 5]; })}},
                    {full(t, {rows}, 9), full(i64, {rows}, 1)}};
    check_schedules(work, fmt::format("{}", name(t)));
    check(work, fmt::format("{}, rows vectorised", name(t)), [](Schedule& s) {
      s.split("i", 8);
      s.reorder({"i.o", "k", "i.i"}).vectorize("i.i");
    });
    check(work, fmt::format("{}, k split", name(t)), [](Schedule& s) { s.split("k", 2); });
    for (const char* loop : {"k.o", "k.i"}) {
      check(work, fmt::format("{}, rfactor {}", name(t), loop), [&](Schedule& s) {
        s["best"].split("k", 2);
        s["best"].rfactor(loop);
      });
      check(work, fmt::format("{}, rfactor {} in parallel", name(t), loop),
            [&](Schedule& s) {
              s["best"].split("k", 2);
              const std::string partial = s["best"].rfactor(loop);
              s[partial].reorder({loop, "i"}).parallel(loop);
            },
            {true, {"reorder"}});
      check(work, fmt::format("{}, rfactor {}, vectorised", name(t), loop),
            [&](Schedule& s) {
              s["best"].split("k", 2);
              const std::string partial = s["best"].rfactor(loop);
              s[partial].vectorize(loop, {Tail::mask});
              s["best"].vectorize("i", {Tail::mask});
            },
            {true, {"vectorize"}});
    }
    for (const bool tree : {false, true}) {
      check_gpu(work, fmt::format("{}, warps{}", name(t), tree ? ", as a tree" : ""),
                [&](Schedule& s) { reduce_by_warps(s, tree); });
    }
    check(work, fmt::format("{}, k split and turned round", name(t)), [](Schedule& s) {
      s.split("k", 2);
      s.reorder({"k.i", "k.o"});
    });
  }
}

TEST_CASE("D23 nested reduction domains") {
  const Tensor x = input("X", f32, {3, 4});
  const Axis i("i", 2), j("j", 2), p("p", 2), q("q", 2);
  const Expr row = floor_div(Expr(i) * 3, 2) + p, column = Expr(j) * 2 + q;
  const Tensor c = compute("C", {i, j}, sum(sum(x(row, column), q), p) * 0.25);
  const Work work{{c},
                  {{"X", table<float>({3, 4}, [](int64_t n) { return 10 + n; })}},
                  {from_vector<float>({2, 2}, {12.5f, 14.5f, 16.5f, 18.5f})}};
  check_schedules(work, "sum of sums");

  const Axis a("a", 2), b("b", 2), u("u", 2), v("v", 2);
  const Tensor inner =
      compute("inner", {a, b, u}, sum(x(floor_div(Expr(a) * 3, 2) + u, Expr(b) * 2 + v), v));
  const Axis a2("a", 2), b2("b", 2), u2("u", 2);
  const Tensor outer = compute("outer", {a2, b2}, sum(inner(a2, b2, u2), u2));
  const Axis a3("a", 2), b3("b", 2);
  const Tensor mean = compute("mean", {a3, b3}, outer(a3, b3) * 0.25);
  const Work staged{{mean}, work.inputs, work.want};
  check_schedules(staged, "two stages");
  check(staged, "the inner sum inside the outer one", [](Schedule& s) {
    s["outer"].compute_at("mean", "b");
    s["inner"].compute_at("outer", s["outer"].loops().back().name);
  });
}

TEST_CASE("D24 variance in two passes") {
  const Tensor x = input("X", f32, {2, 3});
  const Axis i("i", 2), k("k", 3), i2("i", 2), k2("k", 3);
  const Tensor mean = compute("mean", {i}, sum(x(i, k), k) / 3.0);
  const Expr gap = x(i2, k2) - mean(i2);
  const Tensor var = compute("var", {i2}, sum(gap * gap, k2) / 3.0);
  const Work work{
      {var},
      {{"X", from_vector<float>({2, 3}, {1e4f, 1e4f + 1, 1e4f + 2, 1e4f, 1e4f + 1, 1e4f + 2})}},
      {full(f32, {2}, 2.0 / 3)},
      1e-4};
  check_schedules(work, "mean, then squares");
  check(work, "mean inside the row", [](Schedule& s) { s["mean"].compute_at("var", "i"); },
        {true, {}});
}

TEST_CASE("D25 combiner that does not commute") {
  const int64_t n = 6, depth = 7;
  const Tensor x = input("X", i32, {n, depth, depth});
  const auto later = combiner(
      "later", int_imm(0, i32), [](Expr, Expr b) { return b; }, Commutes::no);
  const Axis i("i", n), k("k", depth), l("l", depth);
  const Tensor c = compute("C", {i}, reduce(later, x(i, k, l), {k, l}));
  const auto in = [](int64_t q) { return q * 17 % 101; };
  const Work work{
      {c},
      {{"X", table<int32_t>({n, depth, depth}, in)}},
      {table<int32_t>({n}, [&](int64_t q) { return in((q + 1) * depth * depth - 1); })}};
  check_schedules(work, "later");
  check(work, "split", [](Schedule& s) {
    s.split("l", 3);
    s.split("k", 4);
  });
  check(work, "fused", [](Schedule& s) { s.fuse("k", "l"); });
  refused({c}, "parallel", [](Schedule& s) { s.parallel("k"); }, {"parallel(C, \"k\")"});
  refused({c}, "parallel inside", [](Schedule& s) { s.parallel("l"); }, {"parallel(C, \"l\")"});
  refused({c}, "vectorised", [](Schedule& s) { s.vectorize("l"); }, {"vectorize(C, \"l\")"});
  refused({c}, "rfactor outside", [](Schedule& s) { s["C"].rfactor("k"); },
          {"rfactor(C, \"k\")", "later"});
  refused({c}, "rfactor inside", [](Schedule& s) { s["C"].rfactor("l"); },
          {"rfactor(C, \"l\")", "later"});
  refused({c}, "reorder", [](Schedule& s) { s.reorder({"l", "k"}); }, {"reorder(C", "later"});
  refused({c}, "reorder of the parts",
          [](Schedule& s) {
            s.split("k", 4);
            s.reorder({"k.i", "k.o"});
          },
          {"reorder(C", "later"});
  check(work, "the spatial loop inside", [](Schedule& s) { s.reorder({"k", "l", "i"}); });
}

TEST_CASE("D26 sums in fp16") {
  const int64_t n = 4096;
  const Tensor x = input("X", f16, {2, n});
  const Axis i("i", 2), k("k", n), p("p", 2), q("q", n);
  const Tensor narrow = compute("narrow", {i}, sum(x(i, k), k));
  const Tensor wide = compute("wide", {p}, sum(cast(f32, x(p, q)), q));
  Work work{
      {narrow, wide}, {{"X", full(f16, {2, n}, 1)}}, {full(f16, {2}, 2048), full(f32, {2}, 4096)}};
  work.random_schedules = false;  // rfactor sums in another order
  check_schedules(work, "ones");
  check(work, "parts of the wide sum", [](Schedule& s) {
    s["wide"].split("q", 32);
    s["wide"].rfactor("q.i");
  });
  check(work, "reduction outside", [](Schedule& s) {
    s["narrow"].split("k", 32);
    s["narrow"].reorder({"k.o", "k.i", "i"}).vectorize("i", {Tail::mask});
    s["wide"].split("q", 32);
    s["wide"].reorder({"q.o", "q.i", "p"}).vectorize("p", {Tail::mask});
  });
}

TEST_CASE("D27 predicated reduction") {
  const Tensor a = input("A", i32, {5, 5});
  const Axis i("i", 5), k("k", 5);
  const Tensor b = compute("B", {i}, sum(a(i, k), {k}, {.condition = Expr(k) <= i}));
  const Work work{{b},
                  {{"A", table<int32_t>({5, 5}, [](int64_t n) { return n + 1; })}},
                  {from_vector<int32_t>({5}, {1, 13, 36, 70, 115})}};
  check_schedules(work, "k <= i");
  check(work, "k split by 4", [](Schedule& s) { s.split("k", 4); });
  check(work, "k split by 4, i vectorised inside", [](Schedule& s) {
    s.split("k", 4);
    s.reorder({"k.o", "k.i", "i"}).vectorize("i", {Tail::mask});
  });
  check(work, "k split by 4, peeled", [](Schedule& s) {
    s.split("k", 4);
    s.partition("k.o").unroll("k.i");
  });
  check(work, "k split by 4 and vectorised",
        [](Schedule& s) { s.vectorize(s.split("k", 4).inner); },
        {true, {"vectorize", "\"k.i\"", "rfactor"}});
}

TEST_CASE("D28 vectorised float reduction") {
  const int64_t n = 67;
  const Tensor x = input("X", f32, {3, n});
  const Axis i("i", 3), k("k", n);
  const Tensor c = compute("C", {i}, sum(x(i, k), k));
  const auto in = [](int64_t m) { return m * 31 % 17 - 5; };
  const Work work{{c}, {{"X", table<float>({3, n}, in)}}, {table<float>({3}, [&](int64_t m) {
                    int64_t total = 0;
                    for (int64_t q = 0; q < 67; ++q) total += in(m * 67 + q);
                    return total;
                  })}};
  check_default(work, "3x67");
  const CheckOptions may = {true, {"vectorize"}};
  check(
      work, "vectorised", [](Schedule& s) { s.vectorize("k"); }, may);
  check(
      work, "vectorised with a mask", [](Schedule& s) { s.vectorize("k", {Tail::mask}); }, may);
  check(
      work, "split and vectorised", [](Schedule& s) { s.vectorize(s.split("k", 16).inner); }, may);
  check(
      work, "split and vectorised outside",
      [](Schedule& s) { s.vectorize(s.split("k", 5).outer, {Tail::mask}); }, may);
  check(work, "parallel", [](Schedule& s) { s.parallel("k"); }, {true, {"parallel", "\"k\""}});
  check_gpu(work, "bound", [](Schedule& s) { s.bind("k", ThreadAxis::thread_x); },
            {true, {"bind needs a spatial loop", "rfactor(C, \"k\") first"}});
  check_gpu(work, "bound behind rfactor", [](Schedule& s) {
    s["C"].split("k", 32);
    const std::string part = s["C"].rfactor("k.i");
    s["C"].bind("i", ThreadAxis::block_x);
    s[part].compute_at("C", "i");
    s[part].bind("k.i", ThreadAxis::thread_x);
    s.set_scope("C.rf", Scope::shared);
  });
}
