#pragma once
#include <tenon/compile/task.h>

#include <string_view>

namespace tenon {

/// DeviceError, with the use case's name, where this machine cannot run code for the task's target.
void require_device(std::string_view use_case, const Task& task);

}  // namespace tenon
