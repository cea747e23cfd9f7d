#include <tenon/runtime/timer.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "flat.h"

using namespace tenon;
using namespace tenon::test;

// The heart of a fast matmul: a register tile of accumulators, one broadcast of A and a few vectors
// of B a step. The instructions that LLVM makes of it decide whether a kernel reaches the machine's
// peak.

namespace {

struct Tile {
  int rows, vectors, lanes;
  int64_t k = 256;
  int columns() const { return vectors * lanes; }
};

/// c[rows, columns] = a[rows, k] * b[k, columns], the tile in registers over all of k.
Program micro_kernel(const Tile& t) {
  const Buffer a = flat_buffer("a", f32, t.rows * t.k),
               b = flat_buffer("b", f32, t.k * t.columns()),
               c = flat_buffer("c", f32, t.rows * t.columns());
  const Buffer acc = flat_buffer("acc", f32, t.rows * t.columns(), Scope::reg);
  const Var k("k");
  auto over_tile = [&](const char* name, auto body) {
    const Var i(std::string("i") + name), v(std::string("v") + name);
    return loop(i, Expr(t.rows), loop(v, Expr(t.vectors), body(i, v), LoopMark::unroll),
                LoopMark::unroll);
  };
  auto at = [&](Expr i, Expr v) { return ramp(i * t.columns() + v * t.lanes, Expr(1), t.lanes); };
  auto init = over_tile(
      "0", [&](Var i, Var v) { return store(acc, at(i, v), broadcast(float_imm(0), t.lanes)); });
  auto update = over_tile("1", [&](Var i, Var v) {
    return store(
        acc, at(i, v),
        load(acc, {at(i, v)}) + broadcast(load(a, {i * t.k + k}), t.lanes) * load(b, {at(k, v)}));
  });
  auto copy_out =
      over_tile("2", [&](Var i, Var v) { return store(c, at(i, v), load(acc, {at(i, v)})); });
  return program({a, b}, {c}, allocate(acc, seq({init, loop(k, Expr(t.k), update), copy_out})));
}

/// The instructions of the loop with the most FMAs: from a label to the jump back to it.
std::vector<std::string> hot_loop(const std::string& assembly) {
  std::vector<std::string> best, current;
  std::string label;
  auto fmas = [](const std::vector<std::string>& lines) {
    return std::count_if(lines.begin(), lines.end(),
                         [](const std::string& l) { return l.find("vfmadd") == 0; });
  };
  for (const std::string& raw : split_text(assembly, '\n')) {
    const std::string line = trim(raw.substr(0, raw.find('#')));
    if (line.empty()) continue;
    if (line.back() == ':') {
      label = line.substr(0, line.size() - 1);
      current.clear();
      continue;
    }
    if (line[0] == '.') continue;
    current.push_back(line);
    const bool jumps_back = line[0] == 'j' && line.size() > label.size() && !label.empty() &&
                            line.compare(line.size() - label.size(), label.size(), label) == 0;
    if (jumps_back && fmas(current) > fmas(best)) best = current;
  }
  return best;
}

int64_t count(const std::vector<std::string>& lines, const std::string& part) {
  return std::count_if(lines.begin(), lines.end(),
                       [&](const std::string& l) { return l.find(part) != std::string::npos; });
}

bool touches_stack(const std::vector<std::string>& lines) {
  return count(lines, "(%rsp") > 0 || count(lines, "(%rbp") > 0;
}

}  // namespace

TEST_CASE("the 6x64 tile on AVX-512: 24 FMAs on zmm registers a step and nothing on the stack") {
  const Tile tile{6, 4, 16};
  const auto lines =
      hot_loop(generate_assembly(micro_kernel(tile), Target::parse("x86-64/avx512")));
  INFO(join(lines, "\n"));
  REQUIRE(count(lines, "vfmadd") == 24);
  REQUIRE(!touches_stack(lines));
  REQUIRE(count(lines, "%ymm") == 0);
  REQUIRE(count(lines, "vmulps") == 0);
  REQUIRE(static_cast<int>(lines.size()) <=
          24 + 4 + 6 + 5);  // FMAs, B, A, at most five to count and jump
}

TEST_CASE("tiles near the size of the register file do not spill") {
  struct Case {
    const char* target;
    Tile tile;
  };
  for (const Case& c : {Case{"x86-64/avx512", {8, 3, 16}}, Case{"x86-64/avx512", {12, 2, 16}},
                        Case{"x86-64/avx512", {14, 2, 16}}, Case{"x86-64/avx2", {6, 2, 8}},
                        Case{"x86-64/avx2", {4, 3, 8}}}) {
    const auto lines = hot_loop(generate_assembly(micro_kernel(c.tile), Target::parse(c.target)));
    INFO(c.target << " " << c.tile.rows << "x" << c.tile.columns() << "\n" << join(lines, "\n"));
    REQUIRE(count(lines, "vfmadd") == c.tile.rows * c.tile.vectors);
    REQUIRE(!touches_stack(lines));
    REQUIRE(static_cast<int>(lines.size()) <=
            c.tile.rows * (c.tile.vectors + 1) + c.tile.vectors + 5);
  }
}

TEST_CASE("unrolled steps of a sum that share loads do not keep them: nothing is spilled") {
  // 14 x 2 vectors += a[k + t + i] * b[k, t], t = 0..7: each element of a serves seven steps.
  const Buffer a = flat_buffer("a", f32, 300), b = flat_buffer("b", f32, 256 * 7 * 32),
               c = flat_buffer("c", f32, 14 * 32);
  const Buffer acc = flat_buffer("acc", f32, 14 * 32, Scope::reg);
  const Var k("k"), t("t"), i("i"), v("v"), i0("i0"), v0("v0"), i1("i1"), v1("v1");
  const auto at = [](Expr row, Expr vector) { return ramp(row * 32 + vector * 16, Expr(1), 16); };
  const auto tile = [](const Var& row, const Var& vector, const Stmt& body) {
    return loop(row, Expr(14), loop(vector, Expr(2), body, LoopMark::unroll), LoopMark::unroll);
  };
  const Expr weights = load(b, {ramp((Expr(k) * 7 + t) * 32 + Expr(v) * 16, Expr(1), 16)});
  const Stmt step = store(
      acc, at(i, v), load(acc, {at(i, v)}) + broadcast(load(a, {Expr(k) + t + i}), 16) * weights);
  Stmt taps = make_stmt(
      For{t, int_imm(0), int_imm(7), AxisKind::reduce, LoopMark::unroll, {}, tile(i, v, step)});
  const Stmt body =
      seq({tile(i0, v0, store(acc, at(i0, v0), broadcast(float_imm(0), 16))),
           loop(k, Expr(256), taps), tile(i1, v1, store(c, at(i1, v1), load(acc, {at(i1, v1)})))});
  const auto lines = hot_loop(
      generate_assembly(program({a, b}, {c}, allocate(acc, body)), Target::parse("x86-64/avx512")));
  INFO(join(lines, "\n"));
  REQUIRE(count(lines, "vfmadd") == 14 * 2 * 7);
  REQUIRE(!touches_stack(lines));
  REQUIRE(lines.size() <= 7 * (28 + 14 + 2) + 5);
}

TEST_CASE("micro-kernels multiply") {
  for (const Target& target : runnable_targets()) {
    const int lanes = target.lanes(f32);
    for (const Tile& tile : {Tile{6, 4, lanes}, Tile{4, 2, lanes}, Tile{1, 1, lanes, 7}}) {
      const Array a = random(f32, {tile.rows, tile.k}, 1),
                  b = random(f32, {tile.k, tile.columns()}, 2);
      const Array c = guarded_array(f32, {tile.rows, tile.columns()}, GuardAt::end);
      run(micro_kernel(tile), {guarded_copy(a), guarded_copy(b), c}, target);
      for (int64_t i = 0; i < tile.rows; ++i) {
        for (int64_t j = 0; j < tile.columns(); ++j) {
          double sum = 0, size = 0;
          for (int64_t k = 0; k < tile.k; ++k) {
            const double term = static_cast<double>(a.data<float>()[i * tile.k + k]) *
                                b.data<float>()[k * tile.columns() + j];
            sum += term, size += std::fabs(term);
          }
          REQUIRE(std::fabs(c.data<float>()[i * tile.columns() + j] - sum) <=
                  tile.k * 6e-8 * size + 1e-30);
        }
      }
    }
  }
}

TEST_CASE("how long a micro-kernel takes to compile", "[.time]") {
  const Program p = micro_kernel({6, 4, 16});
  generate_object(p, Target::host());
  const Samples s = time_repeatedly([&] { generate_object(p, Target::host()); }, 1000, 20);
  WARN("generate_object: " << s.median() << " us, least " << s.min());
  const ObjectCode object = generate_object(p, Target::host());
  const Samples l = time_repeatedly([&] { load_object(object.bytes, object.symbol); }, 1000, 20);
  WARN("load_object and unload: " << l.median() << " us, least " << l.min());
}

TEST_CASE("relu is one instruction") {
  const Buffer x = flat_buffer("x", f32, 16), y = flat_buffer("y", f32, 16);
  const Expr at = ramp(Expr(0), Expr(1), 16);
  const std::string text = generate_assembly(
      program({x}, {y}, store(y, at, max(load(x, {at}), 0.0))), Target::parse("x86-64/avx512"));
  const auto lines = split_text(text, '\n');
  INFO(text);
  REQUIRE(count(lines, "vmaxps") == 1);
  REQUIRE(count(lines, "vcmp") == 0);
}
