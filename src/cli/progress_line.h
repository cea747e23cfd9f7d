#pragma once
#include <cstddef>
#include <functional>
#include <string>

namespace tenon {

/// Progress of work that may take longer than two seconds, on stderr: on a terminal one line that
/// changes and goes away at the end, else a line every few seconds. Silent when `quiet`.
class ProgressLine {
 public:
  ProgressLine(std::string what, bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(size_t done, size_t all);
  /// show() as a callback; valid as long as this object.
  std::function<void(size_t, size_t)> callback();

 private:
  std::string what_;
  bool quiet_, terminal_, shown_ = false;
  double started_us_, last_us_;
};

}  // namespace tenon
