#pragma once
#include <tenon/compile/task.h>

#include <string>
#include <vector>

namespace tenon {

/// A task whose whole space was measured once (recorded_space), with the log of it.
struct RecordedTask {
  Task task;
  std::string log;  ///< path
};

/// A product of odd size, a padded convolution and a chain along rows: each with one template of
/// some hundred points, made for `target`.
std::vector<RecordedTask> recorded_tasks(const Target& target);

}  // namespace tenon
