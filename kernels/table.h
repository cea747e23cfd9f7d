#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/args.h"
#include "kernels/reference.h"

namespace tenon {

/// One operator as the command line knows it. `tenon tune NAME arg=value...`
struct KernelEntry {
  std::string name, summary;
  std::vector<KernelArg> args;      // besides type= and constant=
  std::vector<std::string> inputs;  // names of all tensors it may read, as the program has them
  std::function<std::vector<Tensor>(const KernelArgs&)> build;
  std::function<double(const KernelArgs&)> flops;  // floating-point operations; an FMA counts 2
  /// The outputs by plain loops, from those inputs that the program has, in order; for small
  /// shapes.
  std::function<RefArray(const KernelArgs&, const std::vector<RefArray>&)> reference;
  /// Inputs that are positions: name -> lowest and highest that there is. Empty: there are none.
  std::function<std::map<std::string, std::pair<int64_t, int64_t>>(const KernelArgs&)> ranges = {};
};

/// All operators, in the order of the documentation.
const std::vector<KernelEntry>& kernel_table();
/// UserError with the nearest names when there is none.
const KernelEntry& find_kernel(const std::string& name);
/// Reads the words against the entry's list.
KernelArgs parse_kernel_args(const KernelEntry& entry, const std::vector<std::string>& words);

}  // namespace tenon
