#include <tenon/ir/ops.h>
#include <tenon/schedule/primitive.h>
#include <tenon/support/error.h>
#include <tenon/support/foreign_text.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>

#include "schedule/field_text.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

/// Thrown by the readers below; the callers add where.
[[noreturn]] void bad_value(std::string_view wanted, const Json& got) {
  throw UserError(fmt::format("needs {}, not {}", wanted, shorten(got.dump())));
}

template <class E, size_t N>
E read_word(const Json& j, const E (&all)[N], std::string (*word)(E), std::string_view wanted) {
  for (E e : all)
    if (j.is_string() && j.get<std::string>() == word(e)) return e;
  bad_value(wanted, j);
}

std::string tail_word(Tail t) { return std::string(name(t)); }
std::string when_word(PackWhen w) { return std::string(name(w)); }
std::string scope_word(Scope s) { return std::string(name(s)); }
std::string axis_word(ThreadAxis a) { return std::string(name(a)); }

Json write(const std::string& v) { return v; }
Json write(int64_t v) { return v; }
Json write(Tail v) { return tail_word(v); }
Json write(Scope v) { return scope_word(v); }
Json write(ThreadAxis v) { return axis_word(v); }
Json write(PackWhen v) { return when_word(v); }
Json write(const std::vector<std::string>& v) { return v; }
Json write(const std::vector<int64_t>& v) { return v; }
Json write(const std::vector<LayoutDim>& v) {
  Json out = Json::array();
  for (const LayoutDim& d : v) out.push_back({d.dim, d.divide, d.modulo});
  return out;
}

Json write(const IntrinsicRef& v) { return v.defined() ? Json::parse(to_json(*v)) : Json(); }

void read(const Json& j, std::string& v) {
  if (!j.is_string()) bad_value("a string", j);
  v = j.get<std::string>();
}
void read(const Json& j, int64_t& v) {
  if (!j.is_number_integer()) bad_value("an integer", j);
  v = j.get<int64_t>();
  if (j.is_number_unsigned() && v < 0) bad_value("an integer of at most 2^63 - 1", j);
}
void read(const Json& j, Tail& v) {
  v = read_word(j, {Tail::exact, Tail::guard, Tail::mask, Tail::shift_inward, Tail::pad}, tail_word,
                "exact, guard, mask, shift_inward or pad");
}
void read(const Json& j, Scope& v) {
  v = read_word(j, {Scope::global, Scope::shared, Scope::local, Scope::reg}, scope_word,
                "global, shared, local or register");
}
void read(const Json& j, ThreadAxis& v) {
  v = read_word(j,
                {ThreadAxis::block_x, ThreadAxis::block_y, ThreadAxis::block_z,
                 ThreadAxis::thread_x, ThreadAxis::thread_y, ThreadAxis::thread_z},
                axis_word, "block_x, block_y, block_z, thread_x, thread_y or thread_z");
}
void read(const Json& j, PackWhen& v) {
  v = read_word(j, {PackWhen::run_time, PackWhen::ahead}, when_word, "run_time or ahead");
}
void read(const Json& j, std::vector<std::string>& v) {
  if (!j.is_array()) bad_value("a list of strings", j);
  v.clear();
  for (const Json& part : j) read(part, v.emplace_back());
}
void read(const Json& j, std::vector<int64_t>& v) {
  if (!j.is_array()) bad_value("a list of integers", j);
  v.clear();
  for (const Json& part : j) read(part, v.emplace_back());
}
void read(const Json& j, std::vector<LayoutDim>& v) {
  if (!j.is_array()) bad_value("a list of [dim, divide, modulo]", j);
  v.clear();
  for (const Json& part : j) {
    if (!part.is_array() || part.size() != 3) bad_value("[dim, divide, modulo]", part);
    int64_t numbers[3];
    for (int n = 0; n < 3; ++n) read(part[n], numbers[n]);
    if (numbers[0] < 0 || numbers[0] > INT_MAX) bad_value("the number of a dimension", part[0]);
    v.push_back({static_cast<int>(numbers[0]), numbers[1], numbers[2]});
  }
}

void read(const Json& j, IntrinsicRef& v) {
  if (!j.is_string() && !j.is_object()) bad_value("the name of an intrinsic or its declaration", j);
  try {
    v = intrinsic_from_json(j.dump());
  } catch (const UserError& e) {
    throw UserError(fmt::format("is no intrinsic: {}", e.what()));
  }
}

template <class P>
Json json_of(const P& p) {
  Json out;
  out["step"] = P::kName;
  for_each_field<P>([&](const auto& f) {
    if (!f.option || !(p.*f.member == P{}.*f.member)) out[std::string(f.name)] = write(p.*f.member);
  });
  return out;
}

template <class P>
P from_json(const Json& j) {
  P p;
  std::vector<std::string> known = {"step"};
  for_each_field<P>([&](const auto& f) {
    known.emplace_back(f.name);
    const auto found = j.find(std::string(f.name));
    if (found == j.end()) {
      if (!f.option) throw UserError(fmt::format("{} lacks the field \"{}\"", P::kName, f.name));
      return;
    }
    try {
      read(*found, p.*f.member);
    } catch (const UserError& e) {
      throw UserError(fmt::format("field \"{}\" of {} {}", f.name, P::kName, e.what()));
    }
  });
  for (const auto& [key, value] : j.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw UserError(
          fmt::format("{} has no field \"{}\"; its fields are {} (where a newer version wrote it, "
                      "the step without it would be another one)",
                      P::kName, shorten(key), join(known)));
  return p;
}

template <size_t... N>
Primitive read_step(const Json& j, const std::string& step, std::index_sequence<N...>) {
  std::optional<Primitive> out;
  auto attempt = [&](auto p) {
    using P = decltype(p);
    if (step == P::kName) out = from_json<P>(j);
  };
  (attempt(std::variant_alternative_t<N, Primitive>{}), ...);
  if (out) return *out;
  const std::vector<std::string> near = nearest_names(step, primitive_names());
  throw UserError(fmt::format("there is no step \"{}\"{}", shorten(step),
                              near.empty() ? "" : "; did you mean " + join(near, " or ") + "?"));
}

Primitive read_step(const Json& j) {
  if (!j.is_object() || !j.contains("step") || !j["step"].is_string())
    throw UserError("a step is an object with a field \"step\", not " + shorten(j.dump()));
  return read_step(j, j["step"].get<std::string>(),
                   std::make_index_sequence<std::variant_size_v<Primitive>>());
}

Json parse(std::string_view text) {
  if (json_depth(text) > kMaxJsonDepth)
    throw UserError(fmt::format("trace: nested deeper than {}", kMaxJsonDepth));
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    throw UserError(fmt::format("trace: not JSON: {}", e.what()));
  }
}

}  // namespace

std::string to_json(const Primitive& primitive) {
  return std::visit([](const auto& p) { return json_of(p).dump(); }, primitive);
}

std::string to_json(const Trace& trace) {
  std::vector<std::string> steps;
  for (const Primitive& p : trace) steps.push_back(to_json(p));
  return "[" + join(steps, ",") + "]";
}

Primitive primitive_from_json(std::string_view text) { return read_step(parse(text)); }

Trace trace_from_json(std::string_view text) {
  const Json j = parse(text);
  if (!j.is_array()) throw UserError("trace: a list of steps is needed, not " + shorten(j.dump()));
  Trace trace;
  for (const Json& step : j) {
    try {
      trace.push_back(read_step(step));
    } catch (const UserError& e) {
      throw UserError(fmt::format("trace, step {}: {}", trace.size() + 1, e.what()));
    }
  }
  return trace;
}

}  // namespace tenon
