#include <tenon/compile/recorded.h>
#include <tenon/support/error.h>

#include <cstdio>

namespace tenon {
namespace {

std::optional<NamedTrace> exact(const Task& task, const LoggedRecord& logged) {
  const Trace trace = trace_from_json(logged.record.trace);
  return NamedTrace{logged.where.text(), replay(task.program, task.target, trace).trace()};
}

bool other_cpu(Match match) {
  return match == Match::other_cpu || match == Match::family_other_cpu;
}

std::optional<NamedTrace> adapted(const Task& task, const FoundRecord& found,
                                  const TraceCheck& is_good) {
  if (!is_good) return std::nullopt;
  Trace trace = legal_steps(task, trace_from_json(found.logged.record.trace));
  if (trace.empty() || !is_good(task, trace)) return std::nullopt;
  const char* where = other_cpu(found.match) ? " (another CPU)" : "";
  return NamedTrace{"adapted from " + found.logged.where.text() + where, std::move(trace)};
}

}  // namespace

Trace legal_steps(const Task& task, const Trace& trace) {
  Schedule schedule(task.program, task.target);
  for (const Primitive& step : trace) schedule.try_apply(step);
  return schedule.trace();
}

std::optional<NamedTrace> recorded_schedule(const Task& task, const RecordStore& records,
                                            int threads, const TraceCheck& adapted_is_good) {
  const std::optional<FoundRecord> found = records.find(record_query(task, threads));
  if (!found) return std::nullopt;
  try {
    return found->adapted() ? adapted(task, *found, adapted_is_good) : exact(task, found->logged);
  } catch (const UserError& error) {
    fmt::print(stderr, "tenon: warning: {} cannot be replayed and is not used: {}\n",
               found->logged.where.text(), error.what());
    return std::nullopt;
  }
}

void warn_of_passed_over(const RecordStore& records, const std::vector<const Task*>& tasks,
                         int threads) {
  std::vector<RecordQuery> queries;
  for (const Task* task : tasks) queries.push_back(record_query(*task, threads));
  const std::string text = records.passed_over(queries);
  if (!text.empty()) fmt::print(stderr, "tenon: warning: {}\n", text);
}

}  // namespace tenon
