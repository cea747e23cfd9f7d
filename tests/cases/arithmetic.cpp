#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "arith/simplify.h"
#include "case_harness.h"

// Arithmetic on integers and bools.

using namespace tenon;
using namespace tenon::cases;

namespace {

int64_t floored(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

using Op2 = Expr (*)(Expr, Expr);
struct Division {
  const char* name;
  Op2 build;
  int64_t (*want)(int64_t, int64_t);  // before wrapping
};
const Division kDivisions[] = {
    {"floor_div", floor_div, floored},
    {"floor_mod", floor_mod, [](int64_t a, int64_t b) { return a - floored(a, b) * b; }},
    {"trunc_div", trunc_div, [](int64_t a, int64_t b) { return a / b; }},
    {"trunc_mod", trunc_mod, [](int64_t a, int64_t b) { return a % b; }}};

int64_t folded(const Expr& e) {
  const auto value = as_int(e);
  REQUIRE(value);
  return *value;
}

}  // namespace

TEST_CASE("D36 division table") {
  const auto literal = [](int64_t v) { return int_imm(v, i32); };
  CHECK(folded(floor_div(literal(-7), literal(3))) == -3);
  CHECK(folded(floor_mod(literal(-7), literal(3))) == 2);
  CHECK(folded(floor_div(literal(7), literal(-3))) == -3);
  CHECK(folded(floor_mod(literal(7), literal(-3))) == -2);
  CHECK(folded(floor_div(literal(-7), literal(-3))) == 2);
  CHECK(folded(floor_mod(literal(-7), literal(-3))) == -1);
  CHECK(folded(trunc_div(literal(-7), literal(3))) == -2);
  CHECK(folded(trunc_mod(literal(-7), literal(3))) == -1);
  CHECK(folded(trunc_div(literal(7), literal(-3))) == -2);
  CHECK(folded(trunc_mod(literal(7), literal(-3))) == 1);

  // All pairs folded.
  for (const Division& d : kDivisions) {
    int64_t bad = 0;
    for (int64_t a = -128; a < 128; ++a)
      for (int64_t b = -128; b < 128; ++b)
        if (b != 0)
          bad += as_int(d.build(int_imm(a, i8), int_imm(b, i8))) != wrap_int(d.want(a, b), i8);
    holds(bad == 0, "folded", fmt::format("{} of all pairs", d.name), fmt::format("{} wrong", bad));
  }

  // All pairs as variables: rows are dividends, columns divisors.
  const Tensor x = input("X", i8, {256}), y = input("Y", i8, {255});
  const auto dividend = [](int64_t n) { return n - 128; };
  const auto divisor = [](int64_t n) { return n < 128 ? n - 128 : n - 127; };
  const std::map<std::string, Array> inputs = {{"X", table<int8_t>({256}, dividend)},
                                               {"Y", table<int8_t>({255}, divisor)}};
  Work all{{}, inputs, {}};
  for (const Division& d : kDivisions) {
    const Axis i("i", 256), j("j", 255);
    all.outputs.push_back(compute(d.name, {i, j}, d.build(x(i), y(j))));
    all.want.push_back(table<int8_t>({256, 255}, [&](int64_t n) {
      return wrap_int(d.want(dividend(n / 255), divisor(n % 255)), i8);
    }));
  }
  check_default(all, "variables");
  check(all, "variables, split and vectorize", split_and_vectorize);
  check(all, "variables, parallel", parallelize);
  check(all, "variables, unroll", unroll_inner);

  // Constant divisors, which code generation treats each in its own way.
  for (const Division& d : kDivisions) {
    Work constants{{}, {inputs.begin(), std::next(inputs.begin())}, {}};
    for (int64_t b : {-128, -127, -64, -7, -3, -2, -1, 1, 2, 3, 5, 7, 10, 16, 100, 127}) {
      const Axis i("i", 256);
      constants.outputs.push_back(
          compute(fmt::format("by{}", b + 128), {i}, d.build(x(i), int_imm(b, i8))));
      constants.want.push_back(
          table<int8_t>({256}, [&](int64_t n) { return wrap_int(d.want(dividend(n), b), i8); }));
    }
    const std::string label = fmt::format("{} by constants", d.name);
    if (d.build == static_cast<Op2>(floor_div)) check_schedules(constants, label);
    check(constants, label, [](Schedule&) {});
    check(constants, label + ", split and vectorize", split_and_vectorize);
  }

  // The ends of the other types.
  for (DType t : {i16, i32, i64}) {
    const std::vector<int64_t> values = {min_int(t), min_int(t) + 1, -7, -1, 1, 3, max_int(t)};
    const int64_t count = static_cast<int64_t>(values.size());
    Work wide{{}, {}, {}};
    const Tensor u = input("U", t, {count});
    const auto array = [&](const std::vector<int64_t>& v, Shape shape) {
      Array a = Array::empty(t, std::move(shape));
      for (size_t n = 0; n < v.size(); ++n)
        std::memcpy(static_cast<char*>(a.raw()) + n * byte_size(t), &v[n], byte_size(t));
      return a;
    };
    wide.inputs["U"] = array(values, {count});
    for (const Division& d : kDivisions) {
      const Axis i("i", count), j("j", count);
      wide.outputs.push_back(compute(d.name, {i, j}, d.build(u(i), u(j))));
      std::vector<int64_t> want;
      for (int64_t a : values)
        for (int64_t b : values) {
          const bool over = a == min_int(t) && b == -1;  // lowest / -1 is lowest, remainder 0
          const bool quotient = std::string(d.name).ends_with("div");
          want.push_back(over ? (quotient ? a : 0) : d.want(a, b));
        }
      wide.want.push_back(array(want, {count, count}));
    }
    check(wide, fmt::format("ends of {}", name(t)), [](Schedule&) {});
    check(wide, fmt::format("ends of {}, split and vectorize", name(t)), split_and_vectorize);
  }
}

namespace {

/// The identity over x and y, and whether it holds everywhere in their ranges.
struct Identity {
  const char* text;
  std::function<Expr(Expr, Expr)> left, right;
  int64_t y_low = -13, y_high = 13;
};

int64_t evaluate(const Expr& e, const Var& x, int64_t xv, const Var& y, int64_t yv) {
  return as_int(simplify(substitute(e, {{x, int_imm(xv)}, {y, int_imm(yv)}}))).value();
}

bool holds_everywhere(const Identity& id, const Var& x, const Var& y) {
  const Expr a = id.left(x, y), b = id.right(x, y);
  for (int64_t xv = -60; xv <= 60; ++xv)
    for (int64_t yv = id.y_low; yv <= id.y_high; ++yv)
      if (evaluate(a, x, xv, y, yv) != evaluate(b, x, xv, y, yv)) return false;
  return true;
}

std::vector<Identity> true_identities() {
  return {{"x//2//3==x//6", [](Expr x, Expr) { return floor_div(floor_div(x, 2), 3); },
           [](Expr x, Expr) { return floor_div(x, 6); }},
          {"(x//2+1)//3==(x+2)//6", [](Expr x, Expr) { return floor_div(floor_div(x, 2) + 1, 3); },
           [](Expr x, Expr) { return floor_div(x + 2, 6); }},
          {"(8x+7)//16==x//2", [](Expr x, Expr) { return floor_div(x * 8 + 7, 16); },
           [](Expr x, Expr) { return floor_div(x, 2); }},
          {"(8x-9)//16==x//2-1", [](Expr x, Expr) { return floor_div(x * 8 - 9, 16); },
           [](Expr x, Expr) { return floor_div(x, 2) - 1; }},
          {"(4x+y)//2==2x+y//2", [](Expr x, Expr y) { return floor_div(x * 4 + y, 2); },
           [](Expr x, Expr y) { return x * 2 + floor_div(y, 2); }},
          {"(4x+y)//8==x//2, 0<=y<4", [](Expr x, Expr y) { return floor_div(x * 4 + y, 8); },
           [](Expr x, Expr) { return floor_div(x, 2); }, 0, 3},
          {"x//4*4+x%4==x", [](Expr x, Expr) { return floor_div(x, 4) * 4 + floor_mod(x, 4); },
           [](Expr x, Expr) { return x; }},
          {"x%12%4==x%4", [](Expr x, Expr) { return floor_mod(floor_mod(x, 12), 4); },
           [](Expr x, Expr) { return floor_mod(x, 4); }},
          {"x%12//4==x//4%3", [](Expr x, Expr) { return floor_div(floor_mod(x, 12), 4); },
           [](Expr x, Expr) { return floor_mod(floor_div(x, 4), 3); }}};
}

std::vector<Identity> false_identities() {
  return {{"(8x-1)//16==x//2", [](Expr x, Expr) { return floor_div(x * 8 - 1, 16); },
           [](Expr x, Expr) { return floor_div(x, 2); }},
          {"(4x+y)//8==x//2, 0<=y<=4", [](Expr x, Expr y) { return floor_div(x * 4 + y, 8); },
           [](Expr x, Expr) { return floor_div(x, 2); }, 0, 4},
          {"x%10%4==x%4", [](Expr x, Expr) { return floor_mod(floor_mod(x, 10), 4); },
           [](Expr x, Expr) { return floor_mod(x, 4); }},
          {"(-x)//4==-(x//4)", [](Expr x, Expr) { return floor_div(-x, 4); },
           [](Expr x, Expr) { return -floor_div(x, 4); }}};
}

}  // namespace

TEST_CASE("D37 simplifier by brute force") {
  const Var x("x"), y("y");
  const auto ranges = [&](const Identity& id) {
    return VarRanges{{x, Interval{-60, 60}}, {y, Interval{id.y_low, id.y_high}}};
  };
  const auto same_values = [&](const Identity& id, const Expr& e) {
    const Expr simple = simplify(e, ranges(id));
    for (int64_t xv = -60; xv <= 60; ++xv)
      for (int64_t yv = id.y_low; yv <= id.y_high; ++yv)
        if (evaluate(e, x, xv, y, yv) != evaluate(simple, x, xv, y, yv)) return false;
    return true;
  };
  for (const Identity& id : true_identities()) {
    CHECK(holds_everywhere(id, x, y));
    const Expr a = id.left(x, y), b = id.right(x, y);
    holds(prove(a == b, ranges(id)), "simplifier", id.text,
          "not proved: " + print(simplify(a == b, ranges(id))));
    holds(same_values(id, a) && same_values(id, b), "simplifier", std::string(id.text) + ", values",
          print(simplify(a, ranges(id))));
  }
  for (const Identity& id : false_identities()) {
    CHECK(!holds_everywhere(id, x, y));
    const Expr a = id.left(x, y), b = id.right(x, y);
    holds(!prove(a == b, ranges(id)), "simplifier", std::string("not ") + id.text, "proved");
    holds(same_values(id, a) && same_values(id, b) && same_values(id, cast(i64, a == b)),
          "simplifier", std::string(id.text) + ", values", print(simplify(a, ranges(id))));
  }
}

TEST_CASE("D38 wrap and saturate") {
  // What is folded, what runs on variables, and what it must be.
  struct Row {
    DType type;
    int64_t a, b;
    Op2 op;
    int64_t want;
  };
  const Op2 add = [](Expr a, Expr b) { return a + b; };
  const Op2 mul = [](Expr a, Expr b) { return a * b; };
  const Op2 neg = [](Expr a, Expr b) { return b - a; };
  const Row rows[] = {{u8, 250, 10, add, 4},
                      {i8, 127, 1, add, -128},
                      {i8, 100, 3, mul, 44},
                      {i32, INT32_MIN, 0, neg, INT32_MIN},
                      {i32, 65536, 65536, mul, 0},
                      {i16, 32767, 1, add, -32768},
                      {u16, 65535, 65535, mul, 1},
                      {u32, int64_t{4294967295}, 2, mul, int64_t{4294967294}},
                      {i64, INT64_MAX, 1, add, INT64_MIN},
                      {u64, -1, 2, mul, -2}};
  const int64_t n = 21;
  for (const Row& row : rows) {
    const std::string label = fmt::format("{} {} {}", name(row.type), row.a, row.b);
    holds(as_int(row.op(int_imm(row.a, row.type), int_imm(row.b, row.type))) == row.want, "folded",
          label, print(row.op(int_imm(row.a, row.type), int_imm(row.b, row.type))));
    const auto bits = [&](int64_t v) {
      Array a = Array::empty(row.type, {n});
      for (int64_t k = 0; k < n; ++k)
        std::memcpy(static_cast<char*>(a.raw()) + k * byte_size(row.type), &v, byte_size(row.type));
      return a;
    };
    const Tensor a = input("A", row.type, {n}), b = input("B", row.type, {n});
    const Work work{{map_of("C", n, [&](Expr i) { return row.op(a(i), b(i)); })},
                    {{"A", bits(row.a)}, {"B", bits(row.b)}},
                    {bits(row.want)}};
    check_schedules(work, label);
  }
  CHECK(folded(-int_imm(INT32_MIN, i32)) == INT32_MIN);
  const Tensor a = input("A", u8, {n}), b = input("B", i8, {n}), c = input("C", i32, {n});
  const Work wide{
      {map_of("sum_u8", n, [&](Expr i) { return cast(i32, a(i)) + 10; }),
       map_of("sum_i8", n, [&](Expr i) { return cast(i32, b(i)) + 1; }),
       map_of("negated", n, [&](Expr i) { return -c(i); })},
      {{"A", full(u8, {n}, 250)}, {"B", full(i8, {n}, 127)}, {"C", full(i32, {n}, INT32_MIN)}},
      {full(i32, {n}, 260), full(i32, {n}, 128), full(i32, {n}, INT32_MIN)}};
  check_schedules(wide, "widened first");
  holds(folded(cast(i32, int_imm(250, u8)) + 10) == 260 &&
            folded(cast(i32, int_imm(127, i8)) + 1) == 128,
        "folded", "widened first", "");
}

namespace {

/// C[i,j] = sum over k < 4*groups of A[i,k] * B[j,k], in i32.
Work dot_product(DType a_type, DType b_type, int64_t m, int64_t n, int64_t depth,
                 const std::function<double(int64_t)>& av,
                 const std::function<double(int64_t)>& bv) {
  const Tensor a = input("A", a_type, {m, depth}), b = input("B", b_type, {n, depth});
  const Axis i("i", m), j("j", n), k("k", depth);
  const Tensor c = compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(j, k)), k));
  return {{c},
          {{"A", table_of(a_type, {m, depth}, av)}, {"B", table_of(b_type, {n, depth}, bv)}},
          {table<int32_t>({m, n}, [=](int64_t q) {
            double total = 0;
            for (int64_t r = 0; r < depth; ++r)
              total += av(q / n * depth + r) * bv(q % n * depth + r);
            return total;
          })}};
}

}  // namespace

TEST_CASE("D39 int8 dot product") {
  const auto lowest = [](int64_t) { return -128.0; };
  const Work four = dot_product(i8, i8, 1, 1, 4, lowest, lowest);
  REQUIRE(four.want[0].data<int32_t>()[0] == 65536);
  check_schedules(four, "4 x (-128)*(-128)");
  const Work two = dot_product(
      u8, i8, 1, 1, 2, [](int64_t) { return 255.0; }, [](int64_t) { return 127.0; });
  REQUIRE(two.want[0].data<int32_t>()[0] == 64770);
  check_schedules(two, "2 x 255*127");
  const Work many = dot_product(
      u8, i8, 7, 19, 36, [](int64_t q) { return static_cast<double>(255 - q % 3); },
      [](int64_t q) { return q % 5 ? 127.0 : -128.0; });
  check_schedules(many, "7x19x36");

  // By the machine's own instruction where it has one: VPDPBUSD does not saturate, VPMADDUBSW does.
  const auto pair_of = [](int64_t q) { return q % 4 < 2 ? 255.0 : 0.0; };
  const auto seven = [](int64_t) { return 127.0; };
  for (int64_t n : {16, 19}) {
    const Work lanes = dot_product(u8, i8, 3, n, 4, pair_of, seven);
    REQUIRE(lanes.want[0].data<int32_t>()[0] == 64770);
    check(lanes, fmt::format("tensorize, {} lanes", n),
          [](Schedule& s) { s.tensorize("j", "dot4_u8i8_i32"); });
  }
  const Work groups = dot_product(
      u8, i8, 5, 21, 36, [](int64_t q) { return static_cast<double>(255 - q % 3); },
      [](int64_t q) { return q % 5 ? 127.0 : -128.0; });
  check(groups, "tensorize over packed groups", [](Schedule& s) {
    s.split("k", 4);
    s.split("j", 16);
    s.reorder({"j.o", "i", "k.o", "j.i", "k.i"});
    s.cache_read("B", "j.o", {.layout = {{0, 16}, {1, 4}, {0, 1, 16}, {1, 1, 4}}});
    s.tensorize("j.i", "dot4_u8i8_i32");
  });
}

TEST_CASE("D44 bool") {
  for (int64_t n = 1; n <= 40; ++n) {
    const Tensor a = input("A", boolean, {n}), b = input("B", boolean, {n}),
                 x = input("X", f32, {n});
    const auto av = [](int64_t k) { return k * k % 3 == 1; };
    const auto bv = [](int64_t k) { return k % 2 == 0; };
    const auto xv = [](int64_t k) { return static_cast<float>(k % 5 - 2); };
    const Axis k("k", n), l("l", n), c("c", n);
    int64_t count = 0;
    bool some = false, every = true;
    for (int64_t m = 0; m < n; ++m) {
      count += av(m);
      some = some || (av(m) && m > 3);
      every = every && (bv(m) || m % 2 == 1);
    }
    const Work work{
        {map_of("conj", n, [&](Expr i) { return a(i) && b(i); }),
         map_of("disj", n, [&](Expr i) { return a(i) || b(i); }),
         map_of("inverse", n, [&](Expr i) { return !a(i); }),
         map_of("xor", n, [&](Expr i) { return a(i) != b(i); }),
         map_of("above", n, [&](Expr i) { return x(i) > 0.0; }),
         map_of("pick", n, [&](Expr i) { return select(a(i), x(i), -x(i)); }),
         compute("count", {}, sum(cast(i32, a(c)), c)),
         compute("some", {}, any(a(k) && Expr(k) > 3, {k})),
         compute("every", {}, all(b(l) || floor_mod(l, 2) == 1, {l}))},
        {{"A", table<bool>({n}, av)}, {"B", table<bool>({n}, bv)}, {"X", table<float>({n}, xv)}},
        {table<bool>({n}, [&](int64_t m) { return av(m) && bv(m); }),
         table<bool>({n}, [&](int64_t m) { return av(m) || bv(m); }),
         table<bool>({n}, [&](int64_t m) { return !av(m); }),
         table<bool>({n}, [&](int64_t m) { return av(m) != bv(m); }),
         table<bool>({n}, [&](int64_t m) { return xv(m) > 0; }),
         table<float>({n}, [&](int64_t m) { return av(m) ? xv(m) : -xv(m); }),
         table<int32_t>({}, [&](int64_t) { return count; }), full(boolean, {}, some),
         full(boolean, {}, every)}};
    if (n == 37) check_schedules(work, "37");
    check(work, fmt::format("{}", n), [](Schedule&) {});
    check(work, fmt::format("{}, split and vectorize", n), split_and_vectorize);
  }
}

TEST_CASE("D45 shifts") {
  const int64_t n = 19;
  const Tensor a = input("A", i32, {n}), u = input("U", u32, {n}), by = input("by", i32, {n});
  const auto av = [](int64_t k) { return k % 2 ? -8 : 1 << 20; };
  const auto amount = [](int64_t k) {
    return std::vector<int64_t>{0, 1, 31, 32, -1, 33, 5}[k % 7];
  };
  const auto binary_of = [](BinaryOp op) {
    return [op](Expr x, Expr y) { return binary(op, std::move(x), std::move(y)); };
  };
  const auto shr = binary_of(BinaryOp::shr), shl = binary_of(BinaryOp::shl);
  const Work work{
      {map_of("right", n, [&](Expr i) { return shr(a(i), int_imm(1, i32)); }),
       map_of("right31", n, [&](Expr i) { return shr(u(i), int_imm(31, u32)); }),
       map_of("left31", n, [&](Expr i) { return shl(a(i), int_imm(31, i32)); }),
       map_of("any_right", n, [&](Expr i) { return shr(a(i), by(i)); }),
       map_of("any_left", n, [&](Expr i) { return shl(a(i), by(i)); })},
      {{"A", table<int32_t>({n}, av)},
       {"U",
        table<uint32_t>({n}, [](int64_t k) { return 0x80000000u + static_cast<uint32_t>(k); })},
       {"by", table<int32_t>({n}, amount)}},
      {table<int32_t>({n}, [&](int64_t k) { return av(k) >> 1; }), full(u32, {n}, 1),
       full(i32, {n}, 0),
       // The amount counts modulo the width.
       table<int32_t>({n}, [&](int64_t k) { return av(k) >> (amount(k) & 31); }),
       table<int32_t>({n}, [&](int64_t k) {
         return static_cast<int32_t>(static_cast<uint32_t>(av(k)) << (amount(k) & 31));
       })}};
  check_schedules(work, "i32 and u32");
  holds(as_int(shr(int_imm(-8, i32), int_imm(1, i32))) == -4 &&
            as_int(shr(int_imm(0x80000000, u32), int_imm(31, u32))) == 1,
        "folded", "shifts", "");
  for (int64_t bad : {32, -1, 64}) {
    refused_call("builder", fmt::format("constant shift by {}", bad),
                 [&] { map_of("C", n, [&](Expr i) { return shr(a(i), int_imm(bad, i32)); }); },
                 {"shr", std::to_string(bad), "32"});
    refused_call("builder", fmt::format("constant shift left by {}", bad),
                 [&] { map_of("C", n, [&](Expr i) { return shl(a(i), int_imm(bad, i32)); }); },
                 {"shl", std::to_string(bad), "32"});
  }
}
