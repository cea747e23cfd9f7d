#include <tenon/driver/driver.h>
#include <tenon/support/text.h>
#include <tenon/target/peaks.h>

#include <catch2/catch.hpp>
#include <iterator>

#include "../unit/records/sample.h"
#include "kernels/table.h"
#include "mutate.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

Task small_task() { return operator_task({"matmul", "m=8", "n=16", "k=4"}, Target::host()); }

/// Brackets inside one another: what recursion would die of.
std::string deep_json(const std::string& open, const std::string& close, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += "1";
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

std::string user_error(const std::function<void()>& f) {
  try {
    f();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no UserError";
}

/// Every reader of JSON text, by name.
const std::vector<std::pair<const char*, void (*)(const std::string&)>>& readers() {
  static const std::vector<std::pair<const char*, void (*)(const std::string&)>> list = {
      {"record",
       [](const std::string& t) {
         if (const Result<Record> r = parse_record(t); !r) throw UserError(r.error());
       }},
      {"trace", [](const std::string& t) { trace_from_json(t); }},
      {"step", [](const std::string& t) { primitive_from_json(t); }},
      {"point", [](const std::string& t) { Point::from_json(t); }},
      {"target", [](const std::string& t) { Target::from_json(t); }},
      {"peaks", [](const std::string& t) { Peaks::from_json(t); }}};
  return list;
}

int count_refused(const char* test, const std::string& text, int copies,
                  const std::function<void(const std::string&)>& use) {
  int refused = 0;
  for (int seed = 0; seed < copies; ++seed) {
    CAPTURE(test, seed);
    const CaseLimit limit(test, static_cast<uint64_t>(seed));
    Rng rng(static_cast<uint64_t>(seed));
    const std::string mutant = mutate_text(text, rng);
    CAPTURE(mutant);
    refused += run_case([&] { use(mutant); }) == End::refused;
  }
  return refused;
}

}  // namespace

TEST_CASE("deeply nested JSON is refused, whoever reads it") {
  for (const auto& reader : readers()) {
    CAPTURE(reader.first);
    for (int depth : {65, 1000, 1000000}) {
      for (const std::string& text :
           {deep_json("[", "]", depth), deep_json("{\"a\":", "}", depth), deep_json("[", "", depth),
            deep_json("[{\"step\":", "", depth)})
        CHECK_THAT(user_error([&] { reader.second(text); }), !Contains("no UserError"));
    }
  }
  CHECK_THAT(user_error([] { trace_from_json(deep_json("[", "]", 65)); }),
             Contains("trace: nested deeper than 64"));
  CHECK_THAT(user_error([] { Point::from_json(deep_json("{\"a\":", "}", 65)); }),
             Contains("knobs: nested deeper than 64"));
}

TEST_CASE("numbers that do not fit are refused, not cut") {
  CHECK_THAT(user_error([] {
               trace_from_json(
                   R"([{"step":"split","stage":"C","loop":"i","factor":18446744073709551615}])");
             }),
             Contains("at most 2^63 - 1"));
  CHECK_THAT(user_error([] { Point::from_json(R"({"tile":18446744073709551615})"); }),
             Contains("knob \"tile\""));
  std::string target = Target::parse("x86-64/avx2").to_json();
  target.replace(target.find("\"vector_bits\":256"), 17, "\"vector_bits\":4294967552");
  CHECK_THAT(user_error([&] { Target::from_json(target); }),
             Contains("\"vector_bits\" is no whole number in range"));
}

TEST_CASE("messages quote foreign text in part") {
  const std::string word(100000, 'x');
  CHECK(user_error([&] { trace_from_json("[{\"step\":\"" + word + "\"}]"); }).size() < 500);
  CHECK(user_error([&] { trace_from_json("[[\"" + word + "\"]]"); }).size() < 500);
  CHECK(user_error([&] { Point::from_json("{\"a\":{\"b\":\"" + word + "\"}}"); }).size() < 500);
}

TEST_CASE("mutated records, points, targets and peaks are read or refused") {
  const Peaks peaks{100, 200, 2, {{"L1", 32768, 100, 200}}};
  const std::string record = to_json_line(sample_record()),
                    point = R"({"tile_i":[8,4],"order":"ikj","unroll":1})";
  CHECK(count_refused("record", record, 500, [](const std::string& t) {
          const Result<Record> r = parse_record(t);
          if (!r) throw UserError(r.error());
          CHECK(parse_record(to_json_line(*r)).ok());
        }) > 100);
  CHECK(count_refused("point", point, 300, [](const std::string& t) {
          const Point p = Point::from_json(t);
          CHECK(Point::from_json(p.to_json()).values == p.values);
        }) > 50);
  CHECK(count_refused("target", Target::host().to_json(), 300, [](const std::string& t) {
          const Target target = Target::from_json(t);
          CHECK(target.lanes(f64) >= 1);
          CHECK(!target.fingerprint().empty());
        }) > 50);
  CHECK(count_refused("peaks", peaks.to_json(), 300,
                      [](const std::string& t) { Peaks::from_json(t); }) > 50);
}

TEST_CASE("mutated places in a log are read or refused") {
  for (const char* text : {"", ":", ":1", "a:", "a:0", "a:-1", "a:1x", "a:99999999999999999999"})
    CHECK_THAT(user_error([&] { LogRef::parse(text); }), Contains("is no place in a log"));
  CHECK(count_refused("log place", "tuning_logs/matmul.jsonl:17", 300, [](const std::string& t) {
          const LogRef where = LogRef::parse(t);
          CHECK(LogRef::parse(where.text()) == where);
        }) > 20);
}

TEST_CASE("mutated traces are replayed and compiled, or refused") {
  const Task task = small_task();
  const MemoryLimit memory;
  int compiled = 0;
  for (const NamedTemplate& t : task.templates) {
    CAPTURE(t.name);
    const std::string trace = to_json(
        apply_template(task, t.name, survey(t.fn, task.program, task.target).default_point())
            .trace());
    count_refused("trace", trace, 150, [&](const std::string& text) {
      const Schedule s = replay(task.program, task.target, trace_from_json(text));
      compile_object(s.program(), task.target);
      ++compiled;
    });
  }
  CHECK(compiled > 20);
  CHECK(peak_memory_bytes() < int64_t{2} << 30);
}

namespace {

/// What the operator is called with in the smallest sensible case.
std::vector<std::string> small_words(const KernelEntry& entry) {
  std::vector<std::string> words = {"type=f32", "constant="};
  for (const KernelArg& arg : entry.args) {
    const std::string value = !arg.standard.empty()                 ? arg.standard
                              : arg.kind == KernelArg::Kind::shape  ? "2x4"
                              : arg.kind == KernelArg::Kind::number ? "4"
                                                                    : "add";
    words.push_back(arg.name + "=" + value);
  }
  return words;
}

void damage_word(std::string& word, Rng& rng) {
  static const char* const kValues[] = {"0",
                                        "1",
                                        "2",
                                        "3",
                                        "-1",
                                        "007",
                                        "-0",
                                        "5000000000",
                                        "4611686018427387904",
                                        "",
                                        "all",
                                        "0,1",
                                        "1,0",
                                        "i8",
                                        "f64",
                                        "\"",
                                        "4x0",
                                        "9223372036854775807",
                                        "7x1",
                                        "4",
                                        "2x3x4x5x6x7",
                                        "99999999999x99999999999",
                                        "scalar",
                                        "B"};
  if (rng.chance(0.1)) {
    word = mutate_text(word, rng);
    return;
  }
  word = word.substr(0, word.find('=') + 1) +
         kValues[rng.below(static_cast<int64_t>(std::size(kValues)))];
}

}  // namespace

TEST_CASE("hostile arguments of every operator end in a task or a refusal") {
  const Target target = Target::host();
  const MemoryLimit memory;
  int made = 0, refused = 0;
  for (const KernelEntry& entry : kernel_table()) {
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const CaseLimit limit(entry.name.c_str(), seed);
      Rng rng(seed);
      std::vector<std::string> words = small_words(entry);
      for (int64_t n = seed == 0 ? 0 : rng.between(1, 2); n > 0; --n)
        damage_word(words[static_cast<size_t>(rng.below(static_cast<int64_t>(words.size())))], rng);
      words.insert(words.begin(), entry.name);
      const std::string call = join(words, " ");
      CAPTURE(call);
      const End end = run_case([&] {
        const Task task = operator_task(words, target);
        Point::from_json(task.args);  // numbers and words, as JSON
        default_schedule(task);
      });
      ++(end == End::done ? made : refused);
      if (seed == 0) CHECK(end == End::done);
    }
  }
  CHECK(made > 100);
  CHECK(refused > 200);
}
