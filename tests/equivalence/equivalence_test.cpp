#include <catch2/catch.hpp>

#include <tenon/ir/ops.h>
#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <cstdlib>
#include <iostream>

#include "interp/interp.h"
#include "lower/lower.h"
#include "packed_data.h"
#include "random_formula.h"
#include "random_step.h"

using namespace tenon;

namespace {

constexpr int64_t kCases = 500;
constexpr int64_t kFlatCases = 2000;
constexpr int64_t kSeed = 20261129;

/// 4 lanes of i32, so that small loops vectorize.
Target narrow_target() {
  Target t;
  t.name = "test/128";
  t.vector_bits = 128;
  t.cores = 2;
  return t;
}

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? parse_int(text).value_or(otherwise) : otherwise;
}

/// Contents of all parameters: the same inputs for each run, outputs filled with rubbish.
std::vector<std::vector<int32_t>> make_data(const RandomFormula& f, uint64_t seed) {
  Rng rng(seed);
  std::vector<std::vector<int32_t>> data;
  for (const Param& p : f.program.params) {
    int64_t count = 1;
    for (const Expr& e : p.buffer->shape) count *= *as_int(e);
    auto& values = data.emplace_back(static_cast<size_t>(count));
    for (int32_t& v : values)
      v = static_cast<int32_t>(p.buffer->name == "idx" ? rng.below(f.index_limit)
                                                       : rng.between(-20, 20));
  }
  return data;
}

std::vector<std::vector<int32_t>> run(const RandomFormula& f, const Program& program,
                                      uint64_t seed) {
  std::vector<std::vector<int32_t>> data = make_data(f, seed);
  std::vector<HostBuffer> args;
  for (auto& values : data) args.push_back({values.data()});
  interpret(program, args);
  return data;
}

/// The outputs of flat code, which takes the parameters that `scheduled` packs ahead as they are
/// stored.
std::vector<std::vector<int32_t>> run_flat(const RandomFormula& f, const Program& scheduled,
                                           const Program& flat, uint64_t seed) {
  std::vector<std::vector<int32_t>> data = make_data(f, seed);
  std::vector<HostBuffer> args;
  for (size_t k = 0; k < data.size(); ++k) {
    data[k] = as_stored(*scheduled.params[k].buffer, data[k]);
    args.push_back({data[k].data()});
  }
  interpret(flat, args);
  std::vector<std::vector<int32_t>> outputs;
  for (size_t k = 0; k < data.size(); ++k)
    if (flat.params[k].role == ParamRole::output) outputs.push_back(data[k]);
  return outputs;
}

/// Why `program` does not do what the unscheduled one does; empty when it does.
std::string difference(const RandomFormula& f, const Program& program, uint64_t seed,
                       const std::vector<std::vector<int32_t>>& expected) {
  try {
    verify(program, Form::LoopTree);
    return run(f, program, seed) == expected ? "" : "other values";
  } catch (const Error& e) {
    return e.what();
  }
}

struct Tally {
  std::map<std::string, int64_t> accepted, refused;

  void print(int64_t cases) const {
    int64_t yes = 0, no = 0;
    std::string lines;
    for (const std::string& name : primitive_names()) {
      const auto a = accepted.find(name), r = refused.find(name);
      const int64_t good = a == accepted.end() ? 0 : a->second,
                    bad = r == refused.end() ? 0 : r->second;
      lines += fmt::format("  {:<20} accepted {:>5}  refused {:>5}\n", name, good, bad);
      yes += good;
      no += bad;
    }
    std::cout << fmt::format(
        "equivalence: {} programs, {} steps accepted, {} refused ({:.0f}%)\n{}", cases, yes, no,
        100.0 * static_cast<double>(no) / static_cast<double>(std::max<int64_t>(yes + no, 1)),
        lines);
  }
};

std::string reproduce(int64_t seed, int64_t number) {
  return fmt::format("TENON_SEED={} TENON_CASE={} build/bin/test_equivalence '{}'", seed, number,
                     "random schedules compute what the formula says");
}

/// Up to a dozen steps; the first refused step of each kind costs nothing but the attempt.
void check_case(int64_t seed, int64_t number, Tally& tally) {
  Rng rng(static_cast<uint64_t>(seed) * 1000003 + static_cast<uint64_t>(number));
  const RandomFormula f = random_formula(rng);
  const uint64_t data_seed = rng.next();
  const auto expected = run(f, f.program, data_seed);
  Schedule s(f.program, narrow_target());
  const int64_t attempts = rng.between(4, 24);
  for (int64_t n = 0; n < attempts; ++n) {
    const Primitive step = random_step(s, rng);
    const std::string name(primitive_name(step));
    ++(s.try_apply(step) ? tally.refused : tally.accepted)[name];
  }
  const std::string wrong = difference(f, s.program(), data_seed, expected);
  INFO(reproduce(seed, number));
  if (!wrong.empty()) {
    Schedule partial(f.program, narrow_target());  // the first step that breaks it
    for (const Primitive& step : s.trace()) {
      partial.apply(step);
      if (!difference(f, partial.program(), data_seed, expected).empty()) break;
    }
    FAIL_CHECK("after\n" << to_cpp(partial.trace()) << wrong << "\n" << partial.print());
  }
  SUCCEED();
}

}  // namespace

TEST_CASE("random schedules compute what the formula says") {
  const int64_t seed = from_environment("TENON_SEED", kSeed);
  const int64_t only = from_environment("TENON_CASE", -1);
  Tally tally;
  if (only >= 0) {
    check_case(seed, only, tally);
    return;
  }
  const int64_t cases = from_environment("TENON_CASES", kCases);
  std::cout << "equivalence: seed " << seed << "\n";
  for (int64_t n = 0; n < cases; ++n) check_case(seed, n, tally);
  tally.print(cases);
  for (const std::string& name : primitive_names())  // gpu_test.cpp draws the steps for GPUs
    CHECK((tally.accepted[name] > 0 || name == Bind::kName));
}

TEST_CASE("random schedules still compute what the formula says as flat code") {
  const int64_t seed = from_environment("TENON_SEED", kSeed);
  const int64_t only = from_environment("TENON_CASE", -1);
  const int64_t first = std::max<int64_t>(only, 0),
                last = only < 0 ? from_environment("TENON_CASES", kFlatCases) : only + 1;
  int64_t refused = 0;
  for (int64_t n = first; n < last; ++n) {
    Rng rng(static_cast<uint64_t>(seed) * 7919 + static_cast<uint64_t>(n));
    const RandomFormula f = random_formula(rng);
    Schedule s(f.program, narrow_target());
    const int64_t attempts = rng.between(4, 24);
    for (int64_t k = 0; k < attempts; ++k) s.try_apply(random_step(s, rng));
    INFO("TENON_SEED=" << seed << " TENON_CASE=" << n << "\n" << to_cpp(s.trace()) << s.print());
    try {
      const Program flat = lower(s.program(), narrow_target());
      CHECK(verify_errors(flat, Form::Flat) == std::vector<std::string>{});
      CHECK(run_flat(f, s.program(), flat, 5) == run_flat(f, f.program, f.program, 5));
    } catch (const UserError& e) {  // too large a tile, or a register picked at run time
      CHECK_THAT(e.what(), Catch::Contains("register buffer") || Catch::Contains("vectorised"));
      ++refused;
      if (only >= 0) std::cout << e.what() << "\n";
    } catch (const InternalError& e) {
      FAIL_CHECK(e.what());
    }
  }
  std::cout << fmt::format("equivalence: {} of {} programs refused by lower\n", refused,
                           last - first);
  if (only < 0) CHECK(refused * 2 < last - first);
}

TEST_CASE("fusing the loops of an empty reduction keeps its init") {
  const Tensor a = input("A", i32, {3, 0});
  const Axis i("i", 3), k("k", 0);
  const Program plain = make_program("empty", {compute("C", {i}, sum(a(i, k), k))});
  Schedule s(plain, narrow_target());
  s["C"].split("k", 2);
  s["C"].reorder({"k.i", "k.o"});
  s["C"].fuse("k.i", "k.o");
  INFO(s.print());
  const RandomFormula f{"empty", plain, 0};
  CHECK(difference(f, s.program(), 5, run(f, plain, 5)) == "");
}

TEST_CASE("the generic template computes what the formula says at random points") {
  const int64_t seed = from_environment("TENON_SEED", kSeed);
  for (int64_t n = 0; n < 60; ++n) {
    Rng rng(static_cast<uint64_t>(seed) + 77 * static_cast<uint64_t>(n));
    const RandomFormula f = random_formula(rng);
    const auto expected = run(f, f.program, 5);
    Schedule s(f.program, narrow_target());
    Knobs knobs(rng);
    generic_template(s, knobs);
    INFO("seed " << seed << " case " << n << "\n" << to_cpp(s.trace()) << s.print());
    CHECK(difference(f, s.program(), 5, expected) == "");
  }
}
