#include <tenon/support/rng.h>

#include <catch2/catch.hpp>

#include "sample.h"

using namespace tenon;

// A damaged log ends in records that are whole and warnings for the rest, never in anything else.
TEST_CASE("a thousand mutated copies of a log") {
  ScratchFolder scratch;
  const std::string path = scratch.file("log.jsonl");
  std::string original;
  for (int i = 0; i < 4; ++i) original += to_json_line(sample_record(100 + i, i)) + "\n";
  const uint64_t seed = 20260131;
  INFO("seed " << seed);
  Rng rng(seed);
  int with_warnings = 0;
  for (int copy = 0; copy < 1000; ++copy) {
    std::string text = original;
    const int64_t flips = rng.below(9);
    for (int64_t f = 0; f < flips; ++f) {
      char& c = text[static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())))];
      c = static_cast<char>(c ^ (1 << rng.below(8)));
    }
    if (flips == 0 || rng.chance(0.3))
      text.resize(static_cast<size_t>(rng.below(static_cast<int64_t>(text.size()))));
    put_file(path, text);
    LoadedLog log = load_log(path);
    CHECK(log.records.size() <= 12);  // a flip may split a line, never make more records of it
    for (const LoggedRecord& r : log.records) {
      CHECK(parse_record(to_json_line(r.record)).ok());
      CHECK(read_record(r.where) == r.record);
    }
    with_warnings += !log.warnings.empty();
    best_record(log.records, sample_query());
    nearest_record(log.records, sample_query());
  }
  CHECK(with_warnings > 500);
}
