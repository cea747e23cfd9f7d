#include "driver/require_device.h"

#include <tenon/support/error.h>

namespace tenon {

void require_device(std::string_view use_case, const Task& task) {
  if (task.target.runs_on(Target::host())) return;
  throw DeviceError(fmt::format("{} {}: this machine cannot run code for {}\n  this machine is {}",
                                use_case, task.name, task.target.name, Target::host().name));
}

}  // namespace tenon
