#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <tenon/support/result.h>

namespace tenon {

/// The whole content of a regular file; otherwise why not ("no such file", "is a directory", ...).
Result<std::string> read_file(const std::string& path);

/// Writes beside `path` and renames, so that no reader ever sees half a file and a failure leaves
/// the old one. Folders are not made. Nothing on success.
std::optional<Failure> write_file(const std::string& path, std::string_view content);

}  // namespace tenon
