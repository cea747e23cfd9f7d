#include "schema_check.h"

#include <algorithm>
#include <set>

namespace tenon {
namespace {

using Json = nlohmann::json;

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (type == "integer") return value.is_number_integer();
  return type == "number" && value.is_number();
}

bool is_of_one_type(const Json& value, const Json& types) {
  if (types.is_string()) return is_of_type(value, types);
  return std::any_of(types.begin(), types.end(),
                     [&](const Json& type) { return is_of_type(value, type); });
}

/// Does `value` obey the keyword? Those that speak of another type of value are obeyed.
bool obeys(const std::string& keyword, const Json& limit, const Json& value) {
  if (keyword == "type") return is_of_one_type(value, limit);
  if (keyword == "const") return value == limit;
  if (keyword == "enum") return std::find(limit.begin(), limit.end(), value) != limit.end();
  if (keyword == "minimum") return !value.is_number() || value >= limit;
  if (keyword == "maximum") return !value.is_number() || value <= limit;
  if (keyword == "exclusiveMinimum") return !value.is_number() || value > limit;
  if (keyword == "minLength")
    return !value.is_string() || value.get_ref<const std::string&>().size() >= limit;
  if (keyword == "minItems") return !value.is_array() || value.size() >= limit;
  if (keyword == "maxItems") return !value.is_array() || value.size() <= limit;
  static const std::set<std::string> kElsewhere = {"$schema",    "title", "description", "required",
                                                   "properties", "items", "allOf",       "if",
                                                   "then",       "else"};
  return kElsewhere.count(keyword) > 0;
}

void add(std::vector<std::string>& out, const std::vector<std::string>& more) {
  out.insert(out.end(), more.begin(), more.end());
}

void check_parts(const Json& schema, const Json& value, const std::string& place,
                 std::vector<std::string>& out) {
  if (value.is_object()) {
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name)) out.push_back(place + ": lacks " + name.dump());
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, inner] : properties.items()) {
      if (value.contains(name)) add(out, schema_violations(inner, value[name], place + "/" + name));
    }
  }
  if (value.is_array() && schema.contains("items")) {
    for (size_t k = 0; k < value.size(); ++k)
      add(out, schema_violations(schema["items"], value[k], place + "/" + std::to_string(k)));
  }
}

}  // namespace

std::vector<std::string> schema_violations(const Json& schema, const Json& value,
                                           const std::string& place) {
  std::vector<std::string> out;
  for (const auto& [keyword, limit] : schema.items()) {
    if (!obeys(keyword, limit, value))
      out.push_back(place + ": " + keyword + " " + limit.dump() + ", not " + value.dump());
  }
  check_parts(schema, value, place, out);
  for (const Json& part : schema.value("allOf", Json::array()))
    add(out, schema_violations(part, value, place));
  if (schema.contains("if")) {
    const char* branch = schema_violations(schema["if"], value).empty() ? "then" : "else";
    if (schema.contains(branch)) add(out, schema_violations(schema[branch], value, place));
  }
  return out;
}

}  // namespace tenon
