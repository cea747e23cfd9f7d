#include <tenon/target/peaks.h>

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <tenon/support/error.h>

using namespace tenon;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// Any x86-64, one core, caches so small that the largest working set is 64 MiB.
Target small_target() {
  Target t = Target::parse("x86-64/sse2");
  t.l2_bytes = 256 << 10;
  t.l3_bytes = 1 << 20;
  t.cores = 1;
  return t;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Exit status of `body` in a forked child, so that the environment of this process stays as it is.
template <class F>
int in_child(F body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

}  // namespace

TEST_CASE("wider vectors do more, and no probe is slower than a plain loop") {
  const Target host = Target::host();
  const double sse2 = measure_fma_gflops(Target::parse("x86-64/sse2"), 1, 0.06);
  // A chain of dependent additions does one every 4 cycles or so; the probe keeps many in flight.
  CHECK(sse2 > 4);
  if (!host.has_feature("avx2")) return;
  const double avx2 = measure_fma_gflops(Target::parse("x86-64/avx2"), 1, 0.06);
  CHECK(avx2 > 1.5 * sse2);
  if (!host.has_feature("avx512f")) return;
  CHECK(measure_fma_gflops(host, 1, 0.06) > 0.9 * avx2);
}

TEST_CASE("peaks are measured for every level") {
  const Peaks peaks = measure_peaks(small_target(), 0.2);
  INFO(peaks.to_json());
  CHECK(peaks.fma_gflops_1 > 0);
  CHECK(peaks.threads == 1);
  REQUIRE(peaks.read.size() == 4);
  for (const ReadPeak& r : peaks.read) {
    CAPTURE(r.level);
    CHECK(r.gbps_1 > 0.1);
    CHECK(r.bytes % 1024 == 0);
  }
  CHECK(peaks.read[0].gbps_1 > peaks.read[3].gbps_1);
  const Peaks again = Peaks::from_json(peaks.to_json());
  CHECK(again.to_json() == peaks.to_json());
}

TEST_CASE("a target that this machine cannot run is refused") {
  Target t = Target::host();
  t.name = "aarch64/neon";
  CHECK_THROWS_WITH(measure_fma_gflops(t, 1, 0.01), Contains("cannot run that code"));
}

TEST_CASE("text that is no peaks is refused") {
  CHECK_THROWS_WITH(Peaks::from_json("{}"), Contains("not a list of peaks"));
  CHECK_THROWS_AS(Peaks::from_json("nonsense"), UserError);
  CHECK_THROWS_WITH(
      Peaks::from_json(R"({"fma_gflops_1":0,"fma_gflops_all":1,"threads":1,"read":[]})"),
      Contains("above 0"));
}

TEST_CASE("the folder of the cache follows the environment") {
  CHECK(in_child([] {
          setenv("XDG_CACHE_HOME", "/somewhere", 1);
          if (peaks_directory() != "/somewhere/tenon") return 1;
          unsetenv("XDG_CACHE_HOME");
          setenv("HOME", "/home/user", 1);
          if (peaks_directory() != "/home/user/.cache/tenon") return 2;
          unsetenv("HOME");
          return peaks_directory().empty() ? 0 : 3;
        }) == 0);
}

TEST_CASE("peaks are kept in a file, and read back") {
  const fs::path folder =
      fs::temp_directory_path() / ("tenon-peaks-" + std::to_string(getpid())) / "deep";
  const Target target = small_target();
  const std::string first = load_or_measure_peaks(folder, target, 0.05).to_json();
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  CHECK_THAT(files[0].filename().string(), Contains("peaks-x86-64-sse2-"));
  const Peaks again = load_or_measure_peaks(folder, target, 0.05);
  CHECK(again.read[3].gbps_all == Peaks::from_json(first).read[3].gbps_all);
  CHECK(again.fma_gflops_1 >= Peaks::from_json(first).fma_gflops_1);
  Peaks low = again, high = again;
  low.fma_gflops_1 = 0.001;  // as if kept on a machine that was busy
  high.fma_gflops_1 = 1e9;
  std::ofstream(files[0]) << low.to_json();
  CHECK(load_or_measure_peaks(folder, target, 0.05).fma_gflops_1 > 1);
  CHECK(Peaks::from_json(text_of(files[0])).fma_gflops_1 > 1);
  std::ofstream(files[0]) << high.to_json();
  CHECK(load_or_measure_peaks(folder, target, 0.05).fma_gflops_1 == 1e9);
  Target other = target;
  other.cpu = "another machine with the same home";
  CHECK(load_or_measure_peaks(folder, other, 0.05).fma_gflops_1 > 0);
  CHECK(std::distance(fs::directory_iterator(folder), {}) == 2);
  std::ofstream(files[0]) << "{damaged";
  CHECK(load_or_measure_peaks(folder, target, 0.05).fma_gflops_1 > 0);
  CHECK_NOTHROW(Peaks::from_json(text_of(files[0])));  // and mended
  fs::remove_all(folder.parent_path());
}

TEST_CASE("a cache folder that cannot be made is no error") {
  CHECK(
      load_or_measure_peaks("/proc/no-folder-can-be-made-here", small_target(), 0.05).fma_gflops_1 >
      0);
  CHECK(load_or_measure_peaks("", small_target(), 0.05).fma_gflops_1 > 0);
}
