#pragma once
#include <tenon/ir/program.h>

#include <string>
#include <string_view>

namespace tenon {

/// A loop tree as one JSON object, for files that reproduce a program in another process.
/// Variables, buffers, combiners and expressions stand once each in tables and are meant by their
/// number there; statements are nested.
std::string to_json(const Program& program);

/// The inverse: the program has the same text and hash. UserError for text that is no such object
/// or breaks the rules of a loop tree.
Program program_from_json(std::string_view text);

}  // namespace tenon
