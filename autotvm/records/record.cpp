#include <tenon/records/record.h>
#include <tenon/support/foreign_text.h>
#include <tenon/support/stats.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "autotvm/records/fields.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 9> kStatusNames = {
    "ok",           "refused",         "outpaced",    "compile_error", "run_error",
    "wrong_answer", "compile_timeout", "run_timeout", "out_of_memory"};
constexpr std::array<std::string_view, 3> kCheckNames = {"passed", "failed", "not_run"};

/// A problem with one field; becomes the Failure of parse_record.
struct BadField {
  std::string message;
};

template <class Enum, size_t N>
Enum parse_word(const Json& j, const std::array<std::string_view, N>& words, const char* field) {
  if (j.is_string()) {
    for (size_t i = 0; i < N; ++i) {
      if (j.get_ref<const std::string&>() == words[i]) return static_cast<Enum>(i);
    }
  }
  throw BadField{
      fmt::format("field \"{}\" is {}", field, j.is_string() ? shorten(j.dump()) : "no word")};
}

/// How a member is kept in JSON; json_text members stand as what they are, an object or array.
enum class Kind { plain, object_text, array_text };

/// The one list of fields: f(name, member, required, kind) in the order of the line.
template <class R, class F>
void for_each_field(R& r, const F& f) {
  f("schema", r.schema, true, Kind::plain);
  f("task", r.task, false, Kind::plain);
  f("args", r.args, false, Kind::object_text);
  f("program", r.program, true, Kind::plain);
  f("family", r.family, false, Kind::plain);
  f("target", r.target, true, Kind::plain);
  f("threads", r.threads, true, Kind::plain);
  f("template", r.template_name, false, Kind::plain);
  f("knobs", r.knobs, false, Kind::object_text);
  f("trace", r.trace, true, Kind::array_text);
  f("status", r.status, true, Kind::plain);
  f("reason", r.reason, false, Kind::plain);
  f("cold", r.cold, false, Kind::plain);
  f("samples_us", r.samples_us, false, Kind::plain);
  f("check", r.check, true, Kind::plain);
  f("check_error", r.check_error, false, Kind::plain);
  f("compile_us", r.compile_us, false, Kind::plain);
  f("seed", r.seed, false, Kind::plain);
  f("trial", r.trial, false, Kind::plain);
  f("comparison", r.comparison, false, Kind::plain);
  f("tenon", r.tenon, false, Kind::plain);
  f("llvm", r.llvm, false, Kind::plain);
  f("time", r.time, false, Kind::plain);
}

struct Writer {
  Json& out;

  void operator()(const char* name, const std::string& value, bool, Kind kind) const {
    out[name] = kind == Kind::plain ? Json(value) : Json::parse(value);
  }
  void operator()(const char* name, const Target& value, bool, Kind) const {
    out[name] = Json::parse(value.to_json());
  }
  void operator()(const char* name, TrialStatus value, bool, Kind) const {
    out[name] = tenon::name(value);
  }
  void operator()(const char* name, CheckResult value, bool, Kind) const {
    out[name] = tenon::name(value);
  }
  template <class T>
  void operator()(const char* name, const T& value, bool, Kind) const {
    out[name] = value;  // a NaN is printed as null
  }
};

/// Lists what each member's type lets a line hold.
struct Describer {
  std::vector<RecordField>& out;

  void operator()(const char* name, const std::string&, bool required, Kind kind) const {
    const char* type = kind == Kind::plain         ? "string"
                       : kind == Kind::object_text ? "object"
                                                   : "array";
    add(name, {type}, required);
  }
  void operator()(const char* name, const Target&, bool required, Kind) const {
    add(name, {"object"}, required);
  }
  void operator()(const char* name, TrialStatus, bool required, Kind) const {
    add(name, {"string"}, required, {kStatusNames.begin(), kStatusNames.end()});
  }
  void operator()(const char* name, CheckResult, bool required, Kind) const {
    add(name, {"string"}, required, {kCheckNames.begin(), kCheckNames.end()});
  }
  void operator()(const char* name, const std::vector<double>&, bool required, Kind) const {
    add(name, {"array"}, required);
  }
  void operator()(const char* name, double, bool required, Kind) const {
    add(name, {"number", "null"}, required);
  }
  void operator()(const char* name, bool, bool required, Kind) const {
    add(name, {"boolean"}, required);
  }
  template <class Int>
  void operator()(const char* name, const Int&, bool required, Kind) const {
    static_assert(std::is_integral_v<Int>);
    add(name, {"integer"}, required);
  }

 private:
  void add(const char* name, std::vector<std::string> types, bool required,
           std::vector<std::string> words = {}) const {
    out.push_back({name, std::move(types), required, std::move(words)});
  }
};

int64_t to_int(const Json& j, const char* field, int64_t low, int64_t high) {
  bool fits = j.is_number_integer();
  if (fits && j.is_number_unsigned()) fits = j.get<uint64_t>() <= uint64_t{INT64_MAX};
  if (!fits || j.get<int64_t>() < low || j.get<int64_t>() > high)
    throw BadField{fmt::format("field \"{}\" is no whole number in {}..{}", field, low, high)};
  return j.get<int64_t>();
}

double to_double(const Json& j, const char* field) {
  if (!j.is_number()) throw BadField{fmt::format("field \"{}\" is no number", field)};
  return j.get<double>();
}

struct Reader {
  Json& in;  // fields that were read are erased

  template <class T>
  void operator()(const char* name, T& value, bool required, Kind kind) const {
    auto it = in.find(name);
    if (it == in.end()) {
      if (required) throw BadField{fmt::format("field \"{}\" is missing", name)};
      return;
    }
    Json rest;  // what a newer version put inside the field
    read(name, *it, value, kind, rest);
    in.erase(name);
    if (!rest.is_null()) in[name] = std::move(rest);
  }

  static void read(const char* name, const Json& j, std::string& value, Kind kind, Json&) {
    const bool right = kind == Kind::plain         ? j.is_string()
                       : kind == Kind::object_text ? j.is_object()
                                                   : j.is_array();
    if (!right) throw BadField{fmt::format("field \"{}\" has the wrong type", name)};
    value = kind == Kind::plain ? j.get<std::string>() : j.dump();
  }
  static void read(const char* name, const Json& j, int64_t& value, Kind, Json&) {
    value = to_int(j, name, 0, INT64_MAX);
  }
  static void read(const char* name, const Json& j, bool& value, Kind, Json&) {
    if (!j.is_boolean())
      throw BadField{fmt::format("field \"{}\" is neither true nor false", name)};
    value = j.get<bool>();
  }
  static void read(const char* name, const Json& j, int& value, Kind, Json&) {
    value = static_cast<int>(to_int(j, name, 1, 1 << 20));
  }
  static void read(const char* name, const Json& j, uint64_t& value, Kind, Json&) {
    if (!j.is_number_unsigned())
      throw BadField{fmt::format("field \"{}\" is no whole number", name)};
    value = j.get<uint64_t>();
  }
  static void read(const char* name, const Json& j, double& value, Kind, Json&) {
    value = j.is_null() ? std::numeric_limits<double>::quiet_NaN() : to_double(j, name);
  }
  static void read(const char* name, const Json& j, std::vector<double>& value, Kind, Json&) {
    if (!j.is_array()) throw BadField{fmt::format("field \"{}\" is no array", name)};
    for (const Json& sample : j) {
      value.push_back(to_double(sample, name));
      if (!(value.back() > 0) || !std::isfinite(value.back()))
        throw BadField{fmt::format("field \"{}\" has the impossible time {}", name, sample.dump())};
    }
  }
  static void read(const char* name, const Json& j, TrialStatus& value, Kind, Json&) {
    value = parse_word<TrialStatus>(j, kStatusNames, name);
  }
  static void read(const char* name, const Json& j, CheckResult& value, Kind, Json&) {
    value = parse_word<CheckResult>(j, kCheckNames, name);
  }
  static void read(const char* name, const Json& j, Target& value, Kind, Json& rest) {
    if (!j.is_object()) throw BadField{fmt::format("field \"{}\" is no object", name)};
    try {
      value = Target::from_json(j.dump());
    } catch (const UserError& e) {
      throw BadField{fmt::format("field \"{}\": {}", name, e.what())};
    }
    const Json known = Json::parse(value.to_json());
    for (const auto& [key, inner] : j.items()) {
      if (!known.contains(key)) rest[key] = inner;
    }
  }
};

void check_meaning(const Record& r) {
  if (r.status == TrialStatus::ok && r.samples_us.empty())
    throw BadField{"status is ok but samples_us is empty"};
  if (r.check == CheckResult::passed && std::isnan(r.check_error))
    throw BadField{"check is passed but check_error is no number"};
}

Record read_fields(Json j) {
  if (!j.is_object()) throw BadField{"it is no JSON object"};
  auto schema = j.find("schema");
  if (schema != j.end() && to_int(*schema, "schema", 1, INT64_MAX) > kRecordSchema) {
    throw BadField{fmt::format("schema {} is newer than {}, the newest this version reads",
                               schema->get<int64_t>(), kRecordSchema)};
  }
  Record r;
  for_each_field(r, Reader{j});
  r.newer = j.dump();
  check_meaning(r);
  return r;
}

}  // namespace

std::string_view name(TrialStatus status) { return kStatusNames.at(static_cast<size_t>(status)); }
std::string_view name(CheckResult check) { return kCheckNames.at(static_cast<size_t>(check)); }

std::optional<TrialStatus> parse_status(std::string_view word) {
  for (size_t i = 0; i < kStatusNames.size(); ++i) {
    if (word == kStatusNames[i]) return static_cast<TrialStatus>(i);
  }
  return std::nullopt;
}

std::vector<RecordField> record_fields() {
  std::vector<RecordField> out;
  const Record any;
  for_each_field(any, Describer{out});
  return out;
}

std::string tenon_version() { return TENON_VERSION; }

bool can_be_best(const Record& r) {
  return r.status == TrialStatus::ok && r.check == CheckResult::passed && !r.samples_us.empty();
}

double median_us(const Record& r) { return median(r.samples_us); }

double noise_us(const Record& r) {
  return std::max(median_deviation(r.samples_us), 0.005 * median_us(r));
}

std::string to_json_line(const Record& r) {
  Json out = Json::object();
  for_each_field(r, Writer{out});
  const Json newer = Json::parse(r.newer);
  for (const auto& [key, value] : newer.items()) {
    if (out.contains(key) && out[key].is_object() && value.is_object()) {
      out[key].update(value);
    } else if (!out.contains(key)) {
      out[key] = value;
    }
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

int64_t schema_of(std::string_view line) {
  if (json_depth(line) > kMaxJsonDepth) return 0;
  const Json j = Json::parse(line, nullptr, false);
  const auto schema = j.is_object() ? j.find("schema") : j.end();
  return schema != j.end() && schema->is_number_integer() ? schema->get<int64_t>() : 0;
}

Result<Record> parse_record(std::string_view line) {
  if (json_depth(line) > kMaxJsonDepth)
    return Failure{fmt::format("nested deeper than {}", kMaxJsonDepth)};
  try {
    return read_fields(Json::parse(line));
  } catch (const BadField& problem) {
    return Failure{problem.message};
  } catch (const Json::exception& e) {
    return Failure{fmt::format("not a whole JSON object ({})", e.what())};
  }
}

}  // namespace tenon
