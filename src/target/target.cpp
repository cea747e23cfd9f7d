#include <tenon/target/target.h>

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include <target/opencl_api.h>
#include <target/probe.h>
#include <tenon/support/error.h>
#include <tenon/support/hash.h>
#include <tenon/support/text.h>

namespace tenon {
namespace {

/// A step of the x86-64 ladder: what its name promises and which features go beyond it.
struct Level {
  const char* name;
  int vector_bits, vector_registers;
  std::vector<std::string> needs;  // features a machine must have to be called this
  bool (*allows)(const CpuFeature&);
};

const std::vector<Level>& levels() {  // widest first
  static const std::vector<std::string> v3 = {"avx",  "avx2",   "bmi",    "bmi2",   "f16c",
                                              "fma",  "lzcnt",  "movbe",  "popcnt", "sse2",
                                              "sse3", "sse4.1", "sse4.2", "ssse3"};
  static const std::vector<Level> table = [] {
    std::vector<std::string> v4 = v3;
    for (const char* f : {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"})
      v4.push_back(f);
    std::sort(v4.begin(), v4.end());
    return std::vector<Level>{
        {"x86-64/avx512", 512, 32, v4, [](const CpuFeature&) { return true; }},
        {"x86-64/avx2", 256, 16, v3,
         [](const CpuFeature& f) {
           return f.state == SavedState::none || f.state == SavedState::ymm;
         }},
        {"x86-64/sse2", 128, 16, {"sse2"}, [](const CpuFeature& f) {
           return f.name == std::string_view("sse2");
         }}};
  }();
  return table;
}

bool includes_all(const std::vector<std::string>& have, const std::vector<std::string>& needed) {
  return std::includes(have.begin(), have.end(), needed.begin(), needed.end());
}

std::vector<std::string> allowed_features(const std::vector<std::string>& have,
                                          const Level& level) {
  std::vector<std::string> kept;
  for (const CpuFeature& f : cpu_features()) {
    if (level.allows(f) && std::binary_search(have.begin(), have.end(), f.name))
      kept.push_back(f.name);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

/// `machine` cut down (or, where it falls short, raised) to `level`.
Target at_level(Target machine, const Level& level) {
  machine.features = includes_all(machine.features, level.needs)
                         ? allowed_features(machine.features, level)
                         : level.needs;
  machine.name = level.name;
  machine.vector_bits = level.vector_bits;
  machine.vector_registers = level.vector_registers;
  machine.has_fma = machine.has_feature("fma");
  machine.has_masks = machine.has_feature("avx512f");
  if (level.vector_bits < 512) machine.vector_fmas = 2;  // what vector_fmas is of is wider
  return machine;
}

/// A whole number that `out` holds; nlohmann's own get_to cuts to size what does not fit.
template <class Int>
void read_whole(const nlohmann::json& j, const char* field, Int& out) {
  const nlohmann::json& number = j.at(field);
  const bool fits = number.is_number_integer() &&
                    !(number.is_number_unsigned() && number.get<int64_t>() < 0) &&
                    number.get<int64_t>() >= std::numeric_limits<Int>::min() &&
                    number.get<int64_t>() <= std::numeric_limits<Int>::max();
  if (!fits) throw UserError(fmt::format("target: \"{}\" is no whole number in range", field));
  out = number.get<Int>();
}

/// A target with limits is a GPU.
void read_limits(const nlohmann::json& j, Target& t) {
  t.kind = DeviceKind::opencl;
  read_whole(j, "threads_per_block", t.limits.threads_per_block);
  read_whole(j, "shared_bytes", t.limits.shared_bytes);
  j.at("block").get_to(t.limits.block);
  j.at("grid").get_to(t.limits.grid);
  if (t.limits.block.size() != 3 || t.limits.grid.size() != 3)
    throw UserError("target: a GPU has limits along three axes");
}

bool has_opencl_device(const std::string& name) {
  try {
    for (const OpenclDevice& d : probe_opencl())
      if (d.name == name) return true;
  } catch (const DeviceError&) {  // no OpenCL at all
  }
  return false;
}

/// "-amx": without all features whose names begin so.
void leave_out(Target& t, const std::string& word) {
  const std::string prefix = word.substr(word.empty() ? 0 : 1);
  std::vector<std::string> known;
  for (const CpuFeature& f : cpu_features()) known.push_back(f.name);
  const auto begins = [&](const std::string& f) { return f.rfind(prefix, 0) == 0; };
  if (word.rfind('-', 0) != 0 || prefix.empty() || t.is_gpu() ||
      std::none_of(known.begin(), known.end(), begins)) {
    const std::vector<std::string> near = nearest_names(prefix, known, 1);
    throw UserError(fmt::format(
        "target: \"{}\" is no feature to leave out\n  what follows a processor's name is -FEATURE, "
        "or the beginning of several: -amx, -avx512vnni\n  try: -{}",
        word, near.empty() ? "amx" : near.front()));
  }
  t.features.erase(std::remove_if(t.features.begin(), t.features.end(), begins), t.features.end());
  t.has_fma = t.has_fma && t.has_feature("fma");
  t.has_masks = t.has_masks && t.has_feature("avx512f");
}

std::string architecture(const std::string& name) { return name.substr(0, name.find('/')); }

void check_numbers(const Target& t) {
  const bool fine = t.vector_bits >= 64 && t.vector_bits <= 4096 && t.vector_registers > 0 &&
                    t.cores > 0 && t.l1d_bytes > 0 && t.l2_bytes > 0 && t.l3_bytes >= 0 &&
                    t.cache_line_bytes > 0 && t.far_bytes > 0 &&
                    (t.vector_fmas == 1 || t.vector_fmas == 2) && !t.name.empty() &&
                    std::is_sorted(t.features.begin(), t.features.end());
  if (fine) return;
  throw UserError(
      fmt::format("target \"{}\": numbers out of range or features not sorted (vector_bits {}, "
                  "vector_registers {}, vector_fmas {}, cores {}, "
                  "l1d_bytes {}, l2_bytes {}, l3_bytes {}, cache_line_bytes {}, far_bytes {})",
                  t.name, t.vector_bits, t.vector_registers, t.vector_fmas, t.cores, t.l1d_bytes,
                  t.l2_bytes, t.l3_bytes, t.cache_line_bytes, t.far_bytes));
}

}  // namespace

int Target::lanes(DType t) const { return std::max(1, vector_bits / (8 * byte_size(t))); }

bool Target::has_feature(std::string_view feature) const {
  return std::binary_search(features.begin(), features.end(), feature);
}

bool Target::runs_on(const Target& host) const {
  if (is_gpu()) return has_opencl_device(cpu);
  return architecture(name) == architecture(host.name) && includes_all(host.features, features);
}

std::string Target::fingerprint() const {
  const std::string what = is_gpu() ? cpu + "," + join(features, ",") : join(features, ",");
  return name + "-" + hex64(hash_text(what)).substr(0, 8);
}

std::string Target::to_json() const {
  nlohmann::ordered_json j = {{"name", name},
                              {"cpu", cpu},
                              {"llvm_cpu", llvm_cpu},
                              {"features", features},
                              {"vector_bits", vector_bits},
                              {"vector_registers", vector_registers},
                              {"has_fma", has_fma},
                              {"has_masks", has_masks},
                              {"vector_fmas", vector_fmas},
                              {"bf16_dot_cost", bf16_dot_cost},
                              {"cores", cores},
                              {"l1d_bytes", l1d_bytes},
                              {"l2_bytes", l2_bytes},
                              {"l3_bytes", l3_bytes},
                              {"cache_line_bytes", cache_line_bytes},
                              {"far_bytes", far_bytes}};
  if (is_gpu())
    j["limits"] = {{"threads_per_block", limits.threads_per_block},
                   {"block", limits.block},
                   {"grid", limits.grid},
                   {"shared_bytes", limits.shared_bytes}};
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Target Target::from_json(std::string_view text) {
  Target t;
  try {
    const auto j = nlohmann::json::parse(text);
    j.at("name").get_to(t.name);
    j.at("features").get_to(t.features);
    read_whole(j, "vector_bits", t.vector_bits);
    read_whole(j, "vector_registers", t.vector_registers);
    j.at("has_fma").get_to(t.has_fma);
    j.at("has_masks").get_to(t.has_masks);
    t.cpu = j.value("cpu", t.cpu);
    t.llvm_cpu = j.value("llvm_cpu", t.llvm_cpu);
    if (j.contains("vector_fmas")) read_whole(j, "vector_fmas", t.vector_fmas);
    if (j.contains("bf16_dot_cost")) read_whole(j, "bf16_dot_cost", t.bf16_dot_cost);
    if (j.contains("cores")) read_whole(j, "cores", t.cores);
    if (j.contains("l1d_bytes")) read_whole(j, "l1d_bytes", t.l1d_bytes);
    if (j.contains("l2_bytes")) read_whole(j, "l2_bytes", t.l2_bytes);
    if (j.contains("l3_bytes")) read_whole(j, "l3_bytes", t.l3_bytes);
    if (j.contains("cache_line_bytes")) read_whole(j, "cache_line_bytes", t.cache_line_bytes);
    if (j.contains("far_bytes")) read_whole(j, "far_bytes", t.far_bytes);
    if (j.contains("limits")) read_limits(j.at("limits"), t);
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("target: the text is not a target - {}", error.what()));
  }
  check_numbers(t);
  return t;
}

Target Target::host() {
  Target machine;
  machine.cpu = probe_cpu_model();
  machine.features = probe_features();
  machine.cores = allowed_cores();
  machine.vector_fmas = probe_vector_fmas();
  machine.bf16_dot_cost = probe_bf16_dot_cost();
  machine.far_bytes = probe_far_bytes();
  const int cpu = allowed_cpus().front();
  const CacheSizes caches = probe_caches("/sys/devices/system/cpu/cpu" + std::to_string(cpu));
  if (caches.l1d_bytes > 0) machine.l1d_bytes = caches.l1d_bytes;
  if (caches.l2_bytes > 0) machine.l2_bytes = caches.l2_bytes;
  machine.l3_bytes = caches.l3_bytes;
  if (caches.line_bytes > 0) machine.cache_line_bytes = caches.line_bytes;
  for (const Level& level : levels()) {
    if (includes_all(machine.features, level.needs)) return at_level(machine, level);
  }
  TENON_CHECK(false, "cpuid denies SSE2, which every x86-64 has");
  return machine;
}

Target Target::generic_gpu() {
  Target t;
  t.name = "opencl";
  t.kind = DeviceKind::opencl;
  t.cpu = "a common GPU";
  t.features = {"fp64"};
  t.vector_bits = 128;
  t.vector_registers = 64;
  t.has_fma = true;
  t.limits = {1024, {1024, 1024, 64}, {INT32_MAX, 65535, 65535}, 48 << 10};
  return t;
}

Target Target::opencl(int index) {
  const std::vector<OpenclDevice> devices = probe_opencl();
  if (static_cast<size_t>(index) >= devices.size())
    throw DeviceError(
        fmt::format("OpenCL device {} does not exist; there are {}\n  try: tenon "
                    "targets lists them",
                    index, devices.size()));
  const OpenclDevice& d = devices[static_cast<size_t>(index)];
  Target t = generic_gpu();
  t.cpu = d.name;
  t.features.clear();
  if (d.has_f16) t.features.push_back("fp16");
  if (d.has_f64) t.features.push_back("fp64");
  t.cores = std::max(1, d.compute_units);
  t.limits.threads_per_block = std::min(t.limits.threads_per_block, d.threads_per_block);
  for (size_t a = 0; a < t.limits.block.size(); ++a)
    t.limits.block[a] = std::min(t.limits.block[a], d.block[a]);
  t.limits.shared_bytes = std::min(t.limits.shared_bytes, d.shared_bytes);
  return t;
}

std::vector<std::string> Target::known_names() {
  std::vector<std::string> names = {"host"};
  for (const Level& level : levels()) names.push_back(level.name);
  return names;
}

Target Target::parse(std::string_view text) {
  const std::vector<std::string> parts = split_text(std::string(text), ',');
  if (parts.size() > 1) {
    Target out = parse(parts[0]);
    for (size_t n = 1; n < parts.size(); ++n) leave_out(out, parts[n]);
    return out;
  }
  if (text == "host") return host();
  if (text == "opencl") return opencl();
  if (text.rfind("opencl:", 0) == 0) {
    if (const auto index = parse_int(text.substr(7)); index && *index >= 0 && *index < 1000)
      return opencl(static_cast<int>(*index));
  }
  for (const Level& level : levels()) {
    if (text == level.name) return at_level(host(), level);
  }
  const std::vector<std::string> near = nearest_names(text, known_names(), 1);
  throw UserError(fmt::format("target \"{}\" is not known\n  known targets: {}, opencl\n  try: {}",
                              text, join(known_names()), near.empty() ? "host" : near.front()));
}

std::vector<int> allowed_cpus() {
  // The kernel refuses a set smaller than its own; grow until it fits.
  for (int size = CPU_SETSIZE; size <= 1 << 20; size *= 2) {
    cpu_set_t* set = CPU_ALLOC(size);
    const size_t bytes = CPU_ALLOC_SIZE(size);
    std::vector<int> cpus;
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    for (int k = 0; ok && k < size; ++k) {
      if (CPU_ISSET_S(k, bytes, set)) cpus.push_back(k);
    }
    CPU_FREE(set);
    if (!cpus.empty()) return cpus;
  }
  return {0};
}

int allowed_cores() {
  const int cpus = static_cast<int>(allowed_cpus().size());
  return std::max(1, std::min(cpus, probe_quota_cores().value_or(cpus)));
}

}  // namespace tenon
