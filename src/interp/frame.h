#pragma once
#include <deque>
#include <functional>

#include "interp/interp.h"
#include "interp/race.h"
#include "interp/value.h"

namespace tenon {

inline constexpr size_t kMaxRank = 12;    // dimensions of a buffer
inline constexpr size_t kMaxOutputs = 8;  // elements of a tuple reduction

struct Frame;

/// A buffer while the program runs: row-major memory of its own or of the caller.
struct BufferState {
  std::string name;
  DType dtype = DType::f32;
  std::byte* data = nullptr;
  std::vector<int64_t> dims, strides;  // in elements
  bool tracked = true;                 // inputs are always written and never raced for
  uint64_t epoch = 0;                  // the present life of the buffer
  std::vector<std::byte> own;
  std::vector<RaceLog::Element> elements;
  /// Where elements are evaluated on demand instead of lying in memory.
  std::function<Value(Frame&, int64_t)> source;

  /// New extents, undefined contents. Memory of its own when `memory` is null.
  void start_life(std::vector<int64_t> extents, std::byte* memory, uint64_t new_epoch,
                  bool remember);
};

/// Everything that changes while a compiled program runs. Variables and vectors have fixed slots.
struct Frame {
  std::vector<Value> slots;
  std::vector<BufferState> buffers;
  RaceLog race;
  bool race_mode = true;
  const Value* active = nullptr;  // lanes of the vector at hand that are wanted; null: all
  uint64_t epochs = 0;
  int64_t steps = 0, max_steps = 0;

  struct ActiveLoop {
    const For* loop;
    int slot;
  };
  std::vector<ActiveLoop> loops;
  std::deque<Stmt> kept;  // statements that were made while compiling
  const Stmt* statement = nullptr;

  /// Throws InternalError: the rule broken, the statement and the values of the loops around it.
  [[noreturn]] void fail(const std::string& rule) const;

  void begin_statement(const Stmt& s) {
    statement = &s;
    if (max_steps != 0 && ++steps > max_steps) fail("the program ran too many statements");
  }
  /// Number of the element at `indices`, all inside the extents.
  int64_t locate(const BufferState& b, const int64_t* indices, size_t rank,
                 std::string_view verb) const {
    int64_t offset = 0;
    for (size_t d = 0; d < rank; ++d) {
      auto inside = static_cast<uint64_t>(indices[d]) < static_cast<uint64_t>(b.dims[d]);
      if (!inside) out_of_bounds(b, indices, d, verb);
      offset += indices[d] * b.strides[d];
    }
    return offset;
  }
  Value read(BufferState& b, int64_t element, bool part_of_atomic) {
    if (b.source) return b.source(*this, element);
    if (race_mode && b.tracked) note_read(b, element, part_of_atomic);
    return read_element(b.data + element * byte_size(b.dtype), b.dtype);
  }
  void write(BufferState& b, int64_t element, Value value, bool atomic) {
    if (race_mode && b.tracked) note_write(b, element, atomic);
    write_element(b.data + element * byte_size(b.dtype), b.dtype, value);
  }

 private:
  [[noreturn]] void out_of_bounds(const BufferState& b, const int64_t* indices, size_t dim,
                                  std::string_view verb) const;
  std::string element_text(const BufferState& b, int64_t element) const;
  void note_read(BufferState& b, int64_t element, bool part_of_atomic);
  void note_write(BufferState& b, int64_t element, bool atomic);
};

using ScalarFn = std::function<Value(Frame&)>;
using VectorFn = std::function<const Value*(Frame&)>;  // lanes stay valid until the node runs again
using StmtCode = std::function<void(Frame&)>;

/// An expression made runnable: one of the two functions, by the lanes.
struct ExprCode {
  Type type;
  ScalarFn scalar;
  VectorFn vector;
};

}  // namespace tenon
