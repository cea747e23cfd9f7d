#include <target/probe.h>

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace tenon;
namespace fs = std::filesystem;

TEST_CASE("CPU lists of sysfs") {
  CHECK(count_cpu_list("0") == 1);
  CHECK(count_cpu_list("0-3") == 4);
  CHECK(count_cpu_list("0-3,8,10-11\n") == 7);
  CHECK(!count_cpu_list(""));
  CHECK(!count_cpu_list("3-1"));
  CHECK(!count_cpu_list("a-b"));
  CHECK(!count_cpu_list("0-3-5"));
}

TEST_CASE("cache sizes of sysfs") {
  CHECK(parse_cache_size("48K\n") == 48 << 10);
  CHECK(parse_cache_size("2M") == 2 << 20);
  CHECK(parse_cache_size("512") == 512);
  CHECK(!parse_cache_size(""));
  CHECK(!parse_cache_size("K"));
  CHECK(!parse_cache_size("-1K"));
  CHECK(!parse_cache_size("99999999999999999999K"));
}

TEST_CASE("CPU quota") {
  CHECK(quota_cores("200000", "100000") == 2);
  CHECK(quota_cores("150000", "100000") == 2);
  CHECK(quota_cores("50000", "100000") == 1);
  CHECK(!quota_cores("max", "100000"));
  CHECK(!quota_cores("-1", "100000"));
  CHECK(!quota_cores("100000", "0"));
}

TEST_CASE("caches are shared out among cores, not among hyper-threads") {
  const fs::path cpu = fs::temp_directory_path() / ("tenon-cpu-" + std::to_string(getpid()));
  auto put = [&](const std::string& file, const std::string& text) {
    fs::create_directories((cpu / file).parent_path());
    std::ofstream(cpu / file) << text << "\n";
  };
  auto cache = [&](int k, const char* level, const char* type, const char* size,
                   const char* shared) {
    const std::string folder = "cache/index" + std::to_string(k) + "/";
    put(folder + "level", level);
    put(folder + "type", type);
    put(folder + "size", size);
    put(folder + "shared_cpu_list", shared);
    put(folder + "coherency_line_size", "64");
  };
  put("topology/thread_siblings_list", "0,8");
  cache(0, "1", "Data", "32K", "0,8");
  cache(1, "1", "Instruction", "64K", "0,8");
  cache(2, "2", "Unified", "4M", "0-3,8-11");  // four cores of two threads
  cache(3, "3", "Unified", "30M", "0-15");
  const CacheSizes sizes = probe_caches(cpu.string());
  fs::remove_all(cpu);
  CHECK(sizes.l1d_bytes == 32 << 10);
  CHECK(sizes.l2_bytes == 1 << 20);
  CHECK(sizes.l3_bytes == 30 << 20);
  CHECK(sizes.line_bytes == 64);
  CHECK(probe_caches("/nonexistent").l1d_bytes == 0);
}
