#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

namespace tenon {

/// Level of TENON_LOG: 0 silent, 1 what ran and how long, 2 schedule steps, 3 IR after each pass, 4
/// target code.
int log_level();

/// One line to stderr when the level is on. `where` is the room or pass ("lower/vectorize_loops").
void log_line(int level, std::string_view where, std::string_view text);

/// TENON_DUMP=dir writes NNN-name.txt there, numbered in order; does nothing when unset.
void dump_text(std::string_view name, std::string_view text);

}  // namespace tenon
