#include "kernels/blocked_conv.h"

#include <catch2/catch.hpp>

#include "kernels/matmul.h"
#include "kernels/table.h"
#include "kernels/templates.h"

using namespace tenon;

namespace {

Program program_of(const std::string& kernel, const std::vector<std::string>& words) {
  const KernelEntry& entry = find_kernel(kernel);
  return merge_dimensions(make_program(kernel, entry.build(parse_kernel_args(entry, words))));
}

Target wide() {
  Target t = Target::parse("x86-64/avx512");
  t.cores = 2;
  t.l1d_bytes = 48 << 10;
  t.vector_fmas = 2;
  t.far_bytes = 7;
  t.l2_bytes = 2 << 20;
  return t;
}

std::optional<BlockedConv> find(const std::vector<std::string>& words) {
  return find_blocked_conv(program_of("conv2d_blocked", words), "Y", wide());
}

}  // namespace

TEST_CASE("a convolution on blocks has its parts") {
  const auto c = find({"c_in=64", "h=14", "w=28", "c_out=48", "k=3", "pad=1"});
  REQUIRE(c);
  CHECK(c->lane.extent == 16);
  CHECK(c->blocks->extent == 3);
  CHECK(c->rows->extent == 14);
  CHECK(c->columns->extent == 28);
  CHECK(c->reduce.size() == 4);
  CHECK(c->row_taps == std::vector<std::string>{"kh"});
  CHECK(c->w_buffer == "W");
  CHECK_FALSE(c->depthwise);
  const std::vector<LayoutDim> layout = {{0, 16, 0}, {1, 16, 0}, {2, 1, 0},
                                         {3, 1, 0},  {1, 1, 16}, {0, 1, 16}};
  CHECK(c->w_layout == layout);
}

TEST_CASE("a 1x1 convolution has no rows, a depthwise one its lanes in both factors") {
  const auto point = find({"c_in=64", "h=14", "w=14", "c_out=64", "k=1"});
  REQUIRE(point);
  CHECK(point->columns->extent == 14 * 14);
  const auto depth = find({"c_in=64", "h=14", "w=14", "c_out=64", "k=3", "groups=64"});
  REQUIRE(depth);
  CHECK(depth->depthwise);
  const auto first = find({"c_in=3", "h=20", "w=20", "c_out=64", "k=7", "input=plain"});
  REQUIRE(first);
  CHECK(first->reduce.back().loop == "ic");
}

TEST_CASE("a transposed convolution is one for each kind of pixel") {
  const Program program = program_of("conv2d_transpose_blocked",
                                     {"c_in=64", "h=14", "w=14", "c_out=64", "k=4", "stride=2"});
  const auto c = find_blocked_conv(program, "Y.kinds", wide());
  REQUIRE(c);
  CHECK(c->paired.size() == 2);
  CHECK(c->paired[0].extent == 2);
  CHECK(c->rows->extent == 15);
  CHECK(c->columns->extent == 15);
  CHECK(c->row_taps == std::vector<std::string>{"kh"});
  // Taps of one kind together: W[c_in, c_out, kh, kw].
  const std::vector<LayoutDim> layout = {{2, 1, 2}, {3, 1, 2}, {1, 16, 0}, {0, 16, 0},
                                         {2, 2, 0}, {3, 2, 0}, {0, 1, 16}, {1, 1, 16}};
  CHECK(c->w_layout == layout);
  const auto line = find_blocked_conv(
      program_of("conv1d_blocked", {"c_in=64", "w=50", "c_out=64", "k=3", "pad=1"}), "Y", wide());
  REQUIRE(line);
  CHECK_FALSE(line->rows);
  CHECK(line->columns->extent == 50);
}

TEST_CASE("a convolution in plain layout has channels to cut into lanes") {
  const Program program = program_of(
      "conv2d", {"n=2", "c_in=64", "h=15", "w=15", "c_out=40", "k=3", "pad=1", "stride=2"});
  const auto plain = find_plain_conv(program, "Y", wide());
  REQUIRE(plain);
  const BlockedConv& c = plain->parts;
  CHECK(c.channels == "oc");
  CHECK(plain->dimension == 1);
  CHECK(plain->step == 2);
  CHECK(plain->windows);
  CHECK(c.lane.extent == 16);
  CHECK(c.blocks->extent == 3);
  CHECK(c.rows->extent == 8);
  CHECK(c.columns->extent == 8);
  const std::vector<LayoutDim> layout = {{0, 16, 0}, {1, 1, 0}, {2, 1, 0}, {3, 1, 0}, {0, 1, 16}};
  CHECK(c.w_layout == layout);
  const auto first = [&](const std::vector<std::string>& words) {
    return templates_for(program_of("conv2d", words), wide()).front().name;
  };
  CHECK(first({"c_in=64", "h=56", "w=56", "c_out=64", "k=3", "pad=1", "stride=2"}) == "plain_conv");
  CHECK(first({"c_in=1", "h=56", "w=56", "c_out=16", "k=3"}) == "tile");  // sums too short
  CHECK(first({"n=8", "c_in=1", "h=56", "w=56", "c_out=16", "k=3"}) == "tile");
  CHECK(first({"n=4", "c_in=512", "h=7", "w=7", "c_out=512", "k=3", "pad=1"}) == "plain_conv");
  CHECK(first({"c_in=64", "h=56", "w=56", "c_out=64", "k=1"}) == "matmul");
  CHECK_FALSE(find_plain_conv(
      program_of("conv2d", {"c_in=64", "h=14", "w=16", "c_out=64", "k=3", "groups=2"}), "Y",
      wide()));
}

TEST_CASE("what is no convolution on blocks is not taken for one") {
  CHECK_FALSE(find_blocked_conv(program_of("matmul", {"m=64", "n=64", "k=64"}), "C", wide()));
  CHECK_FALSE(find_blocked_conv(program_of("batch_matmul", {"batch=3", "m=64", "n=64", "k=64"}),
                                "C", wide()));
  CHECK_FALSE(find_blocked_conv(
      program_of("conv2d", {"c_in=64", "h=14", "w=16", "c_out=64", "k=3"}), "Y", wide()));
  // Groups that a block of lanes straddles: no vector of X has one channel.
  CHECK_FALSE(find({"c_in=64", "h=14", "w=14", "c_out=64", "k=3", "groups=8"}));
}

TEST_CASE("tiles keep the multiply-adds busy and fit the registers") {
  for (const char* k : {"k=1", "k=3"})
    for (const char* h : {"7", "14", "28", "56", "13"}) {
      const auto c =
          find({"c_in=64", std::string("h=") + h, std::string("w=") + h, "c_out=256", k});
      const ConvTile tile = best_conv_tile(*c, wide());
      INFO(h << " " << k << ": " << tile.rows << "x" << tile.columns << "x" << tile.blocks);
      CHECK(registers_used(*c, tile, wide()) <= conv_registers_free(wide()));
      CHECK(tile.rows * tile.columns * tile.blocks >= 14);
      CHECK(conv_cycles(*c, tile, wide()) <= conv_cycles(*c, {1, 7, 2}, wide()));
    }
}

TEST_CASE("pixels run over channel blocks as the caches ask") {
  const auto small = find({"c_in=64", "h=56", "w=56", "c_out=64", "k=1"});
  CHECK(best_span(*small, best_conv_tile(*small, wide()), wide()) == 1);  // W stays
  const auto deep = find({"c_in=512", "h=14", "w=14", "c_out=512", "k=3", "pad=1"});
  CHECK(best_span(*deep, {1, 14, 2}, wide()) == 14);  // X stays
}
