#pragma once
#include <tenon/support/error.h>
#include <tenon/target/target.h>

#include <iostream>
#include <optional>

namespace tenon::test {

/// The OpenCL device of this machine; nothing, with a line that says why the test is skipped, where
/// there is none.
inline std::optional<Target> opencl_device() {
  static const std::optional<Target> device = []() -> std::optional<Target> {
    try {
      return Target::opencl();
    } catch (const DeviceError& e) {
      std::cout << "SKIPPED: " << e.what() << "\n";
      return std::nullopt;
    }
  }();
  if (!device) std::cout << "SKIPPED: no OpenCL device\n";
  return device;
}

}  // namespace tenon::test
