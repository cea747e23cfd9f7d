#pragma once
#include <tenon/autotvm/runner.h>

#include <cstdint>
#include <string>

namespace tenon {

/// As many trials as nobody asks for in earnest: no limit.
inline constexpr int64_t kUnlimitedTrials = 1000000000;

/// What a progress line says about one task, or about several as a whole.
struct ProgressState {
  std::string task;
  int64_t trials = 0;
  int64_t trials_wanted = 0;  ///< or the size of the space, where that is less
  bool limited = true;        ///< the user said how many: "37/100 trials"; else "37 trials"
  int64_t failed = 0;
  double best_us = 0;     ///< 0: nothing worked yet
  double default_us = 0;  ///< 0: not measured
  double gflops = 0;      ///< of the best; 0: not known
  double peak_share = 0;  ///< of the machine's multiply-add peak; 0: not known
  double elapsed_s = 0;
  double time_limit_s = 0;  ///< 0: none
};

/// "matmul  37/100 trials (3 failed)  best 812.4 us (default 1893 us)  330.1 GFLOP/s, 81% of peak
/// 12 s, about 21 s left"
std::string progress_text(const ProgressState& state);

/// "other programs used 34% of a CPU while kernels were timed, ..."
std::string busy_text(const RunnerNotes& notes);

/// Seconds until the end, from the rate so far and the limits; negative: not known yet.
double projected_s(const ProgressState& state);

/// On a terminal one line that is written over; else a line at most every 3 seconds. To stderr.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine() { finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const ProgressState& state);
  /// A line of its own, kept.
  void say(const std::string& text);
  /// The last state, whenever the one before was shown; it stays.
  void finish(const ProgressState& state);
  /// Leaves what was shown last standing.
  void finish();

 private:
  bool quiet_, terminal_;
  double next_us_ = 0;
  std::string last_;  // shown on the terminal and not ended
};

}  // namespace tenon
