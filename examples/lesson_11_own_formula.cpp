// Lesson 11: a formula of your own, tuned without a template.
//
// The squared distance between each row of A and each row of B: no library has it, and no template
// was written for it. The rules that write sketches look at the shape of the formula alone. The
// winner is compared with a schedule by hand, in turns.
#include <tenon/tenon.h>

#include <cstdio>

using namespace tenon;

namespace {

constexpr int kM = 384, kN = 512, kK = 256;

Tensor distances() {
  Tensor A = input("A", f32, {kM, kK}), B = input("B", f32, {kN, kK});
  Axis i("i", kM), j("j", kN), k("k", kK);
  Expr apart = A(i, k) - B(j, k);
  return compute("D", {i, j}, sum(apart * apart, k));
}

/// What an engineer would write: a tile of 6 rows and 4 vectors in registers, B turned so that
/// vectors run along its rows, threads over columns.
Schedule by_hand(const Task& task) {
  Schedule s(task.program, task.target);
  const int64_t lanes = task.target.lanes(f32);
  auto [io, ii] = s.split("i", 6);
  auto [jo, ji] = s.split("j", 4 * lanes);
  s.reorder({jo, io, "k", ii, ji});
  const std::string store = s.cache_write(io, {Scope::reg}).store;
  s[store].unroll("i").vectorize("j", {Tail::mask});
  const std::string turned = s["D"].cache_read("B", jo, {.layout = {{1, 1, 0}, {0, 1, 0}}});
  s[turned].reorder({"k", "j"}).vectorize("j", {Tail::mask});
  s["D"].unroll(ii).vectorize(ji, {Tail::mask}).parallel(jo);
  return s;
}

}  // namespace

int main() {
  const Task task("distances", distances(), Target::host());
  const TuneOptions options{.trials = 64, .time_s = 20, .log = "tuning_logs/lesson_11.jsonl"};
  const TuneReport report = tune_with_report(task, options);
  const Record& best = report.best.record;
  std::printf("%s found in %lld trials, %.1f s: %s\n", best.template_name.c_str(),
              static_cast<long long>(report.trials), report.seconds, best.knobs.c_str());

  const std::vector<NamedTrace> schedules = {{"by hand", by_hand(task).trace()},
                                             {"tuned", trace_from_json(best.trace)}};
  const std::vector<BenchRow> rows = bench(task, schedules, {.threads = task.target.cores});
  std::printf("%s", bench_table(rows).c_str());
  std::printf("tuned: %.0f%% of the hand schedule's speed\n",
              100 * rows[0].median_us / rows[1].median_us);
  return 0;
}
