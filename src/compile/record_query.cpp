#include <tenon/compile/compile.h>

namespace tenon {

RecordQuery record_query(const Task& task, int threads) {
  return {program_hash(task.program),
          family_hash(task.program),
          task.args,
          task.target,
          threads,
          tenon_version(),
          code_generator_version()};
}

}  // namespace tenon
