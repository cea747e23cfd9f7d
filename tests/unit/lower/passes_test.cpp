#include <tenon/support/error.h>

#include <catch2/catch.hpp>

#include "lower/lower.h"
#include "lower/passes.h"
#include "trees.h"

using namespace tenon;

namespace {

Target avx512() { return Target::parse("x86-64/avx512"); }

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Buffer vec(const char* name, int64_t n, DType t = f32) { return Buffer(name, t, {int_imm(n)}); }

std::string lowered(const Program& p) { return print(lower(p, avx512())); }

}  // namespace

TEST_CASE("expand_inits puts the init above the outermost reduction loop and keeps marks") {
  const Program p = expand_inits(matmul_tree({12, 128, 16, 6, 64, 8}));
  const std::string text = print(p);
  const size_t init = text.find("stage C.init");
  REQUIRE(init != std::string::npos);
  CHECK(init < text.find("for k.o"));
  CHECK(text.find("for j.o") < init);
  CHECK(has(text,
            "stage C.init: C.tile[12,128] f32 register\n"
            "      for i.i in 0..6  unroll\n"
            "        for j.i in 0..64  vectorize\n"));
  CHECK(verify_errors(p, Form::LoopTree).empty());
}

TEST_CASE("lower_stages keeps both guards on the update and only the spatial one on the init") {
  const std::string text = print(lower_stages(expand_inits(matmul_tree({10, 64, 13, 4, 64, 8}))));
  CHECK(has(text, "if i.o * 4 + i.i < 10\n          C.tile[i.o*4+i.i, j.o*64+j.i] = 0.0"));
  CHECK(has(text, "if i.o * 4 + i.i < 10 && k.o * 8 + k.i < 13\n"));
}

TEST_CASE("lower_stages makes a condition on what counts a branch, unless lanes differ in it") {
  const Buffer a = vec("A", 40), y = vec("Y", 32);
  const Axis j("j", int_imm(32)), k("k", int_imm(9));
  const Var loop_j("j"), loop_k("k");
  const Expr at = Expr(j) + k - 1;
  Stage s;
  s.name = "Y";
  s.axes = {{j, AxisKind::spatial, loop_j}, {k, AxisKind::reduce, loop_k}};
  s.outputs = {y};
  s.indices = {j};
  s.values = {select(Expr(k) < 5 && at >= 0, load(a, {at}), float_imm(0))};
  s.combiner = sum_combiner(f32);
  const auto text = [&](LoopMark mark) {
    const Stmt inner = loop(loop_j, 32, mark, make_stmt(s));
    const Program p{"window",
                    {{a, ParamRole::input}, {y, ParamRole::output}},
                    loop(loop_k, 9, LoopMark::serial, inner, AxisKind::reduce)};
    return print(lower_stages(p));
  };
  CHECK(has(text(LoopMark::serial), "if k < 5 && j + k - 1 >= 0\n"));
  CHECK(has(text(LoopMark::serial), "Y[j] = Y[j] + A[j+k-1]"));
  CHECK(has(text(LoopMark::vectorize), "if k < 5\n"));
  CHECK(has(text(LoopMark::vectorize), "Y[j] = Y[j] + select(j + k - 1 >= 0, A[j+k-1], 0.0)"));
}

TEST_CASE("lower_stages reads a whole tuple before it writes one element") {
  const Buffer a = vec("A", 8), best("best", f32, {int_imm(1)}), at("at", i64, {int_imm(1)});
  Combiner c;
  c.name = "argmax";
  c.lhs = {Var("v0", {f32, 1}), Var("n0")};
  c.rhs = {Var("v1", {f32, 1}), Var("n1")};
  const Expr keep = Expr(c.lhs[0]) >= Expr(c.rhs[0]);
  c.result = {select(keep, c.lhs[0], c.rhs[0]), select(keep, c.lhs[1], c.rhs[1])};
  c.identity = {float_imm(-1e30), int_imm(0)};
  const Axis i("i", int_imm(8));
  const Var loop_i("i");
  Stage s;
  s.name = "arg";
  s.axes = {{i, AxisKind::reduce, loop_i}};
  s.outputs = {best, at};
  s.indices = {int_imm(0)};
  s.values = {load(a, {i}), i};
  s.combiner = std::make_shared<const Combiner>(c);
  s.init = c.identity;
  const Program p{"argmax",
                  {{a, ParamRole::input}, {best, ParamRole::output}, {at, ParamRole::output}},
                  loop(loop_i, 8, LoopMark::serial, make_stmt(s), AxisKind::reduce)};
  const std::string text = print(lower_stages(expand_inits(p)));
  const size_t last_read = text.rfind("= at["), first_write = text.rfind("best[0] =");
  REQUIRE(last_read != std::string::npos);
  REQUIRE(first_write != std::string::npos);
  CHECK(last_read < first_write);
}

TEST_CASE("compact_buffers shrinks a tile to the box under its Allocate") {
  const Program p =
      compact_buffers(lower_stages(expand_inits(matmul_tree({100, 1000, 77, 6, 64, 8}))), avx512());
  const std::string text = print(p);
  CHECK(has(text, "allocate C.tile[6,64] f32 register"));
  CHECK(has(text, "C.tile[i.i, j.i] = 0.0"));
}

TEST_CASE("compact_buffers finds the box of a quotient that mixes outer and inner loops") {
  const Buffer t("T", f32, {7, 6}), out("out", f32, {42});
  const Var o("o"), i("i"), a("a"), b("b");
  const Expr point = Expr(o) * 4 + i;
  const Stmt write = make_stmt(Store{t, {floor_div(Expr(o) * 2, 3) + a, b}, float_imm(1), {}});
  const Stmt read =
      make_stmt(Store{out, {point}, load(t, {floor_div(point, 6), floor_mod(point, 6)}), {}});
  const Stmt body =
      make_stmt(Allocate{t, seq({loop(a, 2, LoopMark::serial, loop(b, 6, LoopMark::serial, write)),
                                 loop(i, 4, LoopMark::serial, read)})});
  const Program p{"fused", {{out, ParamRole::output}}, loop(o, 10, LoopMark::serial, body)};
  CHECK(has(print(compact_buffers(p, avx512())), "allocate T[2,6] f32"));
}

TEST_CASE("compact_buffers pads the vectorised dimension of registers to whole vectors") {
  const std::string text = print(
      compact_buffers(lower_stages(expand_inits(matmul_tree({12, 200, 8, 6, 40, 8}))), avx512()));
  CHECK(has(text, "allocate C.tile[6,48] f32 register"));
}

TEST_CASE("a register tile of more than 128 vectors is refused with its numbers") {
  CHECK_THROWS_WITH(
      lower(matmul_tree({64, 1024, 8, 32, 128, 8}), avx512()),
      Catch::Contains("register buffer C.tile of 32x128 needs 256 vectors of 16 x f32, "
                      "the limit is 128"));
}

TEST_CASE("partition_loops leaves no guard in body or tails and keeps parallel loops whole") {
  Program p = lower_stages(expand_inits(matmul_tree({100, 1000, 77, 6, 64, 8})));
  p = partition_loops(compact_buffers(p, avx512()), 4000);
  const std::string text = print(p);
  CHECK_FALSE(has(text, "if i.o*6"));
  CHECK_FALSE(has(text, " < 1000"));
  CHECK_FALSE(has(text, " < 77"));
  CHECK(has(text, "for i.o in 0..17  parallel\n  if i.o < 16\n    for j.o in 0..15"));
  CHECK(has(text, "for i.i in 0..4  unroll\n"));
  CHECK(has(text, "for j.i in 0..40  vectorize"));
  CHECK(has(text, "for k.i in 0..5  reduce"));
  CHECK(text.find("parallel") == text.rfind("parallel"));
}

TEST_CASE("partition_loops keeps guards when the copies would be too many") {
  Program p = lower_stages(expand_inits(matmul_tree({100, 1000, 77, 6, 64, 8})));
  p = partition_loops(compact_buffers(p, avx512()), 1);
  CHECK(has(print(p), "if i.o * 6 + i.i < 100 && j.o * 64 + j.i < 1000"));
}

TEST_CASE("partition_loops follows the quotient and the remainder of a fused loop") {
  const SplitAxis i("i", 10, 4), j("j", 9, 4);
  const Var fused("i.o_j.o");
  const VarMap unfuse{{i.outer, floor_div(Expr(fused), int_imm(3))},
                      {j.outer, floor_mod(Expr(fused), int_imm(3))}};
  const Buffer out("O", f32, {int_imm(10), int_imm(9)});
  Stage s;
  s.name = "O";
  s.axes = {{i.axis, AxisKind::spatial, substitute(i.value, unfuse)},
            {j.axis, AxisKind::spatial, substitute(j.value, unfuse)}};
  s.spatial_guard = substitute(both(i.guard, j.guard), unfuse);
  s.outputs = {out};
  s.indices = {i.axis, j.axis};
  s.values = {float_imm(1)};
  const Stmt body =
      loop(fused, 9, LoopMark::parallel,
           loop(i.inner, 4, LoopMark::serial, loop(j.inner, 4, LoopMark::serial, make_stmt(s))));
  const std::string text =
      print(partition_loops(lower_stages({"ones", {{out, ParamRole::output}}, body}), 4000));
  CHECK(has(text, "if i.o_j.o.q < 2"));
  CHECK(has(text, "if i.o_j.o.r < 2"));
  CHECK(has(text, "for i.i in 0..2\n"));
  CHECK(has(text, "O[8+i.i, 8] = 1.0"));
}

TEST_CASE("partition_loops takes padding apart where the loop asks for it") {
  const std::string text = lowered(padded_conv_tree(56, 14, LoopMark::unroll, true));
  CHECK_FALSE(has(text, "select"));
  CHECK(has(text, "for w.o in 1..3"));
  CHECK(has(lowered(padded_conv_tree(56, 14, LoopMark::unroll, false)), "select"));
}

TEST_CASE("partition_loops trims lanes to their guard where it takes padding apart") {
  const std::string text = print(partition_loops(
      compact_buffers(
          lower_stages(expand_inits(padded_conv_tree(28, 32, LoopMark::vectorize, true))),
          avx512()),
      4000));
  CHECK(has(text, "in 0..28  vectorize"));
  CHECK_FALSE(has(text, "in 0..32"));
}

TEST_CASE("partition_loops gives each of several joined parts a loop of its own") {
  const Buffer a = vec("A", 4), b = vec("B", 9), c = vec("C", 7), out = vec("O", 20);
  Program p = map_tree(20, LoopMark::serial, {a, b, c}, out, [&](const Expr& i) {
    return select(i < int_imm(4), load(a, {i}),
                  select(i < int_imm(13), load(b, {i - int_imm(4)}), load(c, {i - int_imm(13)})));
  });
  CHECK(has(lowered(p), "select"));
  For joined = *p.body.as<For>();
  joined.notes["partition"] = 1;
  p.body = make_stmt(joined);
  const std::string text = lowered(p);
  CHECK_FALSE(has(text, "select"));
  for (const char* part : {"in 0..4", "in 4..13", "in 13..20"}) CHECK(has(text, part));
}

TEST_CASE("flatten_buffers joins the quotient and the remainder of one number") {
  const Buffer in(BufferNode{"A", f32, {int_imm(4), int_imm(5), int_imm(6)}, Scope::global}),
      out = vec("O", 120);
  const auto flat = [&](int64_t by) {
    return print(
        flatten_buffers(lower_stages(map_tree(120, LoopMark::serial, {in}, out, [&](const Expr& i) {
          const Expr row = floor_div(i, int_imm(6));
          return load(in, {floor_div(row, int_imm(by)), floor_mod(row, int_imm(by)),
                           floor_mod(i, int_imm(6))});
        }))));
  };
  CHECK(has(flat(5), "O[i] = A[i]"));
  CHECK(has(flat(4), "i//6//4"));  // the dimension is not of that size
}

TEST_CASE("flatten_buffers applies a layout") {
  BufferNode node{
      "P", f32,    {int_imm(4), int_imm(48)}, Scope::global, {{1, 16, 0}, {0}, {1, 1, 16}},
      {},  nullptr};
  const Buffer packed(node), out = vec("O", 4);
  const std::string text = print(
      flatten_buffers(lower_stages(map_tree(4, LoopMark::serial, {packed}, out, [&](const Expr& i) {
        return load(packed, {i, i + int_imm(17)});
      }))));
  CHECK(has(text, "P[((i+17)//16*4+i)*16+(i+17)%16]"));
  CHECK(has(text, "input P[192]"));
}

TEST_CASE("vectorize_loops makes chunks and one constant mask for the rest") {
  const Buffer a = vec("A", 40), c = vec("C", 40);
  const std::string text = lowered(map_tree(
      40, LoopMark::vectorize, {a}, c, [&](const Expr& i) { return load(a, {i}) * float_imm(2); }));
  CHECK(has(text,
            "for i.v in 0..2  unroll\n"
            "  C[ramp(i.v*16, 1, 16)] = A[ramp(i.v*16, 1, 16)] * broadcast(2.0, 16)\n"));
  CHECK(has(text,
            "C[ramp(32, 1, 16); ramp(0, 1, 16)<broadcast(8, 16)] = "
            "A[ramp(32, 1, 16); ramp(0, 1, 16)<broadcast(8, 16)] * broadcast(2.0, 16)\n"));
}

TEST_CASE("vectorize_loops: stride 0 is a scalar load, other strides gather, blocks stay ramps") {
  const Buffer a = vec("A", 640), s = vec("S", 4), c = vec("C", 32);
  const std::string text = lowered(map_tree(32, LoopMark::vectorize, {a, s}, c, [&](const Expr& i) {
    const Expr block = floor_div(i, int_imm(16)) * int_imm(320) + floor_mod(i, int_imm(16));
    return load(a, {i * int_imm(3)}) + load(a, {block}) + load(s, {floor_div(i, int_imm(16))});
  }));
  CHECK(has(text, "A[ramp(i.v*48, 3, 16)]"));
  CHECK(has(text, "A[ramp(i.v*320, 1, 16)]"));
  CHECK(has(text, "broadcast(S[i.v], 16)"));
}

TEST_CASE("vectorize_loops follows the widest stored type and narrows short loops") {
  const Buffer a = vec("A", 64), d = vec("D", 64, f64), e = vec("E", 4);
  CHECK(has(lowered(map_tree(64, LoopMark::vectorize, {a}, d,
                             [&](const Expr& i) { return cast(f64, load(a, {i})); })),
            "ramp(i.v*8, 1, 8)"));
  CHECK(has(lowered(map_tree(4, LoopMark::vectorize, {a}, e,
                             [&](const Expr& i) { return load(a, {i}); })),
            "E[ramp(0, 1, 4)] = A[ramp(0, 1, 4)]"));
}

TEST_CASE("loads under a select carry its condition unless they are always inside") {
  const Buffer a = vec("A", 32), c = vec("C", 32);
  const auto shifted = [&](int64_t by) {
    return lowered(map_tree(32, LoopMark::vectorize, {a}, c, [&](const Expr& i) {
      return select(i >= int_imm(4), load(a, {i + int_imm(by)}), float_imm(0));
    }));
  };
  CHECK(has(shifted(-4), "A[ramp(i.v*16-4, 1, 16); broadcast(4, 16)<=ramp(i.v*16, 1, 16)]"));
  CHECK(has(shifted(0), "A[ramp(i.v*16, 1, 16)]"));
  const std::string scalar = lowered(map_tree(32, LoopMark::serial, {a}, c, [&](const Expr& i) {
    return select(i >= int_imm(4), load(a, {i - int_imm(4)}), float_imm(0));
  }));
  CHECK(has(scalar, "A[i-4; 4<=i]"));
}

TEST_CASE("what cannot be vectorised is refused in words") {
  const Buffer a = vec("A", 32), c = vec("C", 1);
  Program p =
      map_tree(32, LoopMark::vectorize, {a}, c, [&](const Expr& i) { return load(a, {i}); });
  For loop = *p.body.as<For>();
  Stage s = *loop.body.as<Stage>();
  s.indices = {int_imm(0)};
  loop.body = make_stmt(s);
  p.body = make_stmt(loop);
  CHECK_THROWS_WITH(lower(p, avx512()),
                    Catch::Contains("loop \"i\" cannot be vectorised: all its iterations write the "
                                    "same element C[0]"));
  loop.kind = AxisKind::reduce;
  p.body = make_stmt(loop);
  CHECK_THROWS_WITH(lower(p, avx512()),
                    Catch::Contains("its lanes are not combined by one operation in C"));
  const Var outer("o");
  p.body = tenon::loop(outer, 2, LoopMark::vectorize, p.body);
  CHECK_THROWS_WITH(lower(p, avx512()),
                    Catch::Contains("it encloses loop \"i\", which is vectorised"));
}

TEST_CASE(
    "simplify_program substitutes loops of one iteration and makes inner parallel loops serial") {
  const Buffer out("O", f32, {int_imm(4), int_imm(4)});
  const Var i("i"), j("j"), one("one");
  const Stmt store = make_stmt(Store{out, {Expr(i) + Expr(one), j}, float_imm(1), {}, false});
  const Stmt body = loop(i, 4, LoopMark::parallel,
                         loop(one, 1, LoopMark::serial, loop(j, 4, LoopMark::parallel, store)));
  const std::string text = print(simplify_program({"ones", {{out, ParamRole::output}}, body}));
  CHECK(has(text, "for i in 0..4  parallel\n  for j in 0..4\n    O[i, j] = 1.0"));
}

TEST_CASE("lower gives verified flat code and reports every pass") {
  std::vector<std::string> passes;
  LowerOptions options;
  options.after_pass = [&](std::string_view pass, const Program&) { passes.emplace_back(pass); };
  for (const bool registers : {false, true}) {
    for (const MatmulTree& t : {MatmulTree{96, 128, 64, 6, 64, 8, registers},
                                MatmulTree{100, 1000, 77, 6, 64, 8, registers},
                                MatmulTree{5, 17, 3, 8, 32, 4, registers}}) {
      passes.clear();
      const Program flat = lower(matmul_tree(t), avx512(), options);
      INFO(print(flat));
      CHECK(verify_errors(flat, Form::Flat) == std::vector<std::string>{});
      CHECK(passes == std::vector<std::string>{
                          "expand_inits", "lower_stages", "compact_buffers", "issue_prefetches",
                          "double_buffers", "partition_loops", "flatten_buffers", "vectorize_loops",
                          "expand_math", "simplify_program"});
    }
  }
}

TEST_CASE("simplify_program takes uniform conditions out of loops") {
  const Buffer out("O", f32, {int_imm(64)});
  const Var n("n"), i("i"), j("j");
  const Expr at = Expr(i) * int_imm(8) + Expr(j);
  const Stmt store = make_stmt(Store{out, {at}, float_imm(1), {}, false});
  const Stmt guarded = make_stmt(If{Expr(n) == int_imm(2) && at < int_imm(60), store, {}});
  const Stmt body = loop(n, 3, LoopMark::serial,
                         loop(i, 8, LoopMark::serial, loop(j, 8, LoopMark::serial, guarded)));
  CHECK(has(print(simplify_program({"ones", {{out, ParamRole::output}}, body})),
            "for n in 0..3\n"
            "  if n == 2\n"
            "    for i in 0..8\n"
            "      for j in 0..8\n"
            "        if i * 8 + j < 60\n"
            "          O[i*8+j] = 1.0"));
}
