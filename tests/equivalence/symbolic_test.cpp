#include <catch2/catch.hpp>

#include <tenon/ir/bind_symbols.h>
#include <tenon/ir/ops.h>
#include <tenon/schedule/roles.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <cstdlib>
#include <iostream>

#include "interp/interp.h"
#include "lower/lower.h"
#include "tests/fuzz/draw.h"
#include "tests/fuzz/symbolic_formula.h"

// Formulas of symbolic extents under random schedules: one program, interpreted at many sizes, as a
// loop tree and as flat code.

using namespace tenon;

namespace {

constexpr int64_t kCases = 600;
constexpr int64_t kSeed = 20261130;
constexpr int kSizesPerCase = 5;

using Sizes = std::map<std::string, int64_t>;
using Data = std::vector<std::vector<int32_t>>;

/// Runs a program of `formula`'s parameters: random inputs, outputs full of rubbish.
Data run(const Program& formula, const Program& program, const Sizes& sizes) {
  Rng rng(5);
  Data data;
  for (const Param& p : bind_symbols(formula, sizes).params) {
    int64_t count = 1;
    for (const Expr& e : p.buffer->shape) count *= as_int(e).value();
    auto& values = data.emplace_back(static_cast<size_t>(count));
    for (int32_t& v : values) v = static_cast<int32_t>(rng.between(-20, 20));
  }
  std::vector<HostBuffer> args;
  for (auto& values : data) args.push_back({values.data()});
  interpret(program, args, {.dims = sizes});
  return data;
}

std::string text_of(const Sizes& sizes) {
  std::string out;
  for (const auto& [name, size] : sizes) out += fmt::format("{} = {} ", name, size);
  return out;
}

/// At which sizes `program` does not do what the formula says, and why; empty when it always does.
std::string difference(const Program& formula, const Program& program,
                       const std::vector<Sizes>& all) {
  for (const Sizes& sizes : all) {
    try {
      if (run(formula, program, sizes) != run(formula, formula, sizes))
        return text_of(sizes) + "gives other values";
    } catch (const Error& e) {
      return text_of(sizes) + e.what();
    }
  }
  return "";
}

void check_flat(const Program& formula, const Schedule& s, const std::vector<Sizes>& all,
                int64_t* refused) {
  try {
    const Program flat = lower(s.program(), s.target());
    CHECK(verify_errors(flat, Form::Flat) == std::vector<std::string>{});
    CHECK(difference(formula, flat, all) == "");
  } catch (const UserError& e) {  // too large a tile, a register picked at run time, an operand
    CHECK_THAT(e.what(), Catch::Contains("register buffer") || Catch::Contains("vectorised") ||
                             Catch::Contains("cannot be tensorized"));
    ++*refused;
  } catch (const InternalError& e) {
    FAIL_CHECK(e.what());
  }
}

}  // namespace

TEST_CASE("random schedules of symbolic extents are right at every size") {
  const int64_t seed = from_environment("TENON_SEED", kSeed);
  const int64_t only = from_environment("TENON_CASE", -1);
  const int64_t first = std::max<int64_t>(only, 0),
                last = only < 0 ? from_environment("TENON_CASES", kCases) : only + 1;
  int64_t accepted = 0, refused = 0, not_lowered = 0;
  for (int64_t n = first; n < last; ++n) {
    Rng rng(static_cast<uint64_t>(seed) * 15485863 + static_cast<uint64_t>(n));
    const SymbolicFormula f = symbolic_formula(rng);
    std::vector<Sizes> all;
    for (int k = 0; k < kSizesPerCase; ++k) all.push_back(random_sizes(f.program, rng));
    Schedule s(f.program, narrow_target());
    const int64_t attempts = rng.between(4, 24);
    for (int64_t k = 0; k < attempts; ++k)
      ++(s.try_apply(random_step(s, rng)) ? refused : accepted);
    INFO("TENON_SEED=" << seed << " TENON_CASE=" << n << " " << f.kind << "\n"
                       << to_cpp(s.trace()) << s.print());
    CHECK(verify_errors(s.program(), Form::LoopTree) == std::vector<std::string>{});
    CHECK(difference(f.program, s.program(), all) == "");
    check_flat(f.program, s, all, &not_lowered);
  }
  std::cout << fmt::format(
      "symbolic: {} programs, {} steps accepted, {} refused; {} programs refused by lower\n",
      last - first, accepted, refused, not_lowered);
  if (only < 0) {
    CHECK(accepted * 3 > refused);
    CHECK(not_lowered * 4 < last - first);
  }
}

TEST_CASE("a trace replays on the same formula with other extents or is refused in words") {
  const int64_t seed = from_environment("TENON_SEED", kSeed);
  const int64_t only = from_environment("TENON_CASE", -1);
  const int64_t first = std::max<int64_t>(only, 0),
                last = only < 0 ? from_environment("TENON_CASES", kCases) : only + 1;
  int64_t replayed = 0, refused = 0;
  for (int64_t n = first; n < last; ++n) {
    Rng rng(static_cast<uint64_t>(seed) * 32452843 + static_cast<uint64_t>(n));
    const SymbolicFormula f = symbolic_formula(rng);
    std::vector<Sizes> all;
    for (int k = 0; k < kSizesPerCase; ++k) all.push_back(random_sizes(f.program, rng));
    Schedule s(bind_symbols(f.program, all[0]), narrow_target());
    const int64_t attempts = rng.between(2, 12);
    for (int64_t k = 0; k < attempts; ++k) s.try_apply(random_step(s, rng));
    const Trace trace = trace_from_json(to_json(s.trace()));  // as from a log
    INFO("TENON_SEED=" << seed << " TENON_CASE=" << n << " " << f.kind << " from "
                       << text_of(all[0]) << "\n"
                       << to_cpp(trace));
    // On each of the other sizes, and on the formula that leaves them open.
    for (size_t k = 1; k <= all.size(); ++k) {
      const bool open = k == all.size();
      const Program other = open ? f.program : bind_symbols(f.program, all[k]);
      INFO("on " << (open ? "symbols" : text_of(all[k])));
      try {
        const Schedule again = replay(other, narrow_target(), trace);
        CHECK(again.trace() == trace);
        for (const Sizes& sizes : open ? all : std::vector<Sizes>{all[k]})
          CHECK(run(f.program, again.program(), sizes) == run(f.program, f.program, sizes));
        ++replayed;
      } catch (const ScheduleError& e) {
        CHECK_THAT(e.what(), Catch::Contains("schedule error in") && Catch::Contains(", step "));
        ++refused;
      }
    }
  }
  std::cout << fmt::format("symbolic: traces replayed at {} other extents, refused at {}\n",
                           replayed, refused);
  if (only < 0) CHECK(replayed > refused);
}

TEST_CASE("the generic template is right at every size of a symbolic extent") {
  const int64_t seed = from_environment("TENON_SEED", kSeed);
  int64_t refused = 0, vectorized = 0;
  for (int64_t n = 0; n < 80; ++n) {
    Rng rng(static_cast<uint64_t>(seed) + 77 * static_cast<uint64_t>(n));
    const SymbolicFormula f = symbolic_formula(rng);
    std::vector<Sizes> all;
    for (int k = 0; k < kSizesPerCase; ++k) all.push_back(random_sizes(f.program, rng));
    Schedule s(f.program, narrow_target());
    Knobs knobs(rng);
    generic_template(s, knobs);
    INFO("seed " << seed << " case " << n << "\n" << to_cpp(s.trace()) << s.print());
    CHECK(difference(f.program, s.program(), all) == "");
    check_flat(f.program, s, all, &refused);
    vectorized += s.print().find("vectorize") != std::string::npos;
  }
  CHECK(refused == 0);
  CHECK(vectorized > 60);
}

TEST_CASE("D05 a symbolic extent split by 8 and vectorised writes what it should for 0 to 70") {
  const Var n = symbol("n");
  const Tensor x = input("x", i32, {n});
  const Axis i("i", n);
  const Program p =
      make_program("p", {compute("y", {i}, x(i) * int_imm(3, i32) + int_imm(1, i32))});
  Schedule s(p, narrow_target());
  s.split("i", 8);
  s.vectorize("i.i");
  CHECK_THAT(s.print(), Catch::Contains("for i.o in 0..(n+7)//8"));
  std::vector<Sizes> all;
  for (int64_t size = 0; size <= 70; ++size) all.push_back({{"n", size}});
  CHECK(difference(p, s.program(), all) == "");
  CHECK(difference(p, lower(s.program(), narrow_target()), all) == "");
}
