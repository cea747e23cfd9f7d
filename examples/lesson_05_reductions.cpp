// Lesson 5: reductions of one's own, scatters and scans.
//
// A reduction says how two partial results join and what it starts from. A scatter adds parts where
// a tensor says. A scan makes each element from the one before. Schedules know the difference: what
// would change the result is refused.
#include <tenon/tenon.h>

#include <cstdio>

using namespace tenon;

namespace {

/// A step that must be refused; prints why.
template <class F>
bool refused(F&& step) {
  try {
    step();
  } catch (const ScheduleError& e) {
    std::printf("refused:\n%s\n\n", e.what());
    return true;
  }
  return false;
}

/// Two numbers at once: the largest element and the sum, of the points with k <= i, from a start.
bool tuple_reduction() {
  const Tensor x = input("x", i32, {4, 4});
  const Axis i("i", 4), k("k", 4);
  const auto both = tuple_combiner(
      "largest_and_sum", {int_imm(min_int(i32), i32), int_imm(0, i32)},
      [](const std::vector<Expr>& a, const std::vector<Expr>& b) {
        return std::vector<Expr>{max(a[0], b[0]), a[1] + b[1]};
      },
      Commutes::yes);
  const auto y = compute_tuple(
      "y", {i},
      reduce_tuple(both, {x(i, k), x(i, k)}, {k}, {.start = {0, 100}, .condition = k <= i}));
  const Kernel kernel = compile(make_program("tuple", y), Target::host());
  Array in = full(i32, {4, 4}, 1), largest = zeros(i32, {4}), total = zeros(i32, {4});
  kernel(in, largest, total);
  std::printf("row 3: largest %d, sum from 100 %d\n\n", largest.data<int32_t>()[3],
              total.data<int32_t>()[3]);
  return largest.data<int32_t>()[3] == 1 && total.data<int32_t>()[3] == 104;
}

/// A fold that does not commute runs in the order of its axes.
bool ordered_fold() {
  const Tensor x = input("x", i32, {3, 5});
  const Axis j("j", 3), k("k", 5);
  const auto later = combiner(
      "keep_later", int_imm(0, i32), [](Expr, Expr rhs) { return rhs; }, Commutes::no);
  Schedule s(make_program("fold", {compute("last", {}, reduce(later, x(j, k), {j, k}))}),
             Target::host());
  return refused([&] { s.reorder({"k", "j"}); });
}

/// How often each of 0 .. 6 occurs; numbers outside are dropped.
bool histogram() {
  const Tensor x = input("x", i32, {1000});
  const Axis b("b", 7), i("i", 1000);
  Schedule s(make_program("histogram", {scatter("H", {b}, int_imm(0, i32), {i}, {x(i)}, 1)}),
             Target::host());
  const bool kept = refused([&] { s["H"].parallel("i"); });
  const Kernel kernel = compile(s.program(), Target::host());
  Array in = full(i32, {1000}, 3), out = zeros(i32, {7});
  in.data<int32_t>()[0] = 7;
  kernel(in, out);
  std::printf("threes: %d\n\n", out.data<int32_t>()[3]);
  return kept && out.data<int32_t>()[3] == 999;
}

/// Running sums of 8 rows: the rows are free, the axis along which they run is not.
bool running_sums() {
  const Tensor x = input("x", i32, {8, 100});
  const Axis i("i", 8), t("t", 100);
  Schedule s(make_program("sums", {scan("S", {i, t}, t, x(i, t),
                                        [&](Expr before) { return before + x(i, t); })}),
             Target::host());
  const bool kept = refused([&] { s.vectorize("t", {Tail::mask}); });
  s.reorder({"t", "i"}).vectorize("i", {Tail::mask});
  std::printf("%s\n", s.print().c_str());
  const Kernel kernel = compile(s.program(), Target::host());
  Array in = full(i32, {8, 100}, 2), out = zeros(i32, {8, 100});
  kernel(in, out);
  std::printf("last sum: %d\n", out.data<int32_t>()[799]);
  return kept && out.data<int32_t>()[799] == 200;
}

}  // namespace

int main() {
  const bool good = tuple_reduction() && ordered_fold() && histogram() && running_sums();
  return good ? 0 : 1;
}
