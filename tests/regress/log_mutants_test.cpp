#include <tenon/autotvm/verify.h>
#include <tenon/driver/driver.h>

#include <catch2/catch.hpp>

#include "../unit/records/sample.h"
#include "mutate.h"

using namespace tenon;

namespace {

const char* const kWords[] = {"matmul", "m=8", "n=16", "k=4"};

Task small_task() { return operator_task({std::begin(kWords), std::end(kWords)}, Target::host()); }

/// A line as `tenon tune` writes it for the task.
Record tuned_record(const Task& task, int64_t trial) {
  const RecordQuery query = record_query(task, 1);
  Record r = sample_record(100 + static_cast<double>(trial), trial);
  r.args = task.args;
  r.program = query.program;
  r.family = query.family;
  r.target = task.target;
  r.trace = to_json(default_schedule(task).trace());
  r.tenon = query.tenon;
  r.llvm = query.llvm;
  return r;
}

/// What a program does with a log: look up, and replay what was found.
void use_log(const LoadedLog& log, const Task& task, int& replayed) {
  const RecordQuery query = record_query(task, 1);
  best_record(log.records, query);
  nearest_record(log.records, query);
  for (const LoggedRecord& r : log.records) {
    CHECK(parse_record(to_json_line(r.record)).ok());
    CHECK(read_record(r.where) == r.record);
    run_case([&] {
      const Task same = task_of_record(r.record, {}, {.target = task.target});
      compile_object(replay(same.program, same.target, trace_from_json(r.record.trace)).program(),
                     same.target);
      ++replayed;
    });
  }
}

}  // namespace

// A damaged log ends in records that are whole and warnings for the rest, never in anything else.
TEST_CASE("a thousand mutated copies of a log") {
  const ScratchFolder scratch;
  const std::string path = scratch.file("log.jsonl");
  const Task task = small_task();
  std::string original;
  for (int i = 0; i < 3; ++i) original += to_json_line(tuned_record(task, i)) + "\n";
  const MemoryLimit memory;
  int with_warnings = 0, replayed = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const CaseLimit limit("mutated log", seed);
    Rng rng(seed);
    put_file(path, seed % 2 == 0 ? mutate_bytes(original, rng) : mutate_text(original, rng));
    const LoadedLog log = load_log(path);
    CHECK(log.records.size() <= 12);  // a change may split or copy a line, no more
    with_warnings += !log.warnings.empty();
    if (seed % 4 == 0) use_log(log, task, replayed);
  }
  CHECK(with_warnings > 300);
  CHECK(replayed > 50);
  CHECK(peak_memory_bytes() < int64_t{2} << 30);
}
