#include <tenon/compile/recorded.h>
#include <tenon/support/error.h>

#include <cstdio>

namespace tenon {
namespace {

std::optional<NamedTrace> exact(const Task& task, const LoggedRecord& logged) {
  const Trace trace = trace_from_json(logged.record.trace);
  return NamedTrace{logged.where.text(), replay(task.program, task.target, trace).trace()};
}

std::optional<NamedTrace> adapted(const Task& task, const LoggedRecord& logged,
                                  const TraceCheck& is_good) {
  if (!is_good) return std::nullopt;
  Trace trace = legal_steps(task, trace_from_json(logged.record.trace));
  if (trace.empty() || !is_good(task, trace)) return std::nullopt;
  return NamedTrace{"adapted from " + logged.where.text(), std::move(trace)};
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
    return found->adapted ? adapted(task, found->logged, adapted_is_good)
                          : exact(task, found->logged);
  } catch (const UserError& error) {
    fmt::print(stderr, "tenon: warning: {} cannot be replayed and is not used: {}\n",
               found->logged.where.text(), error.what());
    return std::nullopt;
  }
}

}  // namespace tenon
