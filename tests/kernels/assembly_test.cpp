#include <tenon/compile/compile.h>
#include <tenon/te/te.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <regex>
#include <sstream>

#include "codegen/llvm/codegen.h"
#include "kernels/blocked_conv.h"
#include "kernels/blocking.h"
#include "kernels/conv.h"
#include "kernels/table.h"
#include "kernels/templates.h"
#include "kernels/window_tile.h"
#include "lower/lower.h"

using namespace tenon;

namespace {

Program by_words(const std::string& op, const std::vector<std::string>& words) {
  const KernelEntry& entry = find_kernel(op);
  return merge_dimensions(make_program(op, entry.build(parse_kernel_args(entry, words))));
}

Program blocked_conv(int64_t ci, int64_t co, int64_t size, int64_t k, int64_t groups,
                     int64_t block) {
  ConvOptions options;
  options.pads_begin = options.pads_end = {k / 2, k / 2};
  options.groups = groups;
  const Tensor x = input("X", f32, {1, ci / block, size, size, block});
  const Tensor w = constant("W", f32, {co, ci / groups, k, k});
  return merge_dimensions(make_program("conv", {conv2d_blocked(x, w, Tensor(), options, block)}));
}

/// The body of a loop that has no other loop in it.
struct Body {
  std::vector<std::string> instructions;

  int count(const std::string& pattern) const {
    const std::regex wanted(pattern);
    return static_cast<int>(
        std::count_if(instructions.begin(), instructions.end(),
                      [&](const std::string& i) { return std::regex_search(i, wanted); }));
  }
  int size() const { return static_cast<int>(instructions.size()); }
  int fmas() const { return count("^vfn?m(add|sub)"); }
  double fma_share() const { return static_cast<double>(fmas()) / size(); }
};

/// The innermost loops of AT&T assembly: from a label to the last jump back to it, with no jump
/// back to a label in between.
std::vector<Body> innermost_loops(const std::string& text) {
  std::vector<std::string> code;
  std::map<std::string, size_t> labels;
  std::map<size_t, size_t> loops;  // first instruction -> the last jump back to it
  std::istringstream lines(text);
  const std::regex label("^([.A-Za-z_$][\\w.$]*):"), jump("^j\\w+\\s+(\\S+)$");
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    line.erase(line.find_last_not_of(" \t") + 1);
    if (std::regex_search(line, found, label)) labels[found[1]] = code.size();
    if (line.empty() || line[0] != '\t' || line[1] == '.') continue;
    code.push_back(line.substr(1));
    if (!std::regex_search(code.back(), found, jump) || !labels.count(found[1])) continue;
    loops[labels[found[1]]] = code.size();
  }
  std::vector<Body> out;
  for (const auto& [begin, end] : loops) {
    const auto inside = loops.upper_bound(begin);
    if (inside != loops.end() && inside->first < end) continue;
    out.push_back({{code.begin() + static_cast<std::ptrdiff_t>(begin),
                    code.begin() + static_cast<std::ptrdiff_t>(end)}});
  }
  return out;
}

std::string assembly_of(const Program& program, const Target& target) {
  const Task task("test", program, templates_for(program, target), target);
  return generate_assembly(lower(default_schedule(task).program(), target), target);
}

/// The innermost loops with the most multiply-adds: where the time goes.
std::vector<Body> hot_loops(const Program& program, const Target& target) {
  std::vector<Body> all = innermost_loops(assembly_of(program, target)), hot;
  int most = 0;
  for (const Body& body : all) most = std::max(most, body.fmas());
  for (Body& body : all)
    if (3 * body.fmas() > 2 * most) hot.push_back(std::move(body));
  return hot;
}

std::vector<Target> targets() {
  return {Target::parse("x86-64/avx512"), Target::parse("x86-64/avx2")};
}

/// Vectors of the target's whole width alone, and nothing of the loop put on the stack. With 16
/// registers up to `read_back` values that the loop does not change may lie there.
void check_registers(const Body& body, const Target& target, int read_back = 0) {
  const bool wide = target.vector_bits == 512;
  CHECK(body.count(wide ? "%zmm" : "%ymm") > 0);
  CHECK(body.count(wide ? "%ymm" : "%zmm") == 0);
  // A scalar is spread from memory; from a register only outside. (Zero is made by half of one.)
  CHECK(body.count("%xmm") == body.count("^vxorps\\s+%xmm"));
  CHECK(body.count(",\\s*-?\\d*\\(%rsp\\)$") == 0);
  CHECK(body.count("\\(%rsp") <= (wide ? 0 : read_back));
}

/// Steps of the tile in one iteration of the loop, and what the model counts: each step's
/// multiply-adds and its loads that are instructions of their own, and five to move on: two
/// addresses, a count, a comparison and a jump.
void check_share(const Body& body, int64_t fmas, int64_t loads) {
  CAPTURE(fmas, loads, body.size(), body.fmas());
  REQUIRE(body.fmas() % fmas == 0);
  const auto steps = static_cast<double>(body.fmas() / fmas),
             model = steps * static_cast<double>(fmas);
  CHECK(body.fma_share() >= model / (model + steps * static_cast<double>(loads) + 5));
}

}  // namespace

TEST_CASE("the hot loops of a matrix product are its register tile and nothing else") {
  for (const Target& target : targets()) {
    const Program program = by_words("matmul", {"m=512", "n=512", "k=512"});
    const RegisterTile tile = best_blocking(*find_contraction(program, "C"), target, false).tile;
    CAPTURE(target.name, tile.rows, tile.vectors);
    CHECK(tile.rows * tile.vectors >= (target.vector_registers > 16 ? 20 : 10));
    const std::vector<Body> hot = hot_loops(program, target);
    REQUIRE(!hot.empty());
    for (const Body& body : hot) {
      check_registers(body, target);
      check_share(body, tile.rows * tile.vectors, tile.rows + tile.vectors);
    }
  }
}

TEST_CASE("the hot loop of a vector times a matrix reads each vector in its multiply-add") {
  for (const Target& target : targets()) {
    const Program program = by_words("matmul", {"m=1", "n=1024", "k=1024"});
    CAPTURE(target.name);
    const std::vector<Body> hot = hot_loops(program, target);
    REQUIRE(hot.size() == 1);
    check_registers(hot[0], target);
    const int steps = hot[0].count("vbroadcastss");  // each spreads one element of the vector
    REQUIRE(steps > 0);
    check_share(hot[0], hot[0].fmas() / steps, 1);
    CHECK(hot[0].fmas() >= 4);  // sums side by side: the latency of an addition
  }
}

TEST_CASE("the hot loops of a blocked convolution are its register tile and nothing else") {
  for (const Target& target : targets())
    for (const int64_t taps : {1, 3}) {
      const Program program = blocked_conv(64, 64, 28, taps, 1, target.lanes(f32));
      const auto c = find_blocked_conv(program, roles(program).anchor, target);
      REQUIRE(c);
      const ConvTile tile = best_conv_tile(*c, target);
      CAPTURE(target.name, taps, tile.rows, tile.columns, tile.blocks);
      const std::vector<Body> hot = hot_loops(program, target);
      REQUIRE(!hot.empty());
      const int64_t pixels = tile.rows * tile.columns;
      CHECK(pixels * tile.blocks >= (target.vector_registers > 16 ? 20 : 10));
      int most = 0;
      for (const Body& body : hot) most = std::max(most, body.fmas());
      for (const Body& body : hot) {
        // With 16 registers LLVM parks a value of the tiles at the image's border, which leave taps
        // out.
        if (target.vector_registers > 16 || body.fmas() == most)
          check_registers(body, target);
        else
          CHECK(body.count("\\(%rsp") <= body.size() / 10);
        // The last tile of a row is a smaller one.
        CHECK(body.fma_share() >=
              0.9 * static_cast<double>(pixels * tile.blocks) /
                  static_cast<double>(pixels * tile.blocks + pixels + tile.blocks));
      }
    }
}

TEST_CASE("a depthwise convolution keeps its sums and shares what neighbouring taps read") {
  for (const Target& target : targets()) {
    const Program program = blocked_conv(64, 64, 28, 3, 64, target.lanes(f32));
    const auto c = find_blocked_conv(program, roles(program).anchor, target);
    REQUIRE(c);
    const ConvTile tile = best_conv_tile(*c, target);
    CAPTURE(target.name, tile.rows, tile.columns);
    const std::vector<Body> hot = hot_loops(program, target);
    REQUIRE(!hot.empty());
    for (const Body& body : hot) {
      check_registers(body, target, 9);  // the taps of W
      const int64_t loads = (tile.rows + 2) * (tile.columns + 2), pixels = tile.rows * tile.columns;
      // Each sum begins with a copy of zero at most and ends with a store, the taps of W may be
      // read each time, and tiles at the border leave some taps out.
      const auto model = static_cast<double>(9 * pixels);
      CHECK(body.fma_share() >=
            0.95 * model / (model + static_cast<double>(loads + 2 * pixels) + 9 + 4));
    }
  }
}

TEST_CASE("a depthwise convolution in plain layout reads each row once for all its taps") {
  for (const Target& target : targets()) {
    const Program program = by_words("conv2d", {"c_in=64", "h=64", "w=64", "c_out=64", "k=3",
                                                "pad=1", "groups=64", "constant=W"});
    const auto c = find_contraction(program, roles(program).anchor);
    REQUIRE(c);
    const RegisterTile tile = best_window_tile(*c, true, target).tile;
    CAPTURE(target.name, tile.extra, tile.vectors);
    const std::vector<Body> hot = hot_loops(program, target);
    REQUIRE(!hot.empty());
    for (const Body& body : hot) {
      if (target.vector_registers > 16)
        check_registers(body, target);
      else  // the taps of W
        CHECK(body.count("\\(%rsp") <= body.size() / 8);
      const int64_t sums = tile.extra * tile.vectors, loads = (tile.extra + 2) * tile.vectors * 3;
      const auto model = static_cast<double>(9 * sums);
      CHECK(body.fma_share() >= 0.9 * model / (model + static_cast<double>(loads + 2 * sums) + 13));
    }
  }
}

TEST_CASE("the loops over a row of softmax and layer_norm are whole vectors") {
  for (const Target& target : targets())
    for (const char* op : {"softmax", "layer_norm"}) {
      CAPTURE(target.name, op);
      const std::vector<Body> all =
          innermost_loops(assembly_of(by_words(op, {"rows=1024", "columns=1024"}), target));
      CHECK(all.size() >= 3);
      for (const Body& body : all) {
        check_registers(body, target, 3);  // constants of exp
        CHECK(body.size() - body.count("[xyz]mm") <= 8);
      }
    }
}

TEST_CASE("rows of a table are copied whole, in vectors, each one's place found once") {
  for (const Target& target : targets())
    for (const char* type : {"index=i64", "index=i32"}) {
      CAPTURE(target.name, type);
      const std::vector<Body> all = innermost_loops(
          assembly_of(by_words("gather", {"shape=1000x768", "indices=333", type}), target));
      REQUIRE(all.size() == 1);
      check_registers(all[0], target);
      CHECK(all[0].count("mov[au]ps") == all[0].size() - all[0].count("^(add|inc|sub|cmp|j)"));
      CHECK(all[0].count("cmov") == 0);
    }
}

TEST_CASE("exp of a row is a polynomial of multiply-adds") {
  for (const Target& target : targets()) {
    CAPTURE(target.name);
    const Body hot = hot_loops(by_words("softmax", {"rows=1024", "columns=1024"}), target).at(0);
    const int vectors = hot.count("^vmov[au]ps\\s+%[yz]mm\\d+, .*\\(");
    REQUIRE(vectors > 0);
    CHECK(hot.fmas() >= 5 * vectors);
    CHECK(hot.count("^call") == 0);
  }
}

TEST_CASE("a loop that spills or uses half a register is told from one that does not") {
  const std::string text =
      "f:\n.L1:\n\tvmovups\t%ymm1, -32(%rsp)\n\tvfmadd231ps\t(%rax), %ymm0, "
      "%ymm1\n.L2:\n\tvaddps\t%zmm0, %zmm1, %zmm1  # comment\n\tjne\t.L2\n"
      "\tdecq\t%rax\n\tjne\t.L1\n\tretq\n";
  const std::vector<Body> loops = innermost_loops(text);
  REQUIRE(loops.size() == 1);
  CHECK(loops[0].instructions ==
        std::vector<std::string>{"vaddps\t%zmm0, %zmm1, %zmm1", "jne\t.L2"});
  const Body spills = {{"vmovups\t%ymm1, -32(%rsp)", "vfmadd231ps\t(%rax), %ymm0, %ymm1"}};
  CHECK(spills.fmas() == 1);
  CHECK(spills.count(",\\s*-?\\d*\\(%rsp\\)$") == 1);
}
