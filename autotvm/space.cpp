#include "autotvm/space.h"

#include <tenon/autotvm/sketch.h>
#include <tenon/schedule/roles.h>

namespace tenon {

TaskSpace::TaskSpace(const Task& task, SpaceKind kind)
    : program_(task.program), target_(task.target) {
  if (kind != SpaceKind::sketches) templates_ = task.templates;
  if (templates_.empty()) templates_.push_back({"generic", generic_template});
  if (kind != SpaceKind::templates)
    for (NamedTemplate& sketch : sketches_for(program_, target_))
      templates_.push_back(std::move(sketch));
  for (const NamedTemplate& t : templates_) spaces_.push_back(survey(t.fn, program_, target_));
}

std::optional<SpacePoint> TaskSpace::find(const Record& record) const {
  for (size_t t = 0; t < templates_.size(); ++t) {
    if (templates_[t].name != record.template_name) continue;
    try {
      SpacePoint at{t, Point::from_json(record.knobs)};
      if (!spaces_[t].why_not(at.point)) return at;
    } catch (const UserError&) {  // knobs of another version of the template
    }
  }
  return std::nullopt;
}

Result<Candidate> TaskSpace::candidate(const SpacePoint& at) const {
  try {
    Schedule schedule(program_, target_);
    Knobs knobs(at.point);
    templates_[at.template_index].fn(schedule, knobs);
    return Candidate{templates_[at.template_index].name, at.point, schedule.trace(),
                     schedule.program()};
  } catch (const UserError& e) {
    return Failure{e.what()};
  }
}

}  // namespace tenon
