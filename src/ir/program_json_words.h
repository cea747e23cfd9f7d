#pragma once
#include <tenon/ir/program.h>

#include <array>
#include <optional>
#include <string_view>

namespace tenon {

// Words that only program_json uses.

inline constexpr std::array<std::string_view, 3> kAxisWords = {"spatial", "reduce", "sequential"};
inline constexpr std::array<std::string_view, 3> kRoleWords = {"input", "constant", "output"};

inline std::string_view word(AxisKind kind) { return kAxisWords[static_cast<size_t>(kind)]; }
inline std::string_view word(ParamRole role) { return kRoleWords[static_cast<size_t>(role)]; }

}  // namespace tenon
