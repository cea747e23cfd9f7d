#include <tenon/compile/compile.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/runtime/module.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "case_harness.h"
#include "codegen/llvm/codegen.h"
#include "lower/lower.h"
#include "schedule/tree.h"

// Inlining, in-place, storage.

using namespace tenon;
using namespace tenon::cases;

TEST_CASE("D29 producer with two consumers inlined") {
  const Tensor x = input("X", i32, {19, 23});
  const Axis p("p", 19), q("q", 23), i("i", 19), j("j", 23), u("u", 19), v("v", 23);
  const Tensor a = compute("A", {p, q}, x(p, q) * 3 + 1);
  const Tensor b = compute("B", {i, j}, a(i, j) + 5);
  const Tensor c = compute("C", {u, v}, a(u, v) * a(18 - Expr(u), v));
  const auto in = [](int64_t n) { return n % 41 - 20; };
  const auto av = [&](int64_t n) { return in(n)*3 + 1; };
  const Work work{{b, c},
                  {{"X", table<int32_t>({19, 23}, in)}},
                  {table<int32_t>({19, 23}, [&](int64_t n) { return av(n) + 5; }),
                   table<int32_t>({19, 23}, [&](int64_t n) {
                     return av(n) * av((18 - n / 23) * 23 + n % 23);
                   })}};
  check_default(work, "two readers");
  check(work, "inlined", [](Schedule& s) {
    s["A"].compute_inline();
    holds(!s.has_stage("A") && allocated(s.program().body).empty(), "schedule", "no buffer",
          s.print());
  });
  check(work, "inlined, vectorised", [](Schedule& s) {
    s["A"].compute_inline();
    split_and_vectorize(s);
  });
  refused({b, c}, "output inlined", [](Schedule& s) { s["B"].compute_inline(); },
          {"compute_inline(B)", "output"});
  refused({b, c}, "a reduction inlined", [](Schedule& s) { s["B"].compute_inline(); },
          {"compute_inline(B)"});
}

TEST_CASE("D30 chain of 60 stages") {
  const int64_t n = 4;
  const auto from = std::chrono::steady_clock::now();
  const Axis first("i", n + 60);
  Tensor f = compute("f0", {first}, int_imm(1, i64));
  for (int64_t k = 1; k <= 60; ++k) {
    const Axis i("i", n + 60 - k);
    f = compute("f" + std::to_string(k), {i}, f(i) + f(Expr(i) + 1));
  }
  const Work work{{f}, {}, {table<int64_t>({n}, [](int64_t) { return int64_t{1} << 60; })}};
  check_default(work, "60");
  check(work, "all inlined",
        [](Schedule& s) {
          for (int64_t k = 0; k < 60; ++k) s["f" + std::to_string(k)].compute_inline();
        },
        {true, {"compute_inline(f", "nodes"}});
  check(work, "all inlined from the end",
        [](Schedule& s) {
          for (int64_t k = 59; k >= 0; --k) s["f" + std::to_string(k)].compute_inline();
        },
        {true, {"compute_inline(f", "nodes"}});
  check(work, "as many inlined as may be", [](Schedule& s) {
    for (int64_t k = 0; k < 60; ++k) s.try_apply(ComputeInline{"f" + std::to_string(k)});
  });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  holds(seconds < 10, "schedule", "in time", fmt::format("{} s", seconds));
}

TEST_CASE("D31 name capture") {
  const int64_t n = 9, m = 7;
  const Tensor a = input("A", i32, {n, m});
  const Axis i("i", m), j("j", n), i2("i", n - 1), j2("j", m);
  const Tensor b = compute("B", {i, j}, a(j, i));
  const Tensor c = compute("C", {i2, j2}, b(j2, Expr(i2) + 1));
  const Work work{{c},
                  {{"A", table<int32_t>({n, m}, [](int64_t k) { return k; })}},
                  {table<int32_t>({n - 1, m}, [=](int64_t k) { return (k / m + 1) * m + k % m; })}};
  check_default(work, "equal names");
  check(work, "inlined", [](Schedule& s) { s["B"].compute_inline(); });
  check(work, "inlined and tiled", [](Schedule& s) {
    s["B"].compute_inline();
    s["C"].tile("i", "j", 3, 4);
    s["C"].vectorize("j.i");
  });

  // The same axis objects in both stages.
  const Axis k("i", n - 1), l("j", m);
  const Tensor b2 = compute("B", {k, l}, a(Expr(k) + 1, l));
  const Tensor c2 = compute("C", {l, k}, b2(k, l) * 2);
  const Work shared{{c2}, work.inputs, {table<int32_t>({m, n - 1}, [=](int64_t q) {
                      return 2 * ((q % (n - 1) + 1) * m + q / (n - 1));
                    })}};
  check_default(shared, "shared axes");
  check(shared, "shared axes, inlined", [](Schedule& s) { s["B"].compute_inline(); });
  check(shared, "shared axes, at the loop", [](Schedule& s) { s["B"].compute_at("C", "j"); });
}

TEST_CASE("D32 in place") {
  const int64_t n = 45;
  const auto compiled = [](const Backend& b, const Tensor& out, const Steps& steps) {
    Schedule s(make_program("inplace", {out}), b.target);
    steps(s);
    return b.prepare(s.program());
  };
  const std::vector<std::pair<std::string, Steps>> schedules = {
      {"unscheduled", [](Schedule&) {}},
      {"split and vectorize", split_and_vectorize},
      {"parallel", parallelize},
      {"unroll", unroll_inner}};
  for (DType t : {f32, i8, f64}) {
    const Tensor x = input("X", t, {n}), other = input("Y", t, {n});
    const Axis i("i", n), j("j", n), k("k", n);
    const Tensor next = compute("out", {i}, x(i) + imm(1, t));
    const Tensor product = compute("out", {j}, x(j) * other(j) + x(j));
    const Tensor stencil =
        compute("out", {k}, select(Expr(k) > 0, x(Expr(k) - 1), imm(0, t)) + x(k));
    const Array start = table_of(t, {n}, [](int64_t m) { return m % 13 - 6; });
    for (const Backend& b : backends()) {
      for (const auto& entry : schedules) {
        const Steps& steps = entry.second;
        const std::string label = fmt::format("{} {}", name(t), entry.first);
        Array a = start.copy();
        compiled(b, next, steps)({a, a}, {});
        holds(a.to_doubles() == table_of(t, {n}, [](int64_t m) { return m % 13 - 5; }).to_doubles(),
              b.name, label + ", A = A + 1", "wrong values");
        a = start.copy();
        compiled(b, product, steps)({a, full(t, {n}, 3), a}, {});
        holds(a.to_doubles() ==
                  table_of(t, {n}, [](int64_t m) { return (m % 13 - 6) * 4; }).to_doubles(),
              b.name, label + ", A = A * Y + A", "wrong values");
        if (!b.machine_code) continue;
        refused_call(b.name, label + ", stencil",
                     [&] {
                       compiled(b, stencil, steps)({a, a}, {});
                     },
                     {"output out overlaps argument X", "does not work in place"});
        const Array more = Array::empty(t, {n + 1});
        refused_call(b.name, label + ", overlapping by all but one",
                     [&] {
                       compiled(b, next, steps)({more.view(0, {n}), more.view(1, {n})}, {});
                     },
                     {"output out overlaps argument X", "only all of it"});
      }
    }
  }
}

TEST_CASE("D35 histogram") {
  const int64_t bins = 7;
  const auto in = [](int64_t k) { return (k * k + k / 7) % 7; };
  const auto work_of = [&](int64_t items) {
    const Tensor x = input("X", i32, {items});
    const Axis b("b", bins), i("i", items);
    std::vector<int32_t> counts(bins, 0);
    for (int64_t k = 0; k < items; ++k) ++counts[in(k)];
    return Work{{scatter("H", {b}, int_imm(0, i32), {i}, {x(i)}, int_imm(1, i32))},
                {{"X", table<int32_t>({items}, in)}},
                {from_vector<int32_t>({bins}, counts)},
                0,
                true,
                false,
                {},
                {{"X", {0, bins - 1}}}};
  };
  const Work small = work_of(1003), large = work_of(1000000);
  check_schedules(small, "1003 items");
  const CheckOptions may = {true, {"\"i"}};
  const Steps parallel = [](Schedule& s) { s["H"].parallel("i"); };
  const Steps vector = [](Schedule& s) { s["H"].vectorize(s["H"].split("i", 8).inner); };
  check(small, "source loop parallel", parallel, may);
  check(small, "source loop vectorised", vector, may);
  for (const Backend& b : backends()) {
    if (!b.machine_code) continue;
    check_on(b, large, "10^6 items", [](Schedule&) {});
    check_on(b, large, "10^6 items, source loop parallel", parallel, may);
  }
}

namespace {

/// Six temporaries of three types with interleaved lives, in the loops of two outputs, so that
/// those of the second may lie where those of the first were.
struct Temporaries {
  static constexpr int64_t kN = 53;
  std::vector<Tensor> outputs;

  Temporaries() {
    const Tensor x = input("X", i32, {kN});
    const auto map = [](const std::string& name, const std::function<Expr(Expr)>& f) {
      const Axis i("i", kN);
      return compute(name, {i}, f(i));
    };
    const auto t1 = map("t1", [&](Expr i) { return cast(f64, x(i)) * 0.5; });
    const auto t2 = map("t2", [&](Expr i) { return cast(i8, x(i)) + 3; });
    const auto t3 = map("t3", [&](Expr i) { return cast(f16, t1(i)) + cast(f16, t2(i)); });
    const auto first = map("first", [&](Expr i) { return cast(f32, t3(i)) - cast(f32, t1(i)); });
    const auto t4 = map("t4", [&](Expr i) { return cast(i8, x(i)) * 2; });
    const auto t5 = map("t5", [&](Expr i) { return cast(f16, t4(i)) * 0.25; });
    const auto t6 = map("t6", [&](Expr i) { return cast(f64, t5(i)) + cast(f64, t4(i)); });
    const auto second = map("second", [&](Expr i) { return cast(f32, t6(i) - cast(f64, t5(i))); });
    outputs = {first, second};
  }
  static int32_t x(int64_t n) { return static_cast<int32_t>(n % 23 - 11); }
  static float first(int64_t n) { return static_cast<float>(x(n) + 3); }
  static float second(int64_t n) { return static_cast<float>(2 * x(n)); }
};

void interleave(Schedule& s) {
  const std::string a = s["first"].split("i", 16).outer.name;
  for (const char* stage : {"t3", "t2", "t1"}) s[stage].compute_at("first", a);
  const std::string b = s["second"].split("i", 16).outer.name;
  for (const char* stage : {"t6", "t5", "t4"}) s[stage].compute_at("second", b);
}

}  // namespace

TEST_CASE("D33 storage reuse") {
  const int64_t n = Temporaries::kN;
  const Temporaries t;
  const Work work{t.outputs,
                  {{"X", table<int32_t>({n}, Temporaries::x)}},
                  {table<float>({n}, Temporaries::first), table<float>({n}, Temporaries::second)}};
  check_default(work, "six temporaries");
  check(work, "interleaved", interleave);
  check(work, "interleaved, marked", [](Schedule& s) {
    interleave(s);
    for (const std::string& stage : s.stages())
      s.try_apply(Vectorize{stage, s[stage].loops().back().name, Tail::mask});
    s["first"].parallel("i.o");
  });
  // The code generator's test mode: freed storage holds 0xff, with bytes shared and apart.
  for (const Backend& b : backends()) {
    if (!b.machine_code) continue;
    int64_t bytes[2] = {0, 0};
    for (bool reuse : {true, false}) {
      Schedule s(make_program("case", t.outputs), b.target);
      interleave(s);
      CodegenOptions options;
      options.reuse_workspace = reuse;
      options.poison = true;
      const ObjectCode code = generate_object(lower(s.program(), b.target), b.target, options);
      bytes[reuse] = code.workspace.shared;
      const LoadedCode loaded = load_object(code.bytes, code.symbol);
      const Array first = Array::empty(f32, {n}), second = Array::empty(f32, {n});
      void* const arguments[] = {work.inputs.at("X").raw(), first.raw(), second.raw()};
      Workspace workspace;
      const auto entry = reinterpret_cast<tenon_kernel>(loaded.entry);
      const int32_t status = entry(arguments, nullptr, workspace.reserve(code.workspace.shared),
                                   &ThreadPool::parallel_for_entry, &default_pool());
      holds(status == 0 && first.to_doubles() == work.want[0].to_doubles() &&
                second.to_doubles() == work.want[1].to_doubles(),
            b.name, reuse ? "poisoned, reused" : "poisoned, not reused", "wrong values");
    }
    holds(0 < bytes[1] && bytes[1] < bytes[0] && bytes[1] % 64 == 0, b.name, "bytes are shared",
          fmt::format("{} and {}", bytes[1], bytes[0]));
  }
}

TEST_CASE("D34 cache stages") {
  const int64_t m = 23, n = 31, depth = 17;
  const Tensor a = input("A", i32, {m, depth}), b = input("B", i32, {depth, n});
  const Axis i("i", m), j("j", n), k("k", depth);
  const Tensor c = compute("C", {i, j}, sum(a(i, k) * b(k, j), k));
  const auto av = [](int64_t q) { return q * 7 % 31 - 15; };
  const auto bv = [](int64_t q) { return q * 5 % 29 - 14; };
  const Work work{{c},
                  {{"A", table<int32_t>({m, depth}, av)}, {"B", table<int32_t>({depth, n}, bv)}},
                  {table<int32_t>({m, n}, [&](int64_t q) {
                    int64_t total = 0;
                    for (int64_t r = 0; r < depth; ++r)
                      total += av(q / n * depth + r) * bv(r * n + q % n);
                    return total;
                  })}};
  const auto tiled = [](Scope scope, bool k_outside, bool marks) {
    return [=](Schedule& s) {
      s["C"].tile("i", "j", 5, 7);
      s["C"].split("k", 4);
      if (k_outside) s["C"].reorder({"i.o", "j.o", "k.o", "i.i", "j.i", "k.i"});
      const std::string at = k_outside ? "k.o" : "j.o";
      s["C"].cache_read("B", at, {Scope::global, {{1}, {0}}});
      s["C"].cache_read("A", at, {Scope::global, {{1}, {0}}});
      const CacheWriteStages made = s["C"].cache_write(at, {scope});
      if (!marks) return;
      s["C"].parallel("i.o");
      s["C"].reorder({"k.i", "i.i", "j.i"}).unroll("i.i").vectorize("j.i", {Tail::mask});
      for (const std::string& stage : {made.load, made.store})
        if (!stage.empty()) s[stage].vectorize(s[stage].loops().back(), {Tail::mask});
    };
  };
  check_default(work, "23x31");
  check(work, "at the tile", tiled(Scope::global, false, false));
  check(work, "at the tile and k", tiled(Scope::global, true, false));
  check(work, "at the tile, marked", tiled(Scope::reg, false, true),
        {true, {"lower error", "register"}});
  check(work, "copies of the whole", [](Schedule& s) {
    s["C"].cache_read("B", "root", {Scope::global, {{1}, {0}}});
    s["C"].cache_read("A", "root", {Scope::global, {{1}, {0}}});
    s["C"].tile("i", "j", 5, 7);
  });
  check(work, "blocked layouts", [](Schedule& s) {
    s["C"].cache_read("B", "root", {Scope::global, {{1, 7}, {0}, {1, 1, 7}}});
    s["C"].cache_read("A", "root", {Scope::global, {{0, 5}, {1}, {0, 1, 5}}});
    s["C"].tile("i", "j", 5, 7);
    s["C"].reorder({"i.o", "j.o", "k", "i.i", "j.i"}).vectorize("j.i", {Tail::mask});
  });
}
