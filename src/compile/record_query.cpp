#include <tenon/compile/compile.h>

#include <nlohmann/json.hpp>

namespace tenon {
namespace {

/// The task's arguments and, where it has symbolic extents, the sizes it is measured with.
std::string measured_args(const Task& task) {
  if (task.sample_sizes.empty()) return task.args;
  nlohmann::ordered_json args = nlohmann::ordered_json::parse(task.args);
  args["sample_sizes"] = task.sample_sizes;
  return args.dump();
}

}  // namespace

RecordQuery record_query(const Task& task, int threads) {
  return {program_hash(task.program),
          family_hash(task.program),
          measured_args(task),
          task.target,
          threads,
          tenon_version(),
          code_generator_version()};
}

}  // namespace tenon
