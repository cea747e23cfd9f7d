#include "kernels/window_tile.h"

#include <catch2/catch.hpp>

#include "kernels/table.h"
#include "schedule/composites/unscheduled.h"

using namespace tenon;

namespace {

Target wide(const char* level) {
  Target t = Target::parse(level);
  t.cores = 1;
  t.l1d_bytes = 48 << 10;
  t.vector_fmas = 2;
  t.far_bytes = 7;
  t.l2_bytes = 2 << 20;
  return t;
}

Contraction parts(const std::string& kernel, const std::vector<std::string>& words) {
  const KernelEntry& entry = find_kernel(kernel);
  return *find_contraction(
      merge_dimensions(make_program("p", entry.build(parse_kernel_args(entry, words)))), "Y");
}

}  // namespace

TEST_CASE("a convolution of each channel by itself has windows, others and pools have none") {
  const Contraction c = parts("conv2d", {"c_in=8", "h=19", "w=40", "c_out=8", "k=3", "pad=2",
                                         "stride=2", "dilation=3", "groups=8"});
  REQUIRE(c.windows);
  CHECK(c.reduce[c.windows->taps].loop == "kh");
  CHECK(c.windows->step == 2);
  CHECK(c.windows->dilation == 3);
  CHECK(c.windows->vector_step == 2);
  CHECK_FALSE(parts("conv2d", {"c_in=8", "h=9", "w=20", "c_out=8", "k=3"}).windows);
  CHECK_FALSE(parts("conv2d", {"c_in=8", "h=9", "w=20", "c_out=16", "k=3", "groups=8"}).windows);
  CHECK_FALSE(parts("pool", {"c=8", "h=9", "w=20", "k=3"}).windows);
}

TEST_CASE("a tile of windows fits the registers, with what its rows share") {
  for (const char* level : {"x86-64/avx512", "x86-64/avx2", "x86-64/sse2"})
    for (const char* size : {"7", "14", "28", "45", "112"})
      for (const char* k : {"3", "5"}) {
        const Target target = wide(level);
        const std::string kernel = k;
        const WindowTile best =
            best_window_tile(parts("conv2d", {"c_in=96", std::string("h=") + size,
                                              std::string("w=") + size, "c_out=96", "k=" + kernel,
                                              kernel == "3" ? "pad=1" : "pad=2", "groups=96"}),
                             true, target);
        CAPTURE(level, size, k, best.tile.extra, best.tile.vectors);
        CHECK(window_registers(best.tile.extra, best.tile.vectors) <= registers_free(target));
        CHECK(best.tile.extra * best.tile.vectors * 4 >=
              std::min<int64_t>(registers_free(target), 14));
        CHECK(best.inlined);
      }
}

TEST_CASE("more taps than can be written out read a padded copy") {
  const auto best = [](const char* k, const char* pad) {
    return best_window_tile(
        parts("conv2d", {"c_in=96", "h=56", "w=56", "c_out=96", k, pad, "groups=96"}), true,
        wide("x86-64/avx512"));
  };
  CHECK(best("k=7", "pad=3").inlined);
  const WindowTile many = best("k=11", "pad=5");
  CHECK_FALSE(many.inlined);
  CHECK(many.tile.extra * many.tile.vectors >= 12);
}

TEST_CASE("rows from beyond the second cache are few at a time") {
  const auto rows = [](const char* channels) {
    const std::string c = channels;
    return best_window_tile(parts("conv2d", {"c_in=" + c, "h=56", "w=56", "c_out=" + c, "k=3",
                                             "pad=1", "groups=" + c}),
                            true, wide("x86-64/avx512"))
        .tile.extra;
  };
  CHECK(rows("512") <= 4);
  CHECK(rows("16") > 4);
}
