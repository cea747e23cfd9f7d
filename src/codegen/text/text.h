#pragma once
#include <tenon/ir/program.h>
#include <tenon/target/target.h>

#include <array>

#include "codegen/text/dialect.h"

namespace tenon {

/// One launch: a kernel of the source with its grid of blocks and the threads of a block.
struct TextKernel {
  std::string name;
  std::array<int64_t, 3> grid{1, 1, 1}, block{1, 1, 1};
};

/// A flat program as source for a device. Each kernel takes all parameters of the program in order,
/// then the workspace.
struct DeviceSource {
  std::string text;
  std::vector<TextKernel> kernels;  // in the order of their launches
  int64_t workspace_bytes = 0;
};

/// Flat function -> C-like source, one kernel a nest at the root. UserError for what the device
/// cannot do: too much shared memory, f64 without support, symbolic extents, atomic updates of
/// other than 4 bytes.
DeviceSource generate_text(const Program& flat, const Target& target, const Dialect& dialect);

}  // namespace tenon
