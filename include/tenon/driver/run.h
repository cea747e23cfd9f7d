#pragma once
#include <tenon/compile/recorded.h>
#include <tenon/graph/network.h>
#include <tenon/records/record.h>
#include <tenon/runtime/array.h>

#include <map>
#include <string>
#include <vector>

namespace tenon {

/// An operator called by name. `inputs` and `outputs` have the shapes of its formula; those of the
/// task's program are the same elements with dimensions merged.
struct OperatorCall {
  Task task;
  std::vector<NamedShape> inputs, outputs;
};

/// {"matmul", "m=1024", "n=1024", "k=1024"}: UserError with the nearest names.
OperatorCall operator_call(const std::vector<std::string>& words, const Target& target);

struct RunOptions {
  int threads = 1;
  uint64_t seed = 0;   ///< of the inputs that are not given
  bool check = false;  ///< compare with the unscheduled formula on this machine's processor
};

struct OperatorRun {
  std::vector<std::string> sampled;  ///< inputs that were not given: random from the seed
  std::map<std::string, Array> outputs;
  CheckResult check = CheckResult::not_run;
  std::string reason;  ///< why the check failed
};

/// Runs the operator once under `schedule`. `inputs` are row-major arrays by name; the others are
/// random: floats in [-1, 1), small integers, positions that exist. UserError for an unknown name,
/// a type or shape other than the formula's and a position that does not exist; DeviceError where
/// this machine cannot run the target's code.
OperatorRun run_operator(const OperatorCall& call, const NamedTrace& schedule,
                         const std::map<std::string, Array>& inputs, const RunOptions& options);

/// The numbers of an array. NaN are counted and left out of the rest; without numbers the rest is
/// NaN.
struct Summary {
  double min = 0, max = 0, mean = 0;
  int64_t nan = 0;
};
Summary summarize(const Array& array);

}  // namespace tenon
