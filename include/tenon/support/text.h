#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// "a, b, c"
std::string join(const std::vector<std::string>& parts, std::string_view separator = ", ");

std::vector<std::string> split_text(std::string_view text, char separator);

std::string trim(std::string_view text);

/// The known names most like `word` by edit distance, best first, at most `limit`, none that is far
/// off.
std::vector<std::string> nearest_names(std::string_view word, const std::vector<std::string>& known,
                                       size_t limit = 3);

/// The whole text as a decimal integer; nothing when anything else stands in it or it does not fit.
std::optional<int64_t> parse_int(std::string_view text);

/// Shortest decimal text that reads back as the same double ("1", "0.1", "inf", "nan").
std::string round_trip(double value);

/// [2, 3, 4] -> "2x3x4"; a rank-0 shape is "scalar".
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace tenon
