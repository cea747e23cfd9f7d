#include <tenon/driver/driver.h>
#include <tenon/support/error.h>

namespace tenon {

Candidate candidate_of(const Task& task, const Record& record) {
  const Point point = Point::from_json(record.knobs);
  const Schedule schedule = record.status == TrialStatus::refused
                                ? apply_template(task, record.template_name, point)
                                : replay(task.program, task.target, trace_from_json(record.trace));
  return {record.template_name, point, schedule.trace(), schedule.program()};
}

Measurement remeasure(const Task& task, const Record& record, RunnerOptions options) {
  if (options.threads == 0) options.threads = record.threads;
  options.seed = record.seed;
  options.cold = record.cold;
  const std::vector<Measurement> results =
      local_runner(task, options)->measure({candidate_of(task, record)});
  TENON_CHECK(results.size() == 1, "{}: one candidate gave {} results", task.name, results.size());
  return results.front();
}

}  // namespace tenon
