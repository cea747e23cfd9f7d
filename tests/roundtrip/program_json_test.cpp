#include <tenon/ir/ops.h>
#include <tenon/ir/program_json.h>
#include <tenon/schedule/schedule.h>
#include <tenon/support/error.h>
#include <tenon/support/rng.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>
#include <limits>

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

Program matmul_relu() {
  Tensor a = input("A", f32, {6, 5}), b = input("B", f32, {5, 7});
  Axis i("i", 6), j("j", 7), k("k", 5), y("y", 6), x("x", 7);
  Tensor c = compute("C", {i, j}, sum(a(i, k) * b(k, j), k));
  return make_program("matmul_relu", {compute("D", {y, x}, max(c(y, x), Expr(0.0)))});
}

Program padded_maximum() {
  Tensor x = input("X", f32, {9});
  Axis i("i", 11), k("k", 3);
  const Expr at = Expr(i) + k - 2;
  const Expr inside = both(Expr(0) <= at, at < Expr(9));
  const Expr lowest = cast(f32, Expr(-std::numeric_limits<double>::infinity()));
  return make_program("pool", {compute("P", {i}, reduce_max(select(inside, x(at), lowest), {k}))});
}

Program largest_place() {
  Tensor x = input("X", i32, {4, 6});
  Axis i("i", 4), k("k", 6);
  return make_program("arg_max", {compute("A", {i}, arg_max(x(i, k), k)[1])});
}

Program stable_exponentials() {
  Tensor x = input("X", f64, {3, 8});
  Axis i("i", 3), k("k", 8), i2("i", 3), j2("j", 8);
  Tensor most = compute("most", {i}, reduce_max(x(i, k), {k}));
  return make_program("exponentials", {compute("E", {i2, j2}, exp(x(i2, j2) - most(i2)))});
}

std::vector<Program> programs() {
  return {matmul_relu(), padded_maximum(), largest_place(), stable_exponentials()};
}

}  // namespace

TEST_CASE("a program read back from JSON has the same text, hash and JSON") {
  for (const Program& p : programs()) {
    INFO(print(p));
    const std::string text = to_json(p);
    const Program again = program_from_json(text);
    CHECK(print(again) == print(p));
    CHECK(program_hash(again) == program_hash(p));
    CHECK(to_json(again) == text);
    CHECK(again.params.size() == p.params.size());
    for (size_t k = 0; k < p.params.size(); ++k) CHECK(again.params[k].role == p.params[k].role);
  }
}

TEST_CASE("a trace replays on a program read back from JSON") {
  const Target target = Target::parse("x86-64/avx2");
  Schedule s(matmul_relu(), target);
  s["C"].split("j", 4);
  s["C"].unroll("k");
  const Schedule again = replay(program_from_json(to_json(matmul_relu())), target, s.trace());
  CHECK(print(again.program()) == print(s.program()));
}

TEST_CASE("text that is no program is refused in words") {
  CHECK_THROWS_WITH(program_from_json("[1,2"), Contains("this is no program in JSON"));
  CHECK_THROWS_WITH(program_from_json("{}"), Contains("buffers"));
  std::string text = to_json(matmul_relu());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string out = text;
    const size_t at = out.find(from);
    REQUIRE(at != std::string::npos);
    return out.replace(at, from.size(), to);
  };
  CHECK_THROWS_WITH(program_from_json(with("\"op\":\"mul\"", "\"op\":\"mull\"")),
                    Contains("\"mull\" is no op"));
  CHECK_THROWS_WITH(program_from_json(with("\"type\":\"f32\"", "\"type\":\"f33\"")),
                    Contains("\"f33\" is no type"));
  CHECK_THROWS_WITH(program_from_json(with("\"var\":0", "\"var\":99")),
                    Contains("there is no variable 99"));
}

TEST_CASE("damaged programs end in a UserError or a program that keeps the rules") {
  Rng rng(17);
  const std::string whole = to_json(padded_maximum());
  for (int k = 0; k < 400; ++k) {
    std::string text = whole;
    text[static_cast<size_t>(rng.below(static_cast<int64_t>(text.size())))] ^=
        static_cast<char>(1 << rng.below(7));
    if (k % 4 == 0) text.resize(static_cast<size_t>(rng.below(static_cast<int64_t>(text.size()))));
    try {
      const Program p = program_from_json(text);
      CHECK(verify_errors(p, Form::LoopTree).empty());
    } catch (const UserError&) {
      SUCCEED("refused");
    }
  }
}

TEST_CASE("a tensorized program survives JSON with its intrinsic") {
  const Tensor a = input("A", u8, {4}), b = input("B", i8, {20, 4});
  const Axis j("j", 20), k("k", 4);
  const Tensor c = compute("C", {j}, sum(cast(i32, b(j, k)) * cast(i32, a(k)), k));
  Schedule s(make_program("rows", {c}), Target::parse("x86-64/avx2"));
  s.tensorize("j", "dot4_u8i8_i32");
  const Program again = program_from_json(to_json(s.program()));
  CHECK(print(again) == s.print());
  CHECK(to_json(again) == to_json(s.program()));
}
