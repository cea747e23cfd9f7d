#include <catch2/catch.hpp>

#include "command.h"
#include "graph_testing.h"

namespace tenon {
namespace {

TEST_CASE("log train learns from logs, says how well it ranks, and tune takes its ranker") {
  const TemporaryFolder folder;
  const std::string options = " --threads 1 --trials 150 --seed 3 --log log.jsonl --quiet";
  for (const char* what : {"matmul m=24 n=32 k=40", "softmax rows=24 columns=64"})
    expect(0, folder.path(), "tune " + std::string(what) + options);
  const Finished trained = expect(0, folder.path(), "log train log.jsonl -o ranker.json");
  CHECK(contains(trained.out, "operators never seen: draft alone, draft + ranker"));
  CHECK(contains(trained.out, "ranker.json: learned from "));
  const Finished json = expect(0, folder.path(), "log train log.jsonl -o again.json --json");
  for (const nlohmann::json& line : json_lines(json.out)) {
    CHECK(line["points"].get<int>() >= 32);
    CHECK(line["ranker"]["rho"].get<double>() <= 1);
  }
  CHECK(read_text(folder.path() / "ranker.json") == read_text(folder.path() / "again.json"));

  const std::string tuned = "tune matmul m=16 n=48 k=40 --threads 1 --trials 4 --log b.jsonl ";
  expect(0, folder.path(), tuned + "--ranker ranker.json");
  write_text(folder.path() / "other.json", "{\"ranker\":1}");
  const Finished foreign = expect(0, folder.path(), tuned + "--ranker other.json");
  CHECK(contains(foreign.err, "other.json: no ranker"));
  CHECK(contains(foreign.err, "the draft score is used alone"));
  CHECK(contains(expect(2, folder.path(), tuned + "--ranker none.json").err,
                 "there is no ranker none.json"));
}

TEST_CASE("log train refuses logs that teach nothing, with what was in them") {
  const TemporaryFolder folder;
  expect(0, folder.path(), "tune matmul m=24 n=32 k=40 --threads 1 --trials 2 --log few.jsonl");
  const Finished few = expect(2, folder.path(), "log train few.jsonl -o ranker.json");
  CHECK(contains(few.err, "a ranker needs 32"));
  CHECK(contains(few.err, "try: tenon tune"));
  CHECK(!std::filesystem::exists(folder.path() / "ranker.json"));
}

}  // namespace
}  // namespace tenon
