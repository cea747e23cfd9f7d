#include "kernels/winograd_parts.h"

#include <catch2/catch.hpp>

#include "kernels/table.h"
#include "kernels/templates.h"
#include "kernels/winograd.h"

using namespace tenon;

namespace {

Program program_of(const std::string& kernel, const std::vector<std::string>& words) {
  const KernelEntry& entry = find_kernel(kernel);
  return merge_dimensions(make_program(kernel, entry.build(parse_kernel_args(entry, words))));
}

Target wide(int cores) {
  Target t = Target::parse("x86-64/avx512");
  t.cores = cores;
  t.l1d_bytes = 48 << 10;
  t.vector_fmas = 2;
  t.far_bytes = 7;
  t.l2_bytes = 2 << 20;
  return t;
}

std::optional<WinogradParts> find(const std::vector<std::string>& words) {
  return find_winograd(program_of("conv2d_winograd", words), wide(1));
}

}  // namespace

TEST_CASE("Winograd's convolution has its parts, by the shape of its stages") {
  const auto w = find({"c_in=64", "h=14", "w=28", "c_out=48"});
  REQUIRE(w);
  CHECK(w->m == 4);
  CHECK(w->rows == "Y.rows");
  CHECK(w->input == "Y.input");
  CHECK(w->products.stage == "Y.products");
  CHECK(w->pixels == "Y.pixels");
  CHECK(w->result == "Y");
  CHECK(w->products.paired.size() == 2);
  CHECK(w->products.rows->extent == 4);
  CHECK(w->products.columns->extent == 7);
  CHECK(w->products.blocks->extent == 3);
  REQUIRE(find({"n=3", "c_in=16", "h=3", "w=2", "c_out=16", "tile=2"}));
  const Program direct =
      program_of("conv2d_blocked", {"c_in=64", "h=14", "w=14", "c_out=64", "k=3", "pad=1"});
  CHECK_FALSE(find_winograd(direct, wide(1)));
  CHECK_FALSE(find_winograd(program_of("matmul", {"m=64", "n=64", "k=64"}), wide(1)));
  const Program own = program_of("conv2d_winograd", {"c_in=64", "h=14", "w=14", "c_out=64"});
  CHECK(templates_for(own, wide(1)).front().name == "winograd");
  CHECK(templates_for(direct, wide(1)).front().name == "conv");
}

TEST_CASE("blocks of tiles fit the second cache and the registers, and keep the cores busy") {
  for (const int cores : {1, 2, 4})
    for (const char* tile : {"tile=2", "tile=4"})
      for (const auto& [channels, side] : std::vector<std::pair<const char*, const char*>>{
               {"64", "56"}, {"128", "28"}, {"256", "14"}, {"512", "7"}, {"48", "101"}}) {
        const auto w = find({std::string("c_in=") + channels, std::string("c_out=") + channels,
                             std::string("h=") + side, std::string("w=") + side, tile});
        REQUIRE(w);
        const Target target = wide(cores);
        const WinogradBlocking b = best_winograd_blocking(*w, target);
        INFO(channels << " " << side << " " << tile << " " << cores << " cores: " << b.rows << "x"
                      << b.columns << ", " << b.tile.rows << "x" << b.tile.columns << "x"
                      << b.tile.blocks << ", group " << b.group);
        const BlockedConv& c = w->products;
        CHECK(registers_used(c, b.tile, target) <= conv_registers_free(target));
        CHECK(b.tile.rows * b.tile.columns * b.tile.blocks >= 12);
        CHECK(tiles_fit(b, *w));
        const int64_t points = c.paired[0].extent * c.paired[1].extent,
                      kept = points * b.rows * b.columns * 4 * 16 * (c.reduce[0].extent + b.group);
        CHECK((kept <= target.l2_bytes || b.rows * b.columns == 1));
        const int64_t blocks = (c.rows->extent + b.rows - 1) / b.rows *
                               ((c.columns->extent + b.columns - 1) / b.columns),
                      groups = (c.blocks->extent + b.group - 1) / b.group;
        CHECK(blocks * groups >= cores);
        CHECK((b.shared_input || groups == 1));
      }
}

TEST_CASE("register tiles leave a rest only where a block is all of the image") {
  const auto w = find({"c_in=64", "h=28", "w=28", "c_out=64"});
  REQUIRE(w);
  CHECK(tiles_fit({.rows = 4, .columns = 7, .tile = {2, 7, 2}, .group = 4}, *w));
  CHECK_FALSE(tiles_fit({.rows = 4, .columns = 7, .tile = {3, 7, 1}, .group = 4}, *w));
  CHECK(tiles_fit({.rows = 7, .columns = 7, .tile = {2, 4, 2}, .group = 2}, *w));
  CHECK_FALSE(tiles_fit({.rows = 2, .columns = 7, .tile = {4, 7, 1}, .group = 4}, *w));
}

TEST_CASE("groups that threads share are made of whole register tiles") {
  const auto w = find({"c_in=256", "h=14", "w=14", "c_out=256"});
  REQUIRE(w);
  const WinogradBlocking b = best_winograd_blocking(*w, wide(2));
  CHECK(b.shared_input);
  CHECK(b.group == 8);
  CHECK(b.group % b.tile.blocks == 0);
  CHECK_FALSE(tiles_fit({.rows = 4, .columns = 4, .tile = {2, 4, 3}, .group = 8}, *w));
  CHECK(tiles_fit({.rows = 4, .columns = 4, .tile = {2, 4, 3}, .group = 16}, *w));
}

TEST_CASE("F(4x4) multiplies less than F(2x2) but on images of few tiles") {
  CHECK(winograd_products(4, 56, 56) == Approx(2.25));
  CHECK(winograd_products(2, 56, 56) == Approx(4));
  CHECK(winograd_products(4, 7, 7) == Approx(36.0 * 4 / 49));
  CHECK(winograd_tile(64, 64, 56, 56) == 4);
  CHECK(winograd_tile(256, 256, 14, 14) == 4);
  CHECK(winograd_tile(512, 512, 7, 7) == 2);
  CHECK(winograd_tile(3, 8, 224, 224) == 0);  // transforms cost more than is saved
  CHECK(winograd_error_bound(4, 64, DType::f32) > winograd_error_bound(2, 64, DType::f32));
  CHECK(winograd_error_bound(4, 64, DType::f64) < 1e-8);
}
