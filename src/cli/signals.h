#pragma once
#include <atomic>

namespace tenon {

/// From now on Ctrl-C sets interrupted() instead of ending the process; a second one ends it.
void catch_interrupts();
const std::atomic<bool>& interrupted();

}  // namespace tenon
