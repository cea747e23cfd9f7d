#include <tenon/schedule/knobs.h>
#include <tenon/support/error.h>
#include <tenon/support/foreign_text.h>
#include <tenon/support/hash.h>
#include <tenon/support/text.h>

#include <nlohmann/json.hpp>

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
const T& value_of(const Point& p, const std::string& name, std::string_view kind) {
  const auto found = p.values.find(name);
  if (found == p.values.end()) {
    std::vector<std::string> known;
    for (const auto& [key, value] : p.values) known.push_back(key);
    const std::vector<std::string> near = nearest_names(name, known);
    throw UserError(
        fmt::format("there is no knob \"{}\"{}", name,
                    near.empty() ? "" : "; did you mean \"" + join(near, "\" or \"") + "\"?"));
  }
  const T* value = std::get_if<T>(&found->second);
  if (!value)
    throw UserError(
        fmt::format("knob \"{}\" is {}, which is no {}", name, to_text(found->second), kind));
  return *value;
}

/// A whole number that int64 holds.
bool is_integer(const Json& j) {
  return j.is_number_integer() && !(j.is_number_unsigned() && j.get<int64_t>() < 0);
}

KnobValue read_value(const std::string& name, const Json& j) {
  if (is_integer(j)) return j.get<int64_t>();
  if (j.is_string()) return j.get<std::string>();
  std::vector<int64_t> sizes;
  bool good = j.is_array();
  for (const Json& part : j) {
    good = good && is_integer(part);
    if (good) sizes.push_back(part.get<int64_t>());
  }
  if (!good)
    throw UserError(fmt::format("knob \"{}\" is an integer, a string or a list of integers, not {}",
                                shorten(name), shorten(j.dump())));
  return sizes;
}

}  // namespace

int64_t Point::number(const std::string& name) const {
  return value_of<int64_t>(*this, name, "number");
}

const std::string& Point::word(const std::string& name) const {
  return value_of<std::string>(*this, name, "word");
}

const std::vector<int64_t>& Point::tile(const std::string& name) const {
  return value_of<std::vector<int64_t>>(*this, name, "tile");
}

std::string Point::to_json() const {
  Json out = Json::object();
  for (const auto& knob : values)
    std::visit([&](const auto& v) { out[knob.first] = v; }, knob.second);
  return out.dump();
}

Point Point::from_json(std::string_view text) {
  if (json_depth(text) > kMaxJsonDepth)
    throw UserError(fmt::format("knobs: nested deeper than {}", kMaxJsonDepth));
  Json j;
  try {
    j = Json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    throw UserError(fmt::format("knobs: not JSON: {}", e.what()));
  }
  if (!j.is_object())
    throw UserError("knobs: an object of names and values is needed, not " + shorten(j.dump()));
  Point out;
  for (const auto& [name, value] : j.items()) out.values[name] = read_value(name, value);
  return out;
}

uint64_t Point::hash() const { return hash_text(to_json()); }

}  // namespace tenon
