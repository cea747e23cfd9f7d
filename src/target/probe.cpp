#include <target/probe.h>

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <utility>

#include <target/probe_loops.h>
#include <tenon/support/text.h>

namespace tenon {
namespace {

constexpr auto kNone = SavedState::none;
constexpr auto kYmm = SavedState::ymm;
constexpr auto kZmm = SavedState::zmm;
constexpr auto kTiles = SavedState::tiles;

/// The first line of a file, trimmed; nothing when it cannot be read.
std::optional<std::string> first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return trim(line);
}

/// cpuid registers a, b, c, d of a leaf; zeros where the processor does not have the leaf.
std::array<uint32_t, 4> read_cpuid(uint32_t leaf, uint32_t subleaf) {
  std::array<uint32_t, 4> r = {0, 0, 0, 0};
  __get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]);
  return r;
}

/// XCR0: which register states the operating system saves. 0 without XSAVE.
uint64_t saved_states() {
  if ((read_cpuid(1, 0)[2] >> 27 & 1) == 0) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

uint64_t state_mask(SavedState state) {
  switch (state) {
    case SavedState::none:
      return 0;
    case SavedState::ymm:
      return 0x6;
    case SavedState::zmm:
      return 0xe6;
    case SavedState::tiles:
      return 0x60000;
  }
  return 0;
}

/// Folder of this process's cgroup for each hierarchy, from lines "id:controllers:path" of
/// /proc/self/cgroup.
std::vector<std::pair<std::string, std::string>> cgroup_folders() {
  std::vector<std::pair<std::string, std::string>> folders;  // quota file's kind: "v1" or "v2"
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> parts = split_text(line, ':');
    if (parts.size() < 3) continue;
    std::vector<std::string> controllers = split_text(parts[1], ',');
    if (parts[0] == "0") {
      folders.emplace_back("v2", "/sys/fs/cgroup" + parts[2]);
    } else if (std::find(controllers.begin(), controllers.end(), "cpu") != controllers.end()) {
      folders.emplace_back("v1", "/sys/fs/cgroup/cpu" + parts[2]);
    }
  }
  return folders;
}

/// The quota that one cgroup folder sets for itself.
std::optional<int> folder_quota(const std::string& version, const std::string& folder) {
  if (version == "v1") {
    auto quota = first_line(folder + "/cpu.cfs_quota_us"),
         period = first_line(folder + "/cpu.cfs_period_us");
    return quota && period ? quota_cores(*quota, *period) : std::nullopt;
  }
  auto line = first_line(folder + "/cpu.max");
  if (!line) return std::nullopt;
  std::vector<std::string> words = split_text(*line, ' ');
  return words.size() == 2 ? quota_cores(words[0], words[1]) : std::nullopt;
}

/// Whether Linux lets this process use tile registers: it must ask, once. Generated code that uses
/// them asks too, so that it also runs without this library.
bool may_use_tiles() {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return granted;
}

double seconds_of(void (*loop)(int64_t)) {
  constexpr int64_t kIterations = 300;
  const auto start = std::chrono::steady_clock::now();
  loop(kIterations);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool has_features(const std::vector<std::string>& sorted) {
  const std::vector<std::string> all = probe_features();
  return std::includes(all.begin(), all.end(), sorted.begin(), sorted.end());
}

/// Time of one loop over that of another, by the shortest of their windows.
double time_ratio(void (*loop)(int64_t), void (*other)(int64_t)) {
  double seconds = 1, others = 1;
  for (int turn = 0; turn < 8; ++turn) {
    others = std::min(others, seconds_of(other));
    seconds = std::min(seconds, seconds_of(loop));
  }
  return seconds / others;
}

}  // namespace

const std::vector<CpuFeature>& cpu_features() {
  // Intel SDM vol. 2A, CPUID; names as in llvm/TargetParser/X86TargetParser.def.
  static const std::vector<CpuFeature> table = {{"sse2", 1, 0, 'd', 26, kNone},
                                                {"sse3", 1, 0, 'c', 0, kNone},
                                                {"ssse3", 1, 0, 'c', 9, kNone},
                                                {"sse4.1", 1, 0, 'c', 19, kNone},
                                                {"sse4.2", 1, 0, 'c', 20, kNone},
                                                {"popcnt", 1, 0, 'c', 23, kNone},
                                                {"movbe", 1, 0, 'c', 22, kNone},
                                                {"avx", 1, 0, 'c', 28, kYmm},
                                                {"fma", 1, 0, 'c', 12, kYmm},
                                                {"f16c", 1, 0, 'c', 29, kYmm},
                                                {"bmi", 7, 0, 'b', 3, kNone},
                                                {"avx2", 7, 0, 'b', 5, kYmm},
                                                {"bmi2", 7, 0, 'b', 8, kNone},
                                                {"lzcnt", 0x80000001, 0, 'c', 5, kNone},
                                                {"avx512f", 7, 0, 'b', 16, kZmm},
                                                {"avx512dq", 7, 0, 'b', 17, kZmm},
                                                {"avx512ifma", 7, 0, 'b', 21, kZmm},
                                                {"avx512cd", 7, 0, 'b', 28, kZmm},
                                                {"avx512bw", 7, 0, 'b', 30, kZmm},
                                                {"avx512vl", 7, 0, 'b', 31, kZmm},
                                                {"avx512vbmi", 7, 0, 'c', 1, kZmm},
                                                {"avx512vbmi2", 7, 0, 'c', 6, kZmm},
                                                {"avx512vnni", 7, 0, 'c', 11, kZmm},
                                                {"avx512bitalg", 7, 0, 'c', 12, kZmm},
                                                {"avx512vpopcntdq", 7, 0, 'c', 14, kZmm},
                                                {"avx512fp16", 7, 0, 'd', 23, kZmm},
                                                {"avx512bf16", 7, 1, 'a', 5, kZmm},
                                                {"avxvnni", 7, 1, 'a', 4, kYmm},
                                                {"amx-tile", 7, 0, 'd', 24, kTiles},
                                                {"amx-int8", 7, 0, 'd', 25, kTiles},
                                                {"amx-bf16", 7, 0, 'd', 22, kTiles}};
  return table;
}

std::vector<std::string> probe_features() {
  const uint64_t saved = saved_states();
  std::map<std::pair<uint32_t, uint32_t>, std::array<uint32_t, 4>> leaves;
  std::vector<std::string> found;
  for (const CpuFeature& f : cpu_features()) {
    auto key = std::make_pair(f.leaf, f.subleaf);
    if (leaves.find(key) == leaves.end()) leaves[key] = read_cpuid(f.leaf, f.subleaf);
    const bool present = leaves[key][f.reg - 'a'] >> f.bit & 1;
    const uint64_t needed = state_mask(f.state);
    if (!present || (saved & needed) != needed) continue;
    if (f.state == SavedState::tiles && !may_use_tiles()) continue;
    found.push_back(f.name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

int probe_bf16_dot_cost() {
  static const int cost = [] {
    if (!has_features({"avx512bf16", "avx512f"})) return 0;
    const double ratio = time_ratio(bf16_dots_512, probe_loops(512).fma);
    return std::clamp(static_cast<int>(std::lround(ratio)), 1, 8);
  }();
  return cost;
}

int probe_vector_fmas() {
  static const int fmas = [] {
    if (!has_features({"avx2", "avx512f", "fma"})) return 2;
    const ProbeLoops wide = probe_loops(512), narrow = probe_loops(256);
    // Of as many operations: an iteration has more of the wide ones.
    const double operations = wide.flops_per_iteration / narrow.flops_per_iteration / 2;
    return time_ratio(wide.fma, narrow.fma) / operations < 1.5 ? 2 : 1;
  }();
  return fmas;
}

int probe_far_bytes() {
  constexpr int kBeside = 27, kMesh = 7;  // of a Zen 4 and of a Sapphire Rapids server
  const std::array<uint32_t, 4> r = read_cpuid(0, 0);
  char vendor[13] = {};
  std::memcpy(vendor, &r[1], 4);
  std::memcpy(vendor + 4, &r[3], 4);
  std::memcpy(vendor + 8, &r[2], 4);
  const std::string_view name = vendor;
  return name == "AuthenticAMD" || name == "HygonGenuine" ? kBeside : kMesh;
}

std::string probe_cpu_model() {
  char text[49] = {};
  for (uint32_t k = 0; k < 3; ++k) {
    std::array<uint32_t, 4> r = read_cpuid(0x80000002 + k, 0);
    std::memcpy(text + 16 * k, r.data(), 16);
  }
  return trim(text);
}

std::optional<int> count_cpu_list(std::string_view text) {
  int count = 0;
  for (const std::string& part : split_text(trim(text), ',')) {
    std::vector<std::string> ends = split_text(part, '-');
    auto first = parse_int(ends.front()), last = parse_int(ends.back());
    if (ends.size() > 2 || !first || !last || *first < 0 || *last < *first || *last > 1 << 20)
      return std::nullopt;
    count += static_cast<int>(*last - *first + 1);
  }
  return count;
}

std::optional<int64_t> parse_cache_size(std::string_view text) {
  std::string number = trim(text);
  int64_t unit = 1;
  if (!number.empty() && number.back() == 'K') unit = 1 << 10;
  if (!number.empty() && number.back() == 'M') unit = 1 << 20;
  if (unit > 1) number.pop_back();
  auto value = parse_int(number);
  if (!value || *value <= 0 || *value > int64_t{1} << 40) return std::nullopt;
  return *value * unit;
}

std::optional<int> quota_cores(std::string_view quota, std::string_view period) {
  auto q = parse_int(trim(quota)), p = parse_int(trim(period));
  if (!q || !p || *q <= 0 || *p <= 0) return std::nullopt;
  return static_cast<int>(std::min<int64_t>(*q / *p + (*q % *p != 0), 1 << 20));
}

std::optional<int> probe_quota_cores() {
  std::optional<int> least;
  for (auto& [version, path] : cgroup_folders()) {
    // A quota binds all groups below it, so every ancestor counts. Inside a container the path may
    // lie outside what is mounted; then only the mount's root is readable.
    for (std::string folder = path; folder.size() >= std::string_view("/sys/fs/cgroup").size();) {
      auto cores = folder_quota(version, folder);
      if (cores && (!least || *cores < *least)) least = cores;
      folder.resize(folder.rfind('/'));
    }
  }
  return least;
}

CacheSizes probe_caches(const std::string& cpu_directory) {
  CacheSizes sizes;
  const int siblings =
      count_cpu_list(first_line(cpu_directory + "/topology/thread_siblings_list").value_or("0"))
          .value_or(1);
  for (int k = 0; k < 16; ++k) {
    const std::string folder = cpu_directory + "/cache/index" + std::to_string(k);
    auto level = first_line(folder + "/level"), type = first_line(folder + "/type");
    auto bytes = parse_cache_size(first_line(folder + "/size").value_or(""));
    if (!level) break;
    if (!bytes || type == "Instruction") continue;
    const int cpus =
        count_cpu_list(first_line(folder + "/shared_cpu_list").value_or("0")).value_or(1);
    const int cores = std::max(1, cpus / siblings);  // cores that share this cache
    if (*level == "1") sizes.l1d_bytes = *bytes / cores;
    if (*level == "2") sizes.l2_bytes = *bytes / cores;
    if (*level == "3") sizes.l3_bytes = *bytes;
    if (auto line = parse_int(first_line(folder + "/coherency_line_size").value_or(""))) {
      sizes.line_bytes = static_cast<int>(*line);
    }
  }
  return sizes;
}

}  // namespace tenon
