#include <catch2/catch.hpp>

#include "run.h"
#include "trees.h"

using namespace tenon;

namespace {

const char* const kLevels[] = {"x86-64/avx512", "x86-64/avx2", "x86-64/sse2"};

Buffer tensor(const char* name, std::vector<int64_t> shape, DType t = f32,
              Scope scope = Scope::global) {
  std::vector<Expr> extents;
  for (int64_t n : shape) extents.push_back(int_imm(n));
  return Buffer(name, t, extents, scope);
}

}  // namespace

TEST_CASE("every pass keeps the meaning of a tiled product with tails") {
  for (const char* level : kLevels) {
    const Target target = Target::parse(level);
    for (const bool registers : {true, false}) {
      for (const MatmulTree& t :
           {MatmulTree{12, 32, 8, 6, 16, 8, registers}, MatmulTree{13, 37, 9, 6, 16, 4, registers},
            MatmulTree{5, 17, 3, 8, 32, 4, registers}, MatmulTree{7, 40, 1, 4, 24, 2, registers},
            MatmulTree{1, 9, 5, 1, 5, 5, registers}}) {
        check_every_pass(matmul_tree(t), target);
      }
    }
  }
}

TEST_CASE("every pass keeps the meaning when partition has no budget") {
  for (const bool registers : {true, false}) {
    check_every_pass(matmul_tree({13, 37, 9, 6, 16, 4, registers}), Target::parse("x86-64/avx512"),
                     1);
    check_every_pass(matmul_tree({5, 17, 3, 8, 32, 4, registers}), Target::parse("x86-64/avx2"),
                     60);
  }
}

TEST_CASE("every pass keeps the meaning of padding") {
  for (const LoopMark mark : {LoopMark::serial, LoopMark::unroll, LoopMark::vectorize}) {
    for (const bool partition : {true, false}) {
      for (const auto& [width, tile] :
           std::vector<std::pair<int64_t, int64_t>>{{56, 14}, {50, 16}, {3, 8}, {1, 1}, {33, 32}}) {
        check_every_pass(padded_conv_tree(width, tile, mark, partition),
                         Target::parse("x86-64/avx512"));
      }
    }
  }
}

TEST_CASE("every pass keeps the meaning of vectorised maps") {
  const Buffer a = tensor("A", {700}), n = tensor("N", {700}, i32), o = tensor("O", {700}),
               m = tensor("M", {700}, i32), b = tensor("P", {700}, boolean);
  for (const char* level : kLevels) {
    const Target target = Target::parse(level);
    for (const int64_t size : {1, 3, 15, 16, 17, 40, 64, 300}) {
      const auto check = [&](const Buffer& out, auto value) {
        check_every_pass(map_tree(size, LoopMark::vectorize, {a, n}, out, value), target);
      };
      const auto wide = [&](const Buffer& like) { return tensor("O", {size}, like->dtype); };
      check(wide(o),
            [&](const Expr& i) { return load(a, {i}) * load(a, {i * int_imm(2) + int_imm(1)}); });
      check(wide(o), [&](const Expr& i) {
        return load(a, {int_imm(size) - i}) - load(a, {floor_div(i, int_imm(7))});
      });
      check(wide(o),
            [&](const Expr& i) { return load(a, {floor_mod(i * int_imm(5), int_imm(11))}); });
      check(wide(o), [&](const Expr& i) { return cast(f32, i) + cast(f32, load(n, {i})); });
      check(wide(o), [&](const Expr& i) {
        return select(i >= int_imm(3) && i < int_imm(12), load(a, {i - int_imm(3)}), load(a, {i}));
      });
      check(wide(m), [&](const Expr& i) {
        return select(load(n, {i}) != int_imm(0, i32), floor_div(int_imm(100, i32), load(n, {i})),
                      load(n, {i}));
      });
      check(wide(m), [&](const Expr& i) {
        return floor_mod(load(n, {i}), load(n, {i}) * load(n, {i}) + int_imm(1, i32));
      });
      check(wide(b), [&](const Expr& i) { return load(a, {i}) < float_imm(0.25); });
      check(wide(o), [&](const Expr& i) { return exp(load(a, {i})) + tanh(load(a, {i})); });
      check(wide(o),
            [&](const Expr& i) { return load(a, {cast(i64, load(n, {i})) + int_imm(8)}); });
    }
  }
}

// for y  vectorize: { T[0..4] of its own; O[y] = sum of T }
TEST_CASE("every pass keeps the meaning of a buffer inside a vectorised loop") {
  const Buffer a = tensor("A", {20, 4}), out = tensor("O", {20});
  for (const Scope scope : {Scope::global, Scope::reg}) {
    const Buffer t = tensor("T", {20, 4}, f32, scope);
    const Axis y("y", int_imm(20)), z("z", int_imm(4)), k("k", int_imm(4));
    const Var loop_y("y"), loop_z("z"), loop_k("k");
    Stage fill;
    fill.name = "T";
    fill.axes = {{y, AxisKind::spatial, loop_y}, {z, AxisKind::spatial, loop_z}};
    fill.outputs = {t};
    fill.indices = {y, z};
    fill.values = {load(a, {y, z}) * float_imm(3)};
    Stage total;
    total.name = "O";
    total.axes = {{y, AxisKind::spatial, loop_y}, {k, AxisKind::reduce, loop_k}};
    total.outputs = {out};
    total.indices = {y};
    total.values = {load(t, {y, k})};
    total.combiner = sum_combiner(f32);
    total.init = {float_imm(1)};
    const Stmt inside = make_stmt(
        Allocate{t, seq({loop(loop_z, 4, LoopMark::serial, make_stmt(fill)),
                         loop(loop_k, 4, LoopMark::serial, make_stmt(total), AxisKind::reduce)})});
    const Program p{"rows",
                    {{a, ParamRole::input}, {out, ParamRole::output}},
                    loop(loop_y, 20, LoopMark::vectorize, inside)};
    check_every_pass(p, Target::parse("x86-64/avx512"));
  }
}

// O[i] = sum over j < i: an extent that no pass may take for constant, by a guard of two loops.
TEST_CASE("every pass keeps the meaning of a triangular guard") {
  const Buffer a = tensor("A", {30}), out = tensor("O", {30});
  for (const LoopMark mark : {LoopMark::serial, LoopMark::parallel, LoopMark::vectorize}) {
    const Axis i("i", int_imm(30)), j("j", int_imm(30));
    const Var loop_i("i"), loop_j("j");
    Stage s;
    s.name = "O";
    s.axes = {{i, AxisKind::spatial, loop_i}, {j, AxisKind::reduce, loop_j}};
    s.reduce_guard = Expr(loop_j) < Expr(loop_i);
    s.outputs = {out};
    s.indices = {i};
    s.values = {load(a, {j})};
    s.combiner = sum_combiner(f32);
    s.init = {zero(f32)};
    const Stmt body =
        loop(loop_i, 30, mark, loop(loop_j, 30, LoopMark::serial, make_stmt(s), AxisKind::reduce));
    check_every_pass({"prefix", {{a, ParamRole::input}, {out, ParamRole::output}}, body},
                     Target::parse("x86-64/avx512"));
  }
}
