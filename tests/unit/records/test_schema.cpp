#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <set>

#include "autotvm/records/fields.h"
#include "sample.h"
#include "schema_check.h"

using namespace tenon;
using Json = nlohmann::json;
using Catch::Matchers::Contains;

namespace {

Json schema() {
  static const Json read =
      Json::parse(file_text(TENON_SOURCE_DIR "/autotvm/records/record.schema.json"));
  return read;
}

std::set<std::string> keys(const Json& object) {
  std::set<std::string> out;
  for (const auto& [key, value] : object.items()) out.insert(key);
  return out;
}

std::set<std::string> words(const Json& array) { return array.get<std::set<std::string>>(); }

std::set<std::string> types_of(const Json& property) {
  const Json& types = property.at("type");
  return types.is_string() ? std::set<std::string>{types.get<std::string>()} : words(types);
}

std::string violations(const Json& line) {
  std::string out;
  for (const std::string& text : schema_violations(schema(), line)) out += text + "\n";
  return out;
}

/// A line whose trial ended so.
Record ended(TrialStatus status) {
  Record r = sample_record();
  r.status = status;
  if (status == TrialStatus::ok) return r;
  r.reason = "why";
  r.samples_us.clear();
  r.check = status == TrialStatus::wrong_answer ? CheckResult::failed : CheckResult::not_run;
  r.check_error = status == TrialStatus::wrong_answer ? std::nan("") : 0;
  return r;
}

void each_description(const Json& schema, const std::string& place,
                      const std::function<void(const std::string&, const Json&)>& f) {
  for (const auto& [name, property] : schema.at("properties").items()) {
    f(place + "/" + name, property);
    if (property.contains("properties")) each_description(property, place + "/" + name, f);
  }
}

}  // namespace

TEST_CASE("the schema file and the list of fields agree in both directions") {
  std::set<std::string> names, required;
  for (const RecordField& field : record_fields()) {
    INFO(field.name);
    names.insert(field.name);
    if (field.required) required.insert(field.name);
    REQUIRE(schema()["properties"].contains(field.name));
    const Json property = schema()["properties"][field.name];
    CHECK(types_of(property) == std::set<std::string>(field.types.begin(), field.types.end()));
    CHECK(property.contains("enum") == !field.words.empty());
    if (property.contains("enum"))
      CHECK(property["enum"].get<std::vector<std::string>>() == field.words);
  }
  CHECK(keys(schema()["properties"]) == names);
  CHECK(words(schema()["required"]) == required);
  CHECK(schema()["properties"]["schema"]["maximum"] == kRecordSchema);
  CHECK(schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema");
}

TEST_CASE("the schema file and what is written of a target agree in both directions") {
  const Json target = schema()["properties"]["target"];
  const Json cpu = Json::parse(Target::host().to_json()),
             gpu = Json::parse(Target::generic_gpu().to_json());
  std::set<std::string> written = keys(cpu);
  written.insert("limits");
  CHECK(keys(target["properties"]) == written);
  CHECK(keys(target["properties"]["limits"]["properties"]) == keys(gpu["limits"]));
  const std::set<std::string> required = words(target["required"]);
  for (const std::string& name : keys(cpu)) {
    Json without = cpu;
    without.erase(name);
    INFO(name);
    if (required.count(name)) {
      CHECK_THROWS_AS(Target::from_json(without.dump()), UserError);
    } else {
      CHECK_NOTHROW(Target::from_json(without.dump()));
    }
  }
}

TEST_CASE("every property of the schema file is described") {
  each_description(schema(), "", [](const std::string& place, const Json& property) {
    INFO(place);
    CHECK(property.value("description", "").size() > 10);
  });
}

TEST_CASE("what is written satisfies the schema file, however the trial ended") {
  for (const RecordField& field : record_fields()) {
    if (field.name != "status") continue;
    REQUIRE(field.words.size() == 9);
    for (const std::string& word : field.words) {
      INFO(word);
      const Record r = ended(*parse_status(word));
      CHECK(violations(Json::parse(to_json_line(r))) == "");
      CHECK(parse_record(to_json_line(r)).ok());
    }
  }
  Record r = sample_record();
  r.target = Target::generic_gpu();
  r.newer = R"({"added_later":[1]})";
  r.seed = UINT64_MAX;
  CHECK(violations(Json::parse(to_json_line(r))) == "");
  for (const LoggedRecord& logged :
       load_log(TENON_SOURCE_DIR "/tests/search/conv_24x14x14_to_64.jsonl").records)
    CHECK(violations(Json::parse(to_json_line(logged.record))) == "");
}

TEST_CASE("a line that is refused breaks the schema file, too") {
  const Json good = Json::parse(to_json_line(sample_record()));
  const auto broken = [&](const std::string& pointer, const Json& value, const std::string& why) {
    Json line = good;
    line[Json::json_pointer(pointer)] = value;
    INFO(pointer << " = " << value);
    CHECK_THAT(violations(line), Contains(why));
    CHECK_FALSE(parse_record(line.dump()).ok());
  };
  broken("/schema", 2, "maximum");
  broken("/threads", 0, "minimum");
  broken("/status", "fine", "enum");
  broken("/check", "maybe", "enum");
  broken("/trace", "[]", "type");
  broken("/args", Json::array(), "type");
  broken("/samples_us", Json::array(), "minItems");
  broken("/samples_us/1", -3, "exclusiveMinimum");
  broken("/check_error", nullptr, "type");
  broken("/target/cores", "x", "type");
  broken("/target/vector_bits", 8, "minimum");
  broken("/trial", -1, "minimum");
  broken("/time", 5, "type");
  for (const std::string& name : words(schema()["required"])) {
    Json line = good;
    line.erase(name);
    INFO(name);
    CHECK_THAT(violations(line), Contains("lacks \"" + name + "\""));
    CHECK_FALSE(parse_record(line.dump()).ok());
  }
}
