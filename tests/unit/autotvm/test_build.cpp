#include <tenon/schedule/schedule.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "autotvm/measure/build.h"
#include "row_sums.h"
#include "scratch.h"

using namespace tenon;

namespace {

std::vector<Built> build(CompilerPool& pool, const std::vector<std::string>& names) {
  std::vector<Candidate> candidates;
  std::vector<const Program*> programs;
  for (const std::string& name : names) candidates.push_back(named_candidate(name));
  for (const Candidate& c : candidates) programs.push_back(&c.program);
  return pool.build(programs);
}

}  // namespace

TEST_CASE("compilers are kept from batch to batch, and results come in order") {
  BuildOptions options;
  options.workers = 2;
  CompilerPool pool(compile_row_sums, options);
  for (int batch = 0; batch < 3; ++batch) {
    const std::vector<Built> built =
        build(pool, {"right", "compiler_refuses", "slow", "wrong", "right"});
    REQUIRE(built.size() == 5);
    CHECK(built[0].object.symbol == "right");
    CHECK(built[1].status == TrialStatus::compile_error);
    CHECK(built[2].object.symbol == "slow");
    CHECK(built[3].object.symbol == "wrong");
    CHECK(built[4].object.bytes == built[0].object.bytes);
  }
  CHECK(pool.started() == 2);
}

TEST_CASE("what becomes most code is compiled first, and results come as asked for") {
  Scratch scratch;
  const std::string begun = scratch.folder + "/begun";
  CompilerPool pool(
      [&](const Program& program) {
        std::ofstream(begun, std::ios::app) << program.name << ' ';
        return compile_row_sums(program);
      },
      {});
  Schedule unrolled(row_sums().program, Target::host());
  unrolled.split("k", 10);
  unrolled.unroll("k.i");
  Program large = unrolled.program();
  large.name = "slow";
  const Program first = named_candidate("right").program, last = named_candidate("wrong").program;
  const std::vector<Built> built = pool.build({&first, &large, &last});
  REQUIRE(built.size() == 3);
  CHECK(built[0].object.symbol == "right");
  CHECK(built[1].object.symbol == "slow");
  CHECK(built[2].object.symbol == "wrong");
  CHECK(read_file(begun).value() == "slow right wrong ");
}

TEST_CASE("a compiler that crashed is replaced, one that grew too") {
  BuildOptions options;
  SECTION("crashed") {
    CompilerPool pool(compile_row_sums, options);
    const std::vector<Built> built = build(pool, {"compiler_crashes", "right"});
    REQUIRE(built.size() == 2);
    CHECK(built[0].status == TrialStatus::compile_error);
    CHECK(built[1].status == TrialStatus::ok);
    CHECK(pool.started() == 2);
  }
  SECTION("grew") {
    options.growth_bytes = 64 << 20;
    CompilerPool pool(
        [kept = std::make_shared<std::vector<std::string>>()](const Program& program) {
          kept->emplace_back(size_t{40} << 20, 'x');  // so much comes straight from the system
          return compile_row_sums(program);
        },
        options);
    for (const Built& b : build(pool, std::vector<std::string>(7, "right")))
      CHECK(b.status == TrialStatus::ok);
    CHECK(pool.started() == 3);  // three programs each: 0, 40 and 80 MB
  }
}
