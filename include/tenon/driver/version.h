#pragma once
#include <string>

namespace tenon {

/// "tenon 0.1.0 (commit 1a2b3c4), LLVM 19.1.7, log schema 1"
std::string version_text();

}  // namespace tenon
