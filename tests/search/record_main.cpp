// Measures the whole space of each recorded task on this machine, one thread, and writes its log:
//
//   ninja -C build record_search_logs tenon-runner && build/bin/record_search_logs
//
// Run it on a quiet machine; the logs are checked in.
#include <fmt/format.h>
#include <tenon/support/error.h>

#include <cstdio>

#include "autotvm/session.h"
#include "search/recorded_tasks.h"

using namespace tenon;

int main() {
  try {
    Target target = Target::host();
    target.cores = 1;
    for (const RecordedTask& recorded : recorded_tasks(target)) {
      std::remove(recorded.log.c_str());
      TuneOptions options;
      options.trials = 100000;
      options.log = recorded.log;
      options.threads = 1;
      options.search = "grid";
      options.space = SpaceKind::templates;
      RunnerOptions timing;
      timing.threads = 1;
      timing.outpaced = 1e9;  // slow ones too are timed to the end
      TuneSession session(recorded.task, options, local_runner(recorded.task, timing));
      session.start();
      while (!session.finished()) session.run(16);
      const TuneReport report = session.finish();
      fmt::print("{}: {} points, default {:.1f} us, best {:.1f} us\n", recorded.task.name,
                 report.trials + 1, median_us(report.baseline.record),
                 median_us(report.best.record));
    }
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "record_search_logs: {}\n", e.what());
    return 1;
  }
}
