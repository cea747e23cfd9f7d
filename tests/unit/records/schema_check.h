#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tenon {

/// What in `value` breaks `schema`, one line each ("/samples_us/0: ..."); empty: nothing. Knows the
/// keywords of JSON Schema 2020-12 that record.schema.json uses; another one is a finding too.
std::vector<std::string> schema_violations(const nlohmann::json& schema,
                                           const nlohmann::json& value,
                                           const std::string& place = "");

}  // namespace tenon
