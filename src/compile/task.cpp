#include <tenon/compile/compile.h>
#include <tenon/schedule/roles.h>
#include <tenon/support/text.h>

namespace tenon {
namespace {

const std::vector<NamedTemplate>& templates_of(const Task& task) {
  static const std::vector<NamedTemplate> generic = {{"generic", generic_template}};
  return task.templates.empty() ? generic : task.templates;
}

Schedule scheduled(const Task& task, const Template& fn, Knobs knobs) {
  Schedule schedule(task.program, task.target);
  fn(schedule, knobs);
  return schedule;
}

}  // namespace

Schedule default_schedule(const Task& task) {
  const Template& fn = templates_of(task).front().fn;
  return scheduled(task, fn, Knobs(survey(fn, task.program, task.target).default_point()));
}

Schedule apply_template(const Task& task, const std::string& name, const Point& point) {
  std::vector<std::string> known;
  for (const NamedTemplate& t : templates_of(task)) {
    if (t.name == name) return scheduled(task, t.fn, Knobs(point));
    known.push_back(t.name);
  }
  const std::vector<std::string> near = nearest_names(name, known);
  throw UserError(fmt::format("task {}: no template \"{}\"; there are {}\n  try: {}", task.name,
                              name, join(known), join(near.empty() ? known : near, " or ")));
}

Kernel compile(const Task& task, const Trace& trace) {
  return compile(replay(task.program, task.target, trace).program(), task.target);
}

Kernel compile(const Task& task, const Record& record) {
  if (record.target.fingerprint() != task.target.fingerprint()) {
    throw UserError(
        fmt::format("task {}: the record is for target {} and the task for {}; its schedule was "
                    "never measured here\n  "
                    "try: tune the task on this target, or replay the record's trace by itself",
                    task.name, record.target.fingerprint(), task.target.fingerprint()));
  }
  return compile(task, trace_from_json(record.trace));
}

}  // namespace tenon
