#pragma once
#include <tenon/ir/program.h>
#include <tenon/target/target.h>

#include <string>

namespace tenon {

/// Flat function -> OpenCL C 1.2. The first lines say, as comments, what is launched and how:
///
///     // tenon device NAME
///     // tenon workspace 4096
///     // tenon launch kernel_0 grid 4 1 1 block 256 1 1
///
/// so that the text is all that the runtime needs. UserError for what the device cannot do.
std::string generate_opencl(const Program& flat, const Target& target);

}  // namespace tenon
