#include <tenon/target/target.h>

#include <sched.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include <tenon/support/error.h>
#include <tenon/support/text.h>

using namespace tenon;
using Catch::Matchers::Contains;

TEST_CASE("the host has the numbers a scheduler needs") {
  const Target host = Target::host();
  INFO(host.to_json());
  CHECK(host.has_feature("sse2"));
  CHECK(std::is_sorted(host.features.begin(), host.features.end()));
  CHECK(host.vector_bits == (host.has_feature("avx512f") ? 512
                             : host.has_feature("avx2")  ? 256
                                                         : 128));
  CHECK(host.vector_registers == (host.vector_bits == 512 ? 32 : 16));
  CHECK(host.cores >= 1);
  CHECK(host.l1d_bytes >= 8 << 10);
  CHECK(host.l2_bytes > host.l1d_bytes);
  CHECK(host.cache_line_bytes == 64);
  CHECK((host.vector_fmas == 2 || (host.vector_fmas == 1 && host.vector_bits == 512)));
  CHECK(!host.cpu.empty());
  CHECK(host.runs_on(host));
  CHECK(Target::parse("host") == host);
}

TEST_CASE("host features agree with /proc/cpuinfo") {
  std::ifstream file("/proc/cpuinfo");
  std::string flags;
  for (std::string line; std::getline(file, line) && flags.empty();) {
    if (line.rfind("flags", 0) == 0) flags = line.substr(line.find(':') + 1) + " ";
  }
  REQUIRE(!flags.empty());
  const Target host = Target::host();
  for (const char* feature :
       {"avx", "avx2", "fma", "f16c", "bmi2", "avx512f", "avx512bw", "avx512vl"}) {
    CAPTURE(feature);
    const bool in_flags = flags.find(" " + std::string(feature) + " ") != std::string::npos;
    CHECK(host.has_feature(feature) == in_flags);
  }
}

TEST_CASE("what lies beyond the second cache comes as the processor's vendor lets it") {
  std::ifstream file("/proc/cpuinfo");
  std::string vendor;
  for (std::string line; std::getline(file, line) && vendor.empty();) {
    if (line.rfind("vendor_id", 0) == 0) vendor = line.substr(line.find(": ") + 2);
  }
  REQUIRE(!vendor.empty());
  const bool beside = vendor == "AuthenticAMD" || vendor == "HygonGenuine";
  CHECK(Target::host().far_bytes == (beside ? 27 : 7));
}

TEST_CASE("lanes follow the vector width") {
  Target t;
  t.vector_bits = 512;
  CHECK(t.lanes(f32) == 16);
  CHECK(t.lanes(f64) == 8);
  CHECK(t.lanes(i8) == 64);
  CHECK(t.lanes(boolean) == 64);
  CHECK(t.lanes(bf16) == 32);
  t.vector_bits = 128;
  CHECK(t.lanes(f32) == 4);
}

TEST_CASE("a narrower level restricts the host") {
  const Target host = Target::host();
  const Target avx2 = Target::parse("x86-64/avx2"), sse2 = Target::parse("x86-64/sse2");
  CHECK(avx2.vector_bits == 256);
  CHECK(avx2.vector_registers == 16);
  CHECK(avx2.has_fma);
  CHECK(!avx2.has_masks);
  for (const std::string& f : avx2.features) {
    CAPTURE(f);
    CHECK(f.rfind("avx512", 0) != 0);
    CHECK(f.rfind("amx", 0) != 0);
  }
  CHECK(sse2.features == std::vector<std::string>{"sse2"});
  CHECK(sse2.lanes(f32) == 4);
  CHECK(sse2.runs_on(host));
  CHECK(sse2.runs_on(avx2));
  CHECK(!avx2.runs_on(sse2));
  CHECK(avx2.cores == host.cores);
  CHECK(avx2.l2_bytes == host.l2_bytes);
  CHECK(avx2.far_bytes == host.far_bytes);
  CHECK(avx2.vector_fmas == 2);
  CHECK(sse2.vector_fmas == 2);
  Target other = sse2;
  other.name = "aarch64/neon";
  CHECK(!sse2.runs_on(other));
}

TEST_CASE("avx512 has masks and 32 registers, with or without a host that has it") {
  const Target t = Target::parse("x86-64/avx512");
  CHECK(t.has_masks);
  CHECK(t.vector_registers == 32);
  CHECK(t.has_feature("avx512f"));
  CHECK(t.has_feature("avx2"));
  CHECK(t.runs_on(Target::host()) == Target::host().has_feature("avx512vl"));
}

TEST_CASE("an unknown target lists the known ones") {
  CHECK_THROWS_AS(Target::parse("x86-64/avx51"), UserError);
  CHECK_THROWS_WITH(Target::parse("x86-64/avx51"),
                    Contains("\"x86-64/avx51\" is not known") &&
                        Contains("known targets: host, x86-64/avx512, x86-64/avx2, x86-64/sse2") &&
                        Contains("try: x86-64/avx512"));
  CHECK_THROWS_WITH(Target::parse(""), Contains("try: host"));
}

TEST_CASE("a target survives JSON") {
  Target t = Target::host();
  t.cpu = "quo\"ted \xff";  // not UTF-8: replaced, never thrown
  CHECK_NOTHROW(Target::from_json(t.to_json()));
  t.cpu = "a \"quoted\" model";
  t.llvm_cpu = "sapphirerapids";
  t.vector_fmas = 1;
  t.far_bytes = 11;
  CHECK(Target::from_json(t.to_json()) == t);
  std::string newer = t.to_json();
  newer.insert(1, "\"from_the_future\":[1,2],");
  CHECK(Target::from_json(newer) == t);
}

TEST_CASE("text that is no target is refused") {
  CHECK_THROWS_WITH(Target::from_json("{\"name\":\"x\"}"),
                    Contains("not a target") && Contains("features"));
  CHECK_THROWS_AS(Target::from_json("[1,2"), UserError);
  CHECK_THROWS_AS(Target::from_json("3"), UserError);
  Target t;
  t.name = "x86-64/sse2";
  t.cores = 0;
  CHECK_THROWS_WITH(Target::from_json(t.to_json()),
                    Contains("numbers out of range") && Contains("cores 0"));
  t.cores = 1;
  t.vector_fmas = 3;
  CHECK_THROWS_WITH(Target::from_json(t.to_json()), Contains("vector_fmas 3"));
  t.vector_fmas = 2;
  t.far_bytes = 0;
  CHECK_THROWS_WITH(Target::from_json(t.to_json()), Contains("far_bytes 0"));
}

TEST_CASE("the fingerprint speaks of features alone") {
  Target a = Target::parse("x86-64/avx2"), b = a;
  b.cores += 3;
  b.l3_bytes = 1;
  b.llvm_cpu = "haswell";
  CHECK(a.fingerprint() == b.fingerprint());
  CHECK_THAT(a.fingerprint(), Contains("x86-64/avx2-"));
  b.features.push_back("zz");
  CHECK(a.fingerprint() != b.fingerprint());
}

TEST_CASE("cores follow the affinity mask") {
  // In a thread of its own: the mask belongs to the thread and goes with it.
  int cores = 0;
  std::vector<int> cpus;
  const int last = allowed_cpus().back();
  std::thread([&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    sched_setaffinity(0, sizeof set, &set);
    cpus = allowed_cpus();
    cores = Target::host().cores;
  }).join();
  CHECK(cpus == std::vector<int>{last});
  CHECK(cores == 1);
}

TEST_CASE("features can be left out of a target") {
  const Target plain = Target::parse("x86-64/avx512,-avx512f,-fma,-avx512vnni");
  CHECK(plain.name == "x86-64/avx512");
  CHECK_FALSE(plain.has_feature("avx512f"));
  CHECK_FALSE(plain.has_masks);
  CHECK_FALSE(plain.has_fma);
  const Target host = Target::host(), without = Target::parse("host,-amx");
  for (const char* f : {"amx-tile", "amx-int8", "amx-bf16"}) CHECK_FALSE(without.has_feature(f));
  CHECK(without.runs_on(host));
  CHECK((without.fingerprint() == host.fingerprint()) == !host.has_feature("amx-tile"));
  for (const char* text : {"host,amx", "host,-", "host,-avx9", "host,"})
    CHECK_THROWS_WITH(Target::parse(text), Contains("is no feature to leave out"));
  CHECK_THROWS_WITH(Target::parse("host,-amx-int9"), Contains("try: -amx-int8"));
}
