// Lesson 8: one kernel for all sizes.
//
// A symbolic extent is a dimension that is known at the call only. It has a declared range, is
// bound by the first array that has it and checked on the others. Steps that need a number are
// refused with what to do instead; a split leaves its rest to a guard, so that tails are right at
// every size.
#include <tenon/tenon.h>

#include <cstdio>

using namespace tenon;

int main() {
  const Var m = symbol("m", {.low = 0, .high = 4096});
  const Tensor A = input("A", f32, {m, 64}), B = input("B", f32, {64, 48});
  const Axis i("i", m), j("j", 48), k("k", 64), y("y", m), x("x", 48);
  const Tensor C = compute("C", {i, j}, sum(A(i, k) * B(k, j), k));
  const Tensor D = compute("D", {y, x}, max(C(y, x), 0.0));
  const Program program = make_program("any_rows", {D});

  Schedule s(program, Target::host());
  try {
    s["C"].unroll("i");
  } catch (const ScheduleError& e) {
    std::printf("refused:\n%s\n\n", e.what());
  }
  // Tiles of 4 rows: the last one of an odd m is guarded.
  s["C"].split("i", 4);
  s["C"].reorder({"i.o", "k", "i.i", "j"});
  s["C"].cache_write("i.o");
  s["D"].reverse_compute_at("C.store", "i.o");
  s["C"].parallel("i.o");
  s["C"].vectorize("j", {.tail = Tail::mask});
  std::printf("%s\n", s.print().c_str());

  const Kernel kernel = compile(s.program(), Target::host());
  bool right = true;
  for (const int64_t rows : {0, 1, 3, 64, 1001}) {
    const Array a = full(f32, {rows, 64}, 0.5), b = full(f32, {64, 48}, 2),
                d = zeros(f32, {rows, 48});
    kernel(a, b, d);
    for (const double value : d.to_doubles()) right = right && value == 64;
    std::printf("%lld rows: %s\n", static_cast<long long>(rows), right ? "right" : "WRONG");
  }
  try {
    kernel(zeros(f32, {7, 64}), zeros(f32, {64, 48}), zeros(f32, {8, 48}));
    right = false;
  } catch (const UserError& e) {
    std::printf("refused:\n%s\n\n", e.what());
  }

  // Schedules are measured at a sample size; the winner's kernel serves all others.
  Task task("any_rows", D, Target::host());
  task.sample_sizes = {{"m", 128}};
  const Kernel standard = compile(default_schedule(task).program(), task.target);
  const Array a = full(f32, {5, 64}, 1), b = full(f32, {64, 48}, 1), d = zeros(f32, {5, 48});
  standard(a, b, d);
  right = right && d.to_doubles() == std::vector<double>(5 * 48, 64.0);
  std::printf("%s\n", right ? "one kernel, all sizes" : "something is wrong");
  return right ? 0 : 1;
}
