#include <catch2/catch.hpp>

#include <tenon/schedule/knobs.h>

#include "tests/unit/schedule/schedule_formulas.h"

using namespace tenon;

namespace {

/// A matmul with every kind of step that fits on it.
Schedule long_schedule(const Program& program) {
  Schedule s(program, wide_target());
  auto [ko, ki] = s["C"].split("k", 16);
  const TileLoops t = s["C"].tile("i", "j", 5, 32);
  s["C"].reorder({ko, t.outer_o, t.inner_o, ki, t.outer_i, t.inner_i});
  s["C"].cache_read("B", ko, {.layout = {{1, 32, 0}, {0, 1, 0}, {1, 1, 32}}});
  const CacheWriteStages made = s["C"].cache_write(t.inner_o, {.scope = Scope::reg});
  s["D"].reverse_compute_at(t.inner_o);
  s["C"].parallel(t.outer_o).unroll(t.outer_i).vectorize(t.inner_i);
  s[made.load].vectorize("j", {.tail = Tail::mask});
  s.set_scope("B.cache", Scope::global);
  s.storage_align("B.cache", 0, 512, 16);
  s["C"].annotate("k.i", "user.depth", -3);
  s["C"].double_buffer("B.cache", ko).prefetch("A", "k.i", 4);
  return s;
}

Program program() {
  Matmul m(20, 64, 48);
  const Axis y("y", 20), x("x", 64);
  return make_program("matmul_relu", {compute("D", {y, x}, max(m.C(y, x), Expr(0.0)))});
}

/// A declaration that is none of intrinsics().
IntrinsicRef twice_sum() {
  const Tensor a = input("A", i16, {8, 2}), b = input("B", i16, {8, 2});
  const Axis i("i", 8), r("r", 2);
  return declare_intrinsic("twice_sum", compute("C", {i}, sum(a(i, r) + b(i, r) * 2, r)),
                           {{{"avx2"}, 8, "llvm.none", {"C", "B", "A"}}});
}

}  // namespace

TEST_CASE("a trace read back from JSON replays to the same text") {
  const Program p = program();
  const Schedule s = long_schedule(p);
  verify_tree(s);
  const std::string text = to_json(s.trace());
  const Trace again = trace_from_json(text);
  CHECK(again == s.trace());
  CHECK(to_json(again) == text);
  const Schedule copy = replay(p, wide_target(), again);
  CHECK(copy.print() == s.print());
  CHECK(program_hash(copy.program()) == program_hash(s.program()));
}

TEST_CASE("a step's texts") {
  const Split split{"C", "i", 6, Tail::guard};
  CHECK(to_cpp(split) == R"(s["C"].split("i", 6);)");
  CHECK(to_text(Primitive(split)) == R"(split(C, "i", 6))");
  CHECK(to_json(Primitive(split)) == R"({"step":"split","stage":"C","loop":"i","factor":6})");
  const Vectorize mask{"C", "j", Tail::mask};
  CHECK(to_cpp(Primitive(mask)) == R"(s["C"].vectorize("j", {.tail = Tail::mask});)");
  const CacheRead read{"C", "B", "k.o", Scope::reg, {{1, 16, 0}, {0, 1, 0}, {1, 1, 16}}};
  CHECK(
      to_cpp(Primitive(read)) ==
      R"(s["C"].cache_read("B", "k.o", {.scope = Scope::reg, .layout = {{1, 16, 0}, {0, 1, 0}, {1, 1, 16}}});)");
  CHECK(to_cpp(Primitive(Reorder{"C", {"j", "i"}})) == R"(s["C"].reorder({"j", "i"});)");
  CHECK(to_cpp(Primitive(SetScope{"C.cache", Scope::reg})) ==
        R"(s.set_scope("C.cache", Scope::reg);)");
  const Bind bind{"C", "i", ThreadAxis::thread_y};
  CHECK(to_cpp(Primitive(bind)) == R"(s["C"].bind("i", ThreadAxis::thread_y);)");
  CHECK(to_json(Primitive(bind)) == R"({"step":"bind","stage":"C","loop":"i","axis":"thread_y"})");
  CHECK_THROWS_WITH(primitive_from_json(R"({"step":"bind","stage":"C","loop":"i","axis":"warp"})"),
                    Catch::Contains("needs block_x, block_y, block_z, thread_x"));
  CHECK(to_cpp(Primitive(Pack{"B", {{0, 1, 0}}, PackWhen::ahead})) ==
        R"(s.pack("B", {{0, 1, 0}}, {.when = PackWhen::ahead});)");
  CHECK(to_cpp(Primitive(Pack{"B", {{0, 2, 0}, {0, 1, 2}}})) ==
        R"(s.pack("B", {{0, 2, 0}, {0, 1, 2}});)");
  CHECK(to_json(Primitive(Pack{"B", {{0, 1, 0}}, PackWhen::ahead})) ==
        R"({"step":"pack","buffer":"B","layout":[[0,1,0]],"when":"ahead"})");
  CHECK(to_cpp(Primitive(StorageAlign{"T", 0, 16, 1})) == R"(s.storage_align("T", 0, 16, 1);)");
  CHECK(to_cpp(Primitive(Prefetch{"C", "B", "k", 4})) == R"(s["C"].prefetch("B", "k", 4);)");
  CHECK(to_cpp(Primitive(Prefetch{"C", "B", "j", 1, "k"})) ==
        R"(s["C"].prefetch("B", "j", 1, {.over = "k"});)");
  CHECK(to_cpp(Primitive(DoubleBuffer{"C", "B.cache", "k.o"})) ==
        R"(s["C"].double_buffer("B.cache", "k.o");)");
  CHECK(to_cpp(Primitive(Annotate{"C", "i", "user.x", 2})) ==
        R"(s["C"].annotate("i", "user.x", 2);)");
  CHECK(to_cpp(Primitive(ComputeInline{"P"})) == R"(s["P"].compute_inline();)");
  CHECK(to_cpp(Primitive(RFactor{"C", "k.i"})) == R"(s["C"].rfactor("k.i");)");
  CHECK(to_cpp(Primitive(RFactor{"C", "k.i", 0})) == R"(s["C"].rfactor("k.i", {.dim = 0});)");
  CHECK(to_cpp(Primitive(ReverseComputeInline{"D"})) == R"(s["D"].reverse_compute_inline();)");
  CHECK(to_cpp(Primitive(PadEinsum{"C", {4, 1, 8}})) == R"(s["C"].pad_einsum({4, 1, 8});)");
  CHECK(to_json(Primitive(PadEinsum{"C", {4, 1, 8}})) ==
        R"({"step":"pad_einsum","stage":"C","paddings":[4,1,8]})");
  CHECK(to_cpp(Primitive(Split{"C", "i", 4, Tail::shift_inward})) ==
        R"(s["C"].split("i", 4, {.tail = Tail::shift_inward});)");
  CHECK(to_json(Primitive(Split{"C", "i", 4, Tail::pad})) ==
        R"({"step":"split","stage":"C","loop":"i","factor":4,"tail":"pad"})");
  CHECK(to_cpp(Primitive(ComputeAt{"P", "C", "i.o"})) == R"(s["P"].compute_at("C", "i.o");)");
}

TEST_CASE("a declared intrinsic goes with its step, one that is built in by its name") {
  const Tensorize known{"C", "j.i", "dot4_u8i8_i32"};
  CHECK(to_json(Primitive(known)) ==
        R"({"step":"tensorize","stage":"C","loop":"j.i","intrinsic":"dot4_u8i8_i32"})");
  CHECK(to_cpp(Primitive(known)) == R"(s["C"].tensorize("j.i", "dot4_u8i8_i32");)");

  const Tensorize own{"C", "j.i", twice_sum()};
  const Primitive again = primitive_from_json(to_json(Primitive(own)));
  CHECK(again == Primitive(own));
  CHECK_FALSE(again == Primitive(known));
  CHECK(to_text(again) == R"(tensorize(C, "j.i", "twice_sum"))");
  // The C++ text holds the declaration as JSON: read it back as a compiler would.
  const std::string cpp = to_cpp(again), open = "intrinsic_from_json(R\"json(";
  const size_t from = cpp.find(open) + open.size(), to = cpp.find(")json\"));");
  REQUIRE(from < to);
  const auto read = intrinsic_from_json(cpp.substr(from, to - from));
  CHECK(IntrinsicRef(read) == own.intrinsic);
  CHECK(read->implementations == own.intrinsic->implementations);
  CHECK(print(read->formula) == print(own.intrinsic->formula));
}

TEST_CASE("equality and hash of steps follow their fields") {
  const Primitive a = Split{"C", "i", 6, Tail::guard}, b = Split{"C", "i", 6, Tail::exact},
                  c = Unroll{"C", "i"};
  CHECK(a == a);
  CHECK_FALSE(a == b);
  CHECK_FALSE(a == c);
  CHECK(hash(a) == hash(Primitive(Split{"C", "i", 6, Tail::guard})));
  CHECK(hash(a) != hash(b));
}

TEST_CASE("a fresh step of every kind survives JSON") {
  for (const std::string& name : primitive_names()) {
    // clang-format off
    for (const Primitive& step : {
          Primitive(Split{"S", "l", 3}),
          Primitive(Tile{"S", "a", "b", 2, 3}),
          Primitive(Fuse{"S", "a", "b"}),
          Primitive(Reorder{"S", {"a", "b"}}),
          Primitive(Parallel{"S", "a"}),
          Primitive(Vectorize{"S", "a", Tail::mask}),
          Primitive(Unroll{"S", "a"}),
          Primitive(Partition{"S", "a"}),
          Primitive(ComputeAt{"S", "T", "a"}),
          Primitive(ReverseComputeAt{"S", "T", "a"}),
          Primitive(ComputeInline{"S"}),
          Primitive(CacheRead{"S", "B", "a", Scope::reg, {{0, 1, 0}}}),
          Primitive(CacheWrite{"S", "a", Scope::reg}),
          Primitive(SetScope{"B", Scope::reg}),
          Primitive(DecomposeReduction{"S", "a"}),
          Primitive(RFactor{"S", "a", 1}),
          Primitive(ReverseComputeInline{"S"}),
          Primitive(PadEinsum{"S", {1, 4}}),
          Primitive(Split{"S", "l", 3, Tail::shift_inward}),
          Primitive(Split{"S", "l", 3, Tail::pad}),
          Primitive(Tensorize{"S", "a", "dot4_u8i8_i32"}),
          Primitive(Tensorize{"S", "a", twice_sum()}),
          Primitive(Bind{"S", "a", ThreadAxis::block_z}),
          Primitive(StorageAlign{"B", 1, 16, 4}),
          Primitive(Prefetch{"S", "B", "a", 3}),
          Primitive(DoubleBuffer{"S", "B", "a"}),
          Primitive(Annotate{"S", "a", "user.k", -7}),
          Primitive(Pack{"B", {{0, 1, 0}}, PackWhen::ahead})}) {
      // clang-format on
      if (primitive_name(step) != name) continue;
      CHECK(primitive_from_json(to_json(step)) == step);
    }
  }
}

TEST_CASE("a point of knobs survives JSON") {
  const std::string text = R"({"at":"inner","pack":1,"tile":[4,8]})";
  const Point point = Point::from_json(text);
  CHECK(point.to_json() == text);
  CHECK(point.tile("tile") == std::vector<int64_t>{4, 8});
  CHECK(Point::from_json(point.to_json()) == point);
}
