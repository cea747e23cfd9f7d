#pragma once
#include <string>
#include <vector>

namespace tenon {

/// What one field of a line may hold, as record.schema.json says it.
struct RecordField {
  std::string name;
  std::vector<std::string> types;  ///< in JSON Schema's words: "integer", "number", "null", ...
  bool required = false;           ///< a line without it is refused
  std::vector<std::string> words;  ///< the only texts there may be; empty: any
};

/// The fields that this version writes and reads, in the order of the line.
std::vector<RecordField> record_fields();

}  // namespace tenon
