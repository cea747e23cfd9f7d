#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// A device that the OpenCL loader knows of, in the order of platforms and devices.
struct OpenclDevice {
  std::string name;      ///< "pthread-..."
  std::string platform;  ///< "Portable Computing Language"
  std::string version;   ///< of the driver
  int64_t threads_per_block = 1;
  std::vector<int64_t> block = {1, 1, 1};
  int64_t shared_bytes = 0;
  int compute_units = 1;
  bool has_f16 = false, has_f64 = false;
};

/// All devices; never empty. DeviceError that says what is missing (the loader, a platform, a
/// device, or OpenCL in this build) and how to get it.
std::vector<OpenclDevice> probe_opencl();

}  // namespace tenon
