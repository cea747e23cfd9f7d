#pragma once
#include <tenon/schedule/schedule.h>

#include <string>

namespace tenon {

/// Every step of the schedule and what it changed in the loop tree: lines removed '-' and added
/// '+', those beside them and the loops around them; "..." where others are left out.
std::string steps_text(const Schedule& schedule);

}  // namespace tenon
