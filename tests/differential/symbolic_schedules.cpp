#include <tenon/ir/bind_symbols.h>
#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "formulas.h"
#include "interp/interp.h"
#include "tests/fuzz/random_step.h"
#include "tests/fuzz/symbolic_formula.h"

// One kernel for all sizes: formulas of symbolic extents under random schedules, compiled once and
// called at many sizes, beside the interpreter on the unscheduled program, on data flush against
// forbidden pages. All data is i32, so results are equal.

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr int64_t kPrograms = 250;
constexpr int kSizesPerProgram = 8;

using Sizes = std::map<std::string, int64_t>;

std::vector<Array> make_data(const Program& p, const Sizes& sizes, GuardAt at) {
  std::vector<Array> out;
  uint64_t seed = 5;
  for (const Param& param : bind_symbols(p, sizes).params) {
    const Shape shape = const_shape(param.buffer->shape).value();
    out.push_back(param.role == ParamRole::output
                      ? guarded_array(param.buffer->dtype, shape, at)
                      : guarded_copy(random(param.buffer->dtype, shape, seed++), at));
  }
  return out;
}

/// Where the kernel gives other values than the formula; empty when nowhere.
std::string difference(const Program& formula, const Kernel& kernel, const Sizes& sizes,
                       GuardAt at) {
  static ThreadPool pool(2);
  const std::vector<Array> want = make_data(formula, sizes, at),
                           got = make_data(formula, sizes, at);
  std::vector<HostBuffer> buffers;
  for (const Array& a : want) buffers.push_back({a.raw()});
  interpret(formula, buffers, {.dims = sizes});
  kernel.run(got, pool);
  std::string out;
  for (size_t k = 0; k < want.size(); ++k) {
    if (want[k].bytes() && std::memcmp(want[k].raw(), got[k].raw(), want[k].bytes()) != 0) {
      out += formula.params[k].buffer->name + " differs at";
      for (const auto& [name, size] : sizes) out += fmt::format(" {} = {}", name, size);
    }
  }
  return out;
}

void check(const Program& formula, const Kernel& kernel, Rng& rng) {
  for (int k = 0; k < kSizesPerProgram; ++k) {
    const Sizes sizes = random_sizes(formula, rng);
    CHECK(difference(formula, kernel, sizes, k % 2 ? GuardAt::start : GuardAt::end) == "");
  }
}

}  // namespace

TEST_CASE("one kernel of a random schedule is right at every size") {
  const std::vector<Target> targets = runnable_targets();
  const char* only = std::getenv("TENON_CASE");
  const int64_t first = only ? std::atoll(only) : 0, last = only ? first + 1 : kPrograms;
  int64_t refused = 0, sized_at_call = 0;
  for (int64_t n = first; n < last; ++n) {
    Rng rng(static_cast<uint64_t>(n) + 20261201);
    const SymbolicFormula f = symbolic_formula(rng);
    const Target& target = targets[static_cast<size_t>(n) % targets.size()];
    Schedule s(f.program, target);
    if (n % 4 == 0) {
      Knobs knobs(rng);
      generic_template(s, knobs);
    }
    const int64_t attempts = rng.between(4, 24);
    for (int64_t k = 0; k < attempts; ++k) s.try_apply(random_step(s, rng));
    INFO("TENON_CASE=" << n << " " << target.name << "\n" << to_cpp(s.trace()) << s.print());
    try {
      const Kernel kernel = compile(s.program(), target);
      sized_at_call += kernel.module().workspace_of != nullptr;
      check(f.program, kernel, rng);
    } catch (const UserError& e) {  // registers; code generation has no reason of its own
      CHECK_THAT(e.what(), Catch::StartsWith("lower error in"));
      ++refused;
    }
  }
  std::cout << fmt::format(
      "differential: {} of {} symbolic programs refused by lower, {} with a workspace sized at the "
      "call\n",
      refused, last - first, sized_at_call);
  if (only) return;
  CHECK(refused * 4 < last - first);
  CHECK(sized_at_call > 20);
}

TEST_CASE("D05 one kernel, split by 8 and vectorised, runs for 0 to 70") {
  const Var n = symbol("n");
  const Tensor x = input("x", i32, {n});
  const Axis i("i", n);
  const Program p =
      make_program("p", {compute("y", {i}, x(i) * int_imm(3, i32) + int_imm(1, i32))});
  for (const Target& target : runnable_targets()) {
    Schedule s(p, target);
    s.split("i", 8);
    s.vectorize("i.i", {.tail = Tail::mask});
    const Kernel kernel = compile(s.program(), target);
    for (int64_t size = 0; size <= 70; ++size) {
      for (GuardAt at : {GuardAt::start, GuardAt::end}) {
        INFO(target.name);
        CHECK(difference(p, kernel, {{"n", size}}, at) == "");
      }
    }
  }
}

TEST_CASE("a call is refused in words where its extents do not agree or leave the range") {
  const Var m = symbol("m", {.low = 1, .high = 32}), n = symbol("n");
  const Tensor a = input("A", f32, {m, 4}), b = input("B", f32, {4, Expr(n) + 1});
  const Axis i("i", m), j("j", Expr(n) + 1), k("k", 4);
  const Kernel kernel = compile(
      make_program("mm", {compute("C", {i, j}, sum(a(i, k) * b(k, j), k))}), Target::host());
  const auto call = [&](int64_t rows, int64_t columns, int64_t out_rows, int64_t out_columns) {
    kernel(zeros(f32, {rows, 4}), zeros(f32, {4, columns}), zeros(f32, {out_rows, out_columns}));
  };
  CHECK_NOTHROW(call(3, 5, 3, 5));
  CHECK_THROWS_WITH(call(3, 5, 4, 5), Catch::Contains("C has m = 4, but A has m = 3"));
  CHECK_THROWS_WITH(call(3, 5, 3, 6), Catch::Contains("C has n + 1 = 6, but B has n = 4"));
  CHECK_THROWS_WITH(call(33, 5, 33, 5), Catch::Contains("extent 0 (m) must be in 1 to 32"));
  CHECK_THROWS_WITH(call(0, 5, 0, 5), Catch::Contains("extent 0 (m) must be in 1 to 32"));
  CHECK_THROWS_WITH(call(3, 0, 3, 0), Catch::Contains("extent 1 (n + 1) must be in 1 to 1048577"));
}

TEST_CASE("temporaries of symbolic extents get a workspace of the call's size") {
  const Var m = symbol("m"), n = symbol("n");
  const Tensor x = input("x", f32, {m, n});
  const Axis i("i", m), j("j", n), u("u", m), k("k", n);
  const Tensor e = compute("E", {i, j}, exp(x(i, j)));
  const Kernel kernel =
      compile(make_program("rows", {compute("Y", {u}, sum(e(u, k), k))}), Target::host());
  REQUIRE(kernel.module().workspace_of != nullptr);
  const int64_t small[] = {3, 5}, large[] = {100, 200};
  CHECK(kernel.module().workspace_total(1, small) == 64);
  CHECK(kernel.module().workspace_total(1, large) == 80000);
  const Array big = full(f32, {100, 200}, 0), sums = zeros(f32, {100});
  kernel(big, sums);
  CHECK(sums.to_doubles() == std::vector<double>(100, 200.0));
}
