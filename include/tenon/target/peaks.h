#pragma once
#include <tenon/target/target.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Read bandwidth from one level of the memory hierarchy.
struct ReadPeak {
  std::string level;    ///< "L1", "L2", "L3" or "memory"
  int64_t bytes = 0;    ///< working set of each thread
  double gbps_1 = 0;    ///< one thread, 1e9 bytes a second
  double gbps_all = 0;  ///< all cores together
};

/// The most this machine was seen to do: what "share of peak" is a share of.
struct Peaks {
  double fma_gflops_1 = 0;    ///< f32, one thread; a fused multiply-add counts as 2
  double fma_gflops_all = 0;  ///< f32, `threads` threads
  int threads = 1;
  std::vector<ReadPeak> read;

  std::string to_json() const;
  /// UserError for text that is not peaks.
  static Peaks from_json(std::string_view text);
};

/// Best f32 multiply-add rate of `threads` threads in short windows over `seconds`, GFLOP/s.
/// Registers only: 24 independent accumulators (12 with 16 registers). Threads are pinned, one a
/// CPU, for the time of the probe. UserError when this machine cannot run the target's code.
double measure_fma_gflops(const Target& target, int threads, double seconds);

/// All of Peaks in about `seconds`, plus the time to fill the working sets (up to 1 GiB in all).
Peaks measure_peaks(const Target& target, double seconds);

/// The target's peaks: from the file in `directory` where there is one, else measured and kept
/// there. Kept multiply-add rates are measured again in 50 ms and only rise, so that a file from a
/// busy moment mends itself. The file is peaks-<fingerprint>-<hash of cpu, cores and caches>.json.
/// A folder that cannot be read or written is no error: then each process measures anew.
Peaks load_or_measure_peaks(const std::string& directory, const Target& target, double seconds);

/// The host's peaks, kept in peaks_directory(). The first time on a machine takes about 4 s, else
/// 50 ms. Read bandwidths stay until the file is removed.
const Peaks& cached_peaks();

/// $XDG_CACHE_HOME/tenon, or ~/.cache/tenon; empty when neither variable is set.
std::string peaks_directory();

}  // namespace tenon
