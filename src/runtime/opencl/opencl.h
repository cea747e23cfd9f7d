#pragma once
#include <tenon/runtime/module.h>

#include <string>
#include <string_view>

namespace tenon {

/// Is this what generate_opencl() writes?
bool is_opencl_source(std::string_view text);

/// Builds the source for the device whose name it says (the first device where that one is not
/// here is refused) and keeps it ready to run. DeviceError without OpenCL or that device, and with
/// the driver's log when it refuses the source.
std::shared_ptr<DeviceCode> load_opencl(const std::string& source);

}  // namespace tenon
