#pragma once
#include <tenon/runtime/timer.h>

#include "autotvm/session.h"

namespace tenon {

/// When no new trial may start. What the final comparison takes is kept back.
class Deadline {
 public:
  explicit Deadline(double time_s) : time_s_(time_s) {}
  double elapsed_s() const { return (now_us() - start_us_) * 1e-6; }
  /// In now_us().
  double us(double kept_back_s) const;
  bool passed(double kept_back_s) const { return now_us() >= us(kept_back_s); }

 private:
  double time_s_;
  double start_us_ = now_us();
};

/// Trials compiled together: enough for all cores, few enough that something is seen every 2 s.
int batch_size(const TuneSession& session);

/// Sets the share of the multiply-add peak of so many threads (0: all of the target's), for a
/// progress line that is shown.
void add_peak_share(ProgressState& state, int threads, const TuneOptions& options);

/// Says once that the machine is busy.
void mention_busy(const TuneSession& session, ProgressLine& line, bool& said);

}  // namespace tenon
