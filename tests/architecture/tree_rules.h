#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tenon {

/// Everything in the source tree at `root` that breaks the rules of the design's sections 2 and 7,
/// one line each, "path:line: what - rule", sorted:
/// - an include of a room that the table of rooms does not allow, or a source in no room of it;
/// - LLVM outside codegen/llvm, CLI11 outside cli; CLI11, protobuf or all of nlohmann/json in a
/// header;
/// - a source over 500 lines or a header over 250 without the word "Length:" in its first 15 lines;
/// - an operator's name in code (not in a comment) outside kernels, graph/onnx and cli's help
/// texts. Tests, examples, documents and tools are not looked at.
std::vector<std::string> broken_rules(const std::filesystem::path& root);

/// May a file of room `from` include a header of room `to`?
bool may_include(const std::string& from, const std::string& to);

}  // namespace tenon
