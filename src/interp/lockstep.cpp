#include "interp/lockstep.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

void Lockstep::start(Frame& f, const std::vector<int64_t>& extents) {
  extents_ = extents;
  threads_ = 1;
  for (int64_t n : extents_) threads_ *= std::max<int64_t>(n, 0);
  if (f.race_mode) f.race.enter(loop_);
}

/// What came before is finished for all threads: a new entry of the loop.
void Lockstep::barrier(Frame& f) const {
  if (!f.race_mode) return;
  f.race.leave();
  f.race.enter(loop_);
}

void Lockstep::finish(Frame& f) const {
  if (f.race_mode) f.race.leave();
}

void Lockstep::enter(Frame& f, int64_t thread) {
  int64_t rest = thread;
  for (size_t k = slots_.size(); k-- > 0;) {
    f.slots[slots_[k]] = int_value(rest % extents_[k]);
    rest /= extents_[k];
  }
  for (const ThreadLet& let : lets_)
    std::copy_n(&let.values[static_cast<size_t>(thread * let.lanes)], let.lanes,
                &f.slots[let.slot]);
  for (ThreadBuffer& b : buffers_)
    std::swap(f.buffers[b.id], b.states[static_cast<size_t>(thread)]);
}

void Lockstep::leave(Frame& f, int64_t thread) {
  for (ThreadBuffer& b : buffers_)
    std::swap(f.buffers[b.id], b.states[static_cast<size_t>(thread)]);
}

int64_t Lockstep::uniform(Frame& f, const ScalarFn& value, const char* what) {
  int64_t first = 0;
  for_each_thread(f, [&](Frame& frame, int64_t t) {
    const int64_t v = value(frame).i;
    if (t == 0) first = v;
    if (v != first)
      frame.fail(
          fmt::format("a barrier that not all threads reach: {} is {} in thread 0 and {} in "
                      "thread {}",
                      what, first, v, t));
  });
  return first;
}

void Lockstep::push_let(Frame& f, size_t slot, int lanes, const ExprCode& value) {
  ThreadLet let{slot, lanes, {}};
  for_each_thread(f, [&](Frame& frame, int64_t) {
    if (lanes == 1) {
      let.values.push_back(value.scalar(frame));
    } else {
      const Value* v = value.vector(frame);
      let.values.insert(let.values.end(), v, v + lanes);
    }
  });
  lets_.push_back(std::move(let));
}

void Lockstep::push_buffer(Frame& f, size_t id, const std::vector<ScalarFn>& extents) {
  ThreadBuffer all{id, {}};
  for_each_thread(f, [&](Frame& frame, int64_t) {
    std::vector<int64_t> dims;
    for (const ScalarFn& extent : extents) dims.push_back(extent(frame).i);
    BufferState& state = all.states.emplace_back(frame.buffers[id]);
    state.start_life(std::move(dims), nullptr, ++frame.epochs, frame.race_mode);
  });
  buffers_.push_back(std::move(all));
}

}  // namespace tenon
