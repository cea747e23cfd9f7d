#pragma once
#include "formulas.h"

namespace tenon::test {

/// Formulas of many kinds as a user would write them, none of them an operator of kernels/, on
/// sizes that divide nothing.
std::vector<Case> user_formulas();

/// Scatters and scans of several kinds, part of user_formulas().
std::vector<Case> scans_and_scatters();

}  // namespace tenon::test
