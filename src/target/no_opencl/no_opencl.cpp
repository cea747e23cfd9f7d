#include <tenon/support/error.h>

#include "target/opencl_api.h"

namespace tenon {

std::vector<OpenclDevice> probe_opencl() {
  throw DeviceError(
      "this build of tenon has no OpenCL: its headers were missing when it was configured\n  try: "
      "apt-get install opencl-headers, then configure and build again");
}

}  // namespace tenon
