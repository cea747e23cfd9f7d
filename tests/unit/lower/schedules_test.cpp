#include <tenon/schedule/schedule.h>
#include <tenon/support/error.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>

#include "interp/interp.h"
#include "lower/lower.h"
#include "run.h"

using namespace tenon;

namespace {

Target wide() { return Target::parse("x86-64/avx512"); }

// relu(A*B + bias)
Program product(int64_t m, int64_t n, int64_t depth) {
  Tensor a = input("A", f32, {m, depth}), b = input("B", f32, {depth, n}), s = input("S", f32, {n});
  Axis i("i", m), j("j", n), k("k", depth), y("y", m), x("x", n);
  Tensor c = compute("C", {i, j}, sum(a(i, k) * b(k, j), k));
  Tensor d = compute("D", {y, x}, max(c(y, x) + s(x), float_imm(0)));
  return make_program("product", {d});
}

// A 3x3 filter over a padded image, its channels last.
Program filter(int64_t height, int64_t width, int64_t channels) {
  Tensor in = input("X", f32, {height, width, channels}), f = input("F", f32, {3, 3, channels});
  Axis py("py", height + 2), px("px", width + 2), pc("pc", channels);
  const Expr y0 = Expr(py) - 1, x0 = Expr(px) - 1;
  Tensor padded = compute(
      "P", {py, px, pc},
      select(y0 >= 0 && y0 < Expr(height) && x0 >= 0 && x0 < Expr(width), in(y0, x0, pc), 0.0));
  Axis y("y", height), x("x", width), c("c", channels), r("r", 3), s("s", 3);
  Tensor out = compute(
      "Y", {y, x, c},
      sum(padded(Expr(y) + Expr(r), Expr(x) + Expr(s), c) * f(r, s, c), std::vector<Axis>{r, s}));
  return make_program("filter", {out});
}

// exp(x - max of the row) / its sum
Program normalise(int64_t rows, int64_t columns) {
  Tensor x = input("X", f32, {rows, columns});
  Axis a("a", rows), k("k", columns), b("b", rows), l("l", columns), i("i", rows), j("j", columns),
      p("p", rows), q("q", columns);
  Tensor top = compute("M", {a}, reduce_max(x(a, k), std::vector<Axis>{k}));
  Tensor e = compute("E", {p, q}, exp(x(p, q) - top(p)));
  Tensor total = compute("T", {b}, sum(e(b, l), l));
  Tensor out = compute("O", {i, j}, e(i, j) / total(i));
  return make_program("normalise", {out});
}

// Random steps; those that are not legal are passed over.
class Scheduler {
 public:
  Scheduler(Program program, uint64_t seed) : schedule_(std::move(program), wide()), rng_(seed) {}

  const Schedule& run(int steps) {
    for (int k = 0; k < steps; ++k) (void)schedule_.try_apply(step());
    return schedule_;
  }

 private:
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(rng_.below(static_cast<int64_t>(from.size())))];
  }
  std::string loop_of(const std::string& stage) {
    const std::vector<Loop> loops = schedule_[stage].loops();
    return loops.empty() ? "none" : pick(loops).name;
  }
  std::string buffer() {
    std::vector<std::string> names;
    for (const Param& p : schedule_.program().params) names.push_back(p.buffer->name);
    for (const std::string& s : schedule_.stages()) names.push_back(s);
    return pick(names);
  }
  Primitive step() {
    const std::string stage = pick(schedule_.stages()), loop = loop_of(stage),
                      other = loop_of(stage), at_stage = pick(schedule_.stages());
    const Scope scope = rng_.chance(0.4) ? Scope::reg : Scope::global;
    switch (rng_.below(14)) {
      case 0:
      case 1:
      case 2:
        return Split{stage, loop, pick(std::vector<int64_t>{2, 3, 4, 6, 16, 32}), Tail::guard};
      case 3:
        return Fuse{stage, loop, other};
      case 4:
      case 5:
        return Reorder{stage, {loop, other}};
      case 6:
        return Parallel{stage, loop};
      case 7:
        return Vectorize{stage, loop, Tail::mask};
      case 8:
        return Unroll{stage, loop};
      case 9:
        return Partition{stage, loop};
      case 10:
        return ComputeAt{stage, at_stage, loop_of(at_stage)};
      case 11:
        return ReverseComputeAt{stage, at_stage, loop_of(at_stage)};
      case 12:
        return CacheRead{stage, buffer(), loop, scope, {}};
      default:
        return CacheWrite{stage, loop, scope};
    }
  }

  Schedule schedule_;
  Rng rng_;
};

}  // namespace

TEST_CASE("every pass keeps the meaning of a product blocked in three axes and packed") {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{12, 64, 32}, {13, 75, 37}}) {
    Schedule s(product(m, n, k), wide());
    auto c = s["C"];
    auto [io, ii] = c.split("i", 6);
    auto [jo, ji] = c.split("j", 32);
    auto [ko, ki] = c.split("k", 16);
    c.reorder({jo, io, ko, ki, ii, ji});
    c.cache_write(io, {Scope::reg});
    c.cache_read("B", jo, {Scope::global, {{1, 32, 0}, {0, 1, 0}, {1, 1, 32}}});
    s["D"].reverse_compute_at("C", io.name);
    c.vectorize(ji, {Tail::mask}).unroll(ii).parallel(jo);
    s["C.store"].vectorize("j", {Tail::mask}).unroll("i");
    s["D"].vectorize("x", {Tail::mask});
    INFO(s.print());
    check_every_pass(s.program(), wide());
  }
}

TEST_CASE("every pass keeps the meaning of padded rows, copies ahead and prefetches") {
  for (const auto& [m, n, k] :
       std::vector<std::array<int64_t, 3>>{{12, 64, 32}, {13, 75, 37}, {5, 9, 1}, {5, 9, 0}}) {
    Schedule s(product(m, n, k), wide());
    auto c = s["C"];
    auto [io, ii] = c.split("i", 6);
    auto [ko, ki] = c.split("k", 16);
    c.reorder({io, ko, ki, ii, "j"});
    c.cache_read("B", ko, {Scope::global, {{1, 32, 0}, {0, 1, 0}, {1, 1, 32}}});
    c.cache_read("A", ko);
    s.storage_align("B.cache", 0, 48, 5).storage_align("B.cache", 1, 7, 3);
    s.storage_align("A.cache", 0, 16, 1);
    c.double_buffer("B.cache", ko).double_buffer("A.cache", ko);
    if (k > 1) s["B.cache"].prefetch("B", "k", 3);
    if (k > 1) c.prefetch("A.cache", ki, 2);
    c.vectorize("j", {Tail::mask}).parallel(io);
    s["B.cache"].vectorize("j", {Tail::mask});
    INFO(s.print());
    check_every_pass(s.program(), wide());
  }
}

TEST_CASE("the lines of the next panel are shared out over the steps of all row tiles") {
  for (const auto& [m, n, k] :
       std::vector<std::array<int64_t, 3>>{{12, 128, 32}, {13, 75, 37}, {5, 40, 1}}) {
    Schedule s(product(m, n, k), wide());
    auto c = s["C"];
    auto [io, ii] = c.split("i", 4);
    auto [jo, ji] = c.split("j", 32);
    auto [ko, ki] = c.split("k", 4);
    c.reorder({jo, io, ko, ki, ii, ji});
    c.prefetch("B", jo, 1, {.over = ko});
    c.unroll(ki).vectorize(ji, {Tail::mask});
    INFO(s.print());
    CHECK(print(lower(s.program(), wide())).find("prefetch B") != std::string::npos);
    check_every_pass(s.program(), wide());
  }
}

TEST_CASE("the part of a prefetch that is dropped goes, too") {
  Schedule s(product(5, 9, 4), wide());
  s["D"].prefetch("C", "y", 1, {.over = "x"});
  CHECK(print(lower(s.program(), wide())).find("prefetch C") != std::string::npos);
  s["C"].compute_at("D", "y");
  CHECK(print(lower(s.program(), wide())).find("prefetch") == std::string::npos);
  check_every_pass(s.program(), wide());
}

TEST_CASE("a prefetch of what a later step computes inside the loop is dropped") {
  Schedule s(product(5, 9, 4), wide());
  s["D"].prefetch("C", "y", 2);
  CHECK(print(lower(s.program(), wide())).find("prefetch C") != std::string::npos);
  s["C"].compute_at("D", "y");
  CHECK(print(lower(s.program(), wide())).find("prefetch C") == std::string::npos);
  check_every_pass(s.program(), wide());
}

TEST_CASE("a prefetch reads no indices of later iterations") {
  const Tensor x = input("X", f32, {5, 40}), idx = input("idx", i32, {6});
  const Axis i("i", 6), j("j", 40);
  Schedule s(make_program("gather", {compute("G", {i, j}, x(cast(i64, idx(i)), j))}), wide());
  s.reorder({"j", "i"});
  s.prefetch("X", "j", 4);
  const std::string text = print(lower(s.program(), wide()));
  CHECK(text.find("prefetch X[") != std::string::npos);
  for (size_t at = text.find("prefetch"); at != std::string::npos;
       at = text.find("prefetch", at + 1))
    CHECK(text.substr(at, text.find('\n', at) - at).find("idx") == std::string::npos);
}

TEST_CASE("a loop annotated with no_partition keeps its guard") {
  Schedule s(product(13, 16, 4), wide());
  s["C"].split("i", 4);
  const std::string cut = print(lower(s.program(), wide()));
  s["C"].annotate("i.o", "no_partition", 1);
  const std::string whole = print(lower(s.program(), wide()));
  CHECK(cut.find("if ") == std::string::npos);
  CHECK(whole.find("if i.o < 3") != std::string::npos);
  CHECK(whole.find("for i.o in 0..4") != std::string::npos);
  check_every_pass(s.program(), wide());
}

TEST_CASE("every pass keeps the meaning of random schedules") {
  int lowered = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 240; ++seed) {
    INFO("seed " << seed);
    Rng rng(seed);
    const auto size = [&](int64_t high) { return rng.between(1, high); };
    const Program p = seed % 3 == 0   ? product(size(14), size(70), size(9))
                      : seed % 3 == 1 ? filter(size(7), size(9), size(20))
                                      : normalise(size(9), size(50));
    Scheduler scheduler(p, seed);
    const Schedule& s = scheduler.run(12);
    CAPTURE(to_cpp(s.trace()));
    try {
      check_every_pass(s.program(), wide(), seed % 5 == 0 ? 100 : 4000);
      ++lowered;
    } catch (const UserError& e) {
      // Register buffers that are too large, indexed at run time or used by lanes and by elements.
      CAPTURE(e.what());
      CHECK(std::string(e.what()).find("register buffer") != std::string::npos);
      ++refused;
    }
  }
  CAPTURE(refused);
  CHECK(lowered >= 180);
}
