#pragma once
#include <string>

namespace tenon {

/// Compares `text` with the file tests/golden/NAME. With TENON_UPDATE_GOLDEN=1 in the environment
/// the file is rewritten instead, for the diff to be reviewed.
void check_golden(const std::string& name, const std::string& text);

}  // namespace tenon
