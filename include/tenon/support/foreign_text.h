#pragma once
#include <string>
#include <string_view>

namespace tenon {

/// Brackets open at once in JSON text, strings skipped. Printing and copying a parsed value
/// recurse: readers of text from outside refuse more than kMaxJsonDepth.
int json_depth(std::string_view text);
inline constexpr int kMaxJsonDepth = 64;

/// At most `limit` bytes of `text` and "..." where some are left out: text from outside in a
/// message.
std::string shorten(std::string_view text, size_t limit = 80);

}  // namespace tenon
