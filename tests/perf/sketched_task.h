#pragma once
#include <tenon/autotvm/sketch.h>
#include <tenon/driver/driver.h>

#include <string>
#include <vector>

namespace tenon {

/// Of an operator by name on so many threads, with the sketches beside its templates.
inline Task task_for(const std::vector<std::string>& words, int threads) {
  Target target = Target::host();
  target.cores = threads;
  Task task = operator_task(words, target);
  for (NamedTemplate& sketch : sketches_for(task.program, target))
    task.templates.push_back(std::move(sketch));
  return task;
}

}  // namespace tenon
