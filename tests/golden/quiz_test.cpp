#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "golden.h"
#include "tests/unit/schedule/schedule_formulas.h"

using namespace tenon;

// The quiz of wrong schedules, examples/quiz.md: each question's message comes from the compiler.

namespace {

struct Question {
  std::string title;
  std::string formula;  // as a user writes it
  Schedule before;
  Primitive wrong;
};

const char* const kMatmul =
    "Tensor A = input(\"A\", f32, {64, 32}), B = input(\"B\", f32, {32, 48});\n"
    "Axis i(\"i\", 64), j(\"j\", 48), k(\"k\", 32);\n"
    "Tensor C = compute(\"C\", {i, j}, sum(A(i, k) * B(k, j), k));";

const char* const kBlur =
    "Tensor X = input(\"X\", f32, {34});\n"
    "Axis a(\"a\", 34), i(\"i\", 32), l(\"l\", 32);\n"
    "Tensor P = compute(\"P\", {a}, X(a) * 2.0);\n"
    "Tensor C = compute(\"C\", {i}, P(i) + P(i + 2));\n"
    "Tensor D = compute(\"D\", {l}, C(l) + 1.0);";

const char* const kMean =
    "Tensor X = input(\"X\", f32, {6, 9});\n"
    "Axis y(\"y\", 6), k(\"k\", 9), i(\"i\", 6), j(\"j\", 9);\n"
    "Tensor R = compute(\"R\", {y}, sum(X(y, k), k));\n"
    "Tensor D = compute(\"D\", {i, j}, X(i, j) - R(i));";

Schedule product() { return {Matmul(64, 48, 32).program(), wide_target()}; }

Schedule blur() {
  const Tensor x = input("X", f32, {34});
  const Axis a("a", 34), i("i", 32), l("l", 32);
  const Tensor p = compute("P", {a}, x(a) * Expr(2.0));
  const Tensor c = compute("C", {i}, p(i) + p(Expr(i) + int_imm(2)));
  return {make_program("blur", {compute("D", {l}, c(l) + Expr(1.0))}), wide_target()};
}

Schedule mean() {
  const Tensor x = input("X", f32, {6, 9});
  const Axis y("y", 6), k("k", 9), i("i", 6), j("j", 9);
  const Tensor r = compute("R", {y}, sum(x(y, k), k));
  return {make_program("mean", {compute("D", {i, j}, x(i, j) - r(i))}), wide_target()};
}

std::vector<Question> questions() {
  std::vector<Question> out;
  out.push_back({"Threads on a reduction", kMatmul, product(), Parallel{"C", "k"}});

  Schedule lanes = product();
  lanes.vectorize("j");
  out.push_back({"Vectors of vectors", kMatmul, lanes, Vectorize{"C", "i"}});

  Schedule narrow = product();
  narrow.split("j", 6);
  out.push_back({"Six lanes", kMatmul, narrow, Vectorize{"C", "j.i"}});

  Schedule gone = product();
  gone.split("i", 8);
  out.push_back({"A loop that is gone", kMatmul, gone, Unroll{"C", "i"}});
  out.push_back({"Loops of two kinds", kMatmul, product(), Fuse{"C", "j", "k"}});
  out.push_back({"Too much straight code", kMatmul,
                 Schedule(Matmul(2048, 48, 32).program(), wide_target()), Unroll{"C", "i"}});

  Schedule blocked = product();
  blocked.split("k", 8);
  blocked.reorder({"k.o", "i", "j", "k.i"});
  out.push_back({"An init inside the reduction", kMatmul, blocked, DecomposeReduction{"C", "k.i"}});

  out.push_back({"A reader is left outside", kBlur, blur(), ComputeAt{"P", "D", "l"}});
  out.push_back({"An output has no reader", kBlur, blur(), ComputeAt{"D", "C", "i"}});

  Schedule late = blur();
  late["P"].split("a", 2);
  out.push_back({"Too late to move", kBlur, late, ComputeAt{"P", "C", "i"}});
  out.push_back({"A halo is not covered", kBlur, blur(), ReverseComputeAt{"C", "P", "a"}});

  Schedule tiled = blur();
  tiled["C"].split("i", 8);
  tiled["P"].compute_at("C", "i.o");
  out.push_back({"One buffer, many lanes", kBlur, tiled, Vectorize{"C", "i.o", Tail::mask}});
  out.push_back({"A stage stands between", kBlur, tiled, Reorder{"C", {"i.i", "i.o"}}});

  out.push_back({"A sum is not a map", kMean, mean(), ComputeInline{"R"}});
  out.push_back({"A stale copy", kMatmul, product(), CacheRead{"C", "C", "i"}});
  out.push_back({"Half a layout", kMatmul, product(),
                 CacheRead{"C", "B", "k", Scope::global, {{1, 16, 0}, {0, 1, 0}}}});
  return out;
}

std::string markdown() {
  std::string out =
      "# Quiz: what is wrong with these schedules?\n\n"
      "Each step below is refused. Say why, and what to do instead, before you open the answer: it is\n"
      "the message that the compiler gives. `s` is a `Schedule` of the formula for a CPU with 16 lanes\n"
      "of f32. A test writes this page (tests/golden/quiz_test.cpp), so the messages are the real "
      "ones.\n";
  int number = 0;
  for (const Question& q : questions()) {
    const auto refusal = check(q.before.program(), q.before.target(), q.wrong);
    REQUIRE(refusal);
    out += fmt::format("\n## {}. {}\n\n```cpp\n{}\n\n{}{}  // ?\n```\n\n", ++number, q.title,
                       q.formula, to_cpp(q.before.trace()), to_cpp(q.wrong));
    out += fmt::format("<details><summary>Answer</summary>\n\n```\n{}```\n\n</details>\n",
                       q.before.message(q.wrong, *refusal));
  }
  return out;
}

}  // namespace

TEST_CASE("the quiz of wrong schedules shows the messages that they get") {
  check_golden("../../examples/quiz.md", markdown());
}
