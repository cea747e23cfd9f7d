#pragma once
#include <tenon/support/dtype.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// What runs the code: the processor of this process, or a device that OpenCL drives.
enum class DeviceKind : uint8_t { cpu, opencl };

/// What a GPU allows a kernel; all 0 for a CPU.
struct DeviceLimits {
  int64_t threads_per_block = 0;
  std::vector<int64_t> block = {};  ///< threads along x, y and z
  std::vector<int64_t> grid = {};   ///< blocks along x, y and z
  int64_t shared_bytes = 0;         ///< shared memory of one block

  bool operator==(const DeviceLimits&) const = default;
};

/// What a machine can do, as numbers. Plain data: rooms read it, nothing asks the machine again.
struct Target {
  std::string name;  ///< "x86-64/avx512", "x86-64/avx2", "x86-64/sse2" or "opencl"
  DeviceKind kind = DeviceKind::cpu;
  DeviceLimits limits;                ///< of a GPU
  std::string cpu;                    ///< model text of the processor, for people
  std::string llvm_cpu;               ///< "sapphirerapids"; empty until the code generator fills it
  std::vector<std::string> features;  ///< sorted, in LLVM's spelling: "avx2", "avx512f", "fma", ...
  int vector_bits = 128;              ///< width of the vectors that code should use
  int vector_registers = 16;          ///< architectural vector registers of that width
  bool has_fma = false;               ///< fused multiply-add on vectors
  bool has_masks = false;        ///< masked vector loads, stores and blends in hardware (AVX-512)
  int vector_fmas = 2;           ///< multiply-adds of that width that start a cycle: 1 or 2
  int bf16_dot_cost = 0;         ///< multiply-adds that take as long as one VDPBF16PS; 0: unknown
  int cores = 1;                 ///< CPUs this process may use: affinity mask and CPU quota
  int64_t l1d_bytes = 32 << 10;  ///< level-1 data cache of one core
  int64_t l2_bytes = 256 << 10;  ///< level-2 cache, the share of one core
  int64_t l3_bytes = 0;          ///< level-3 cache in total; 0 when there is none
  int cache_line_bytes = 64;
  int far_bytes = 7;  ///< that a core reads a cycle, in order, from beyond its level-2 cache

  bool operator==(const Target&) const = default;

  /// Elements of `t` in one vector: 16 for f32 at 512 bits. At least 1.
  int lanes(DType t) const;

  bool has_feature(std::string_view feature) const;

  /// Has it blocks of threads, so that loops can be bound to them?
  bool is_gpu() const { return kind != DeviceKind::cpu; }

  /// Can `host` execute code made for this target? (Same architecture, no feature missing.)
  bool runs_on(const Target& host) const;

  /// What records are looked up by: the name and a hash of the features. Equal for machines that
  /// run the same code; independent of cores, caches and llvm_cpu.
  std::string fingerprint() const;

  /// One JSON object on one line.
  std::string to_json() const;

  /// The inverse of to_json(). Fields it does not know are ignored; UserError for anything that is
  /// not a target.
  static Target from_json(std::string_view text);

  /// Probes this machine: cpuid, caches from sysfs, affinity mask, cgroup quota. About 0.2 ms; keep
  /// the result.
  static Target host();

  /// The OpenCL device number `index` of this machine. Its limits are the driver's, but no more
  /// than common GPUs have (1024 threads a block, 48 kB of shared memory, 65535 blocks along y and
  /// z), so that what runs here runs there. DeviceError, with what is missing, when there is none.
  static Target opencl(int index = 0);

  /// A GPU with these common limits, to schedule and generate code for where none is present.
  static Target generic_gpu();

  /// "host", "opencl" (or "opencl:1", the second device), or a level of known_names(): the host
  /// restricted to that level's features, so that narrower code can be tested on a wide machine. A
  /// level above the host's gives that level's least machine, which can be compiled for but not
  /// run. ",-amx" behind a processor's word leaves out the features whose names begin so
  /// (",-amx,-fma" both kinds). UserError for an unknown word or feature, DeviceError for a device
  /// that is not there.
  static Target parse(std::string_view text);

  /// The words for processors that parse() takes.
  static std::vector<std::string> known_names();
};

/// CPUs in the affinity mask of the calling thread (inherited from its process), in order.
std::vector<int> allowed_cpus();

/// How many threads can run at once: allowed_cpus(), or less where a cgroup sets a CPU quota. At
/// least 1.
int allowed_cores();

}  // namespace tenon
