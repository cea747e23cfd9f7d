#pragma once
#include <cstddef>
#include <cstdint>

#include <tenon/runtime/array.h>

namespace tenon {

/// Which end of the buffer touches forbidden memory.
enum class GuardAt { end, start };

/// Memory between two pages that may not be touched: one step outside the end (or the start) is a
/// SIGSEGV. Filled with a poison byte (0xff: NaN in every float type, -1 in every signed one).
///
///     | no access | poison | data ........ | no access |     GuardAt::end
///     | no access | data ........ | poison | no access |     GuardAt::start
///
/// With GuardAt::end, `alignment` wins: when it does not divide `bytes`, less than one alignment of
/// poison lies behind the data too. slack_intact() covers what the pages cannot.
class GuardedBuffer {
 public:
  static constexpr uint8_t kPoison = 0xff;

  /// `alignment` is a power of two, at most 4096. UserError when the system gives no memory.
  GuardedBuffer(size_t bytes, size_t alignment, GuardAt at);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  /// Is all accessible memory outside the data still poison? False after a write just outside.
  bool slack_intact() const;

 private:
  uint8_t* map_ = nullptr;
  size_t map_bytes_ = 0, page_ = 0, bytes_ = 0;
  uint8_t* data_ = nullptr;
};

/// A poisoned array in guarded memory, aligned to its element and no more.
Array guarded_array(DType dtype, Shape shape, GuardAt at);

}  // namespace tenon
