#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Register state that the operating system must save before a feature can be used.
enum class SavedState { none, ymm, zmm, tiles };

/// One CPU feature: its LLVM name, where cpuid says it, and what the operating system must save.
struct CpuFeature {
  const char* name;
  uint32_t leaf, subleaf;
  char reg;  // 'a', 'b', 'c' or 'd'
  int bit;
  SavedState state;
};

/// Every feature that code generation may use, in no order.
const std::vector<CpuFeature>& cpu_features();

/// Features of this processor that the operating system supports, sorted.
std::vector<std::string> probe_features();

/// Model text from cpuid ("Intel(R) Xeon(R) Processor"), trimmed.
std::string probe_cpu_model();

/// How many multiply-adds of 512 bits this processor starts a cycle: 1 where its units are 256 bits
/// wide or there is one, else 2, as without AVX-512. Measured once a process beside those of 256
/// bits, of which two start, in about 50 us.
int probe_vector_fmas();

/// Bytes a cycle that a core reads in order from beyond its second cache, by the vendor: AMD's
/// third cache lies beside some cores and runs at their clock, Intel's is spread over a mesh. Not
/// measured anew, so that schedules that follow from it stay the same.
int probe_far_bytes();

/// How many multiply-adds of 512 bits this processor issues in the time of one VDPBF16PS, 1 to 8;
/// 0 where it lacks one of the two. Measured once a process, in about 50 us.
int probe_bf16_dot_cost();

/// "0-3,8" -> 5. Nothing for text that is not a CPU list.
std::optional<int> count_cpu_list(std::string_view text);

/// "48K", "2048K", "1M" or plain bytes.
std::optional<int64_t> parse_cache_size(std::string_view text);

/// CPUs' worth of time that quota and period (microseconds) allow, rounded up; nothing for "max",
/// -1 or nonsense.
std::optional<int> quota_cores(std::string_view quota, std::string_view period);

/// The least quota over the cgroups that hold this process, version 1 and 2; nothing where none is
/// set.
std::optional<int> probe_quota_cores();

/// Data caches as sysfs describes them under `cpu_directory` (".../cpu0"); 0 where a level is
/// missing.
struct CacheSizes {
  int64_t l1d_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  int line_bytes = 0;
};
CacheSizes probe_caches(const std::string& cpu_directory);

}  // namespace tenon
