#pragma once
#include <string>
#include <vector>

namespace tenon {

/// What this process measures right now, so that other tuners of this machine that work on the same
/// log measure something else meanwhile. Gone with the process, however it ends.
class Claims {
 public:
  /// `scope`: claims of other scopes (tasks, thread counts) do not meet.
  Claims(const std::string& log, const std::string& scope);
  ~Claims() { release(); }
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  /// False where another one has it. Where the system knows no such names, everything is free.
  bool take(const std::string& what);
  /// Gives back all.
  void release();

 private:
  std::string prefix_;
  std::vector<int> sockets_;
};

}  // namespace tenon
