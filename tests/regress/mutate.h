#pragma once
#include <tenon/support/rng.h>

#include <cstdint>
#include <functional>
#include <string>

namespace tenon {

/// A damaged copy: one to three times bits flipped, a byte set to an extreme, bytes inserted or
/// removed, a section copied to another place, or the end cut off.
std::string mutate_bytes(std::string bytes, Rng& rng);

/// A damaged copy of JSON or NAME=VALUE text: one to three times a number replaced by a hostile one
/// (0, -1, 2^62, 1e308, ...), a quoted word by another one of the text, a value by one of another
/// type, or a change of mutate_bytes.
std::string mutate_text(std::string text, Rng& rng);

/// Ends the process with a message that names the case when it has not ended within 20 s (60 s
/// under a sanitizer). What is over is forgotten.
class CaseLimit {
 public:
  CaseLimit(const char* test, uint64_t number);
  ~CaseLimit();
  CaseLimit(const CaseLimit&) = delete;
  CaseLimit& operator=(const CaseLimit&) = delete;
};

/// While it lives the process may have 2 GB of address space more than now, so that asking for more
/// fails; under a sanitizer, whose shadow needs the addresses, one allocation of 2 GB ends the
/// process.
class MemoryLimit {
 public:
  MemoryLimit();
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  uint64_t before_ = 0;
};

/// Largest resident size that this process ever had.
int64_t peak_memory_bytes();

enum class End { refused, done };
/// Runs `f`: done, or refused by a UserError with a message. Whatever else is thrown passes through
/// and fails the test.
End run_case(const std::function<void()>& f);

}  // namespace tenon
