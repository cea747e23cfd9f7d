#pragma once
#include "interp/frame.h"

namespace tenon {

/// The threads of a block between barriers: one after the other, each with the values of its own
/// variables and its own private buffers.
class Lockstep {
 public:
  /// Slots of the thread loops' variables, the outermost first, and how many threads each runs
  /// over.
  Lockstep(const For& outermost, std::vector<size_t> slots) : loop_(outermost), slots_(slots) {}

  void start(Frame& f, const std::vector<int64_t>& extents);
  void barrier(Frame& f) const;
  void finish(Frame& f) const;

  /// Runs `code` once for each thread.
  template <class F>
  void for_each_thread(Frame& f, const F& code);
  /// The value of a scalar in all threads; fails where they differ.
  int64_t uniform(Frame& f, const ScalarFn& value, const char* what);

  void push_let(Frame& f, size_t slot, int lanes, const ExprCode& value);
  void pop_let() { lets_.pop_back(); }
  /// A buffer that each thread has for itself.
  void push_buffer(Frame& f, size_t id, const std::vector<ScalarFn>& extents);
  void pop_buffer() { buffers_.pop_back(); }

 private:
  struct ThreadLet {
    size_t slot;
    int lanes;
    std::vector<Value> values;  // lanes of thread 0, of thread 1, ...
  };
  struct ThreadBuffer {
    size_t id;
    std::vector<BufferState> states;
  };

  void enter(Frame& f, int64_t thread);
  void leave(Frame& f, int64_t thread);

  const For& loop_;
  std::vector<size_t> slots_;
  std::vector<int64_t> extents_;
  int64_t threads_ = 0;
  std::vector<ThreadLet> lets_;
  std::vector<ThreadBuffer> buffers_;
};

template <class F>
void Lockstep::for_each_thread(Frame& f, const F& code) {
  for (int64_t t = 0; t < threads_; ++t) {
    if (f.race_mode) f.race.iterate(t);
    enter(f, t);
    code(f, t);
    leave(f, t);
  }
}

}  // namespace tenon
