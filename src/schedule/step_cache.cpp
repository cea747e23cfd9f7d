#include <tenon/schedule/step_cache.h>
#include <tenon/support/hash.h>

#include <algorithm>

namespace tenon {
namespace {

constexpr int kMostCredit = 16;
constexpr size_t kKept = 2048, kSeen = size_t{1} << 16;  // powers of two

uint64_t steps_hash(const ScheduleState& before, const Primitive& step) {
  return hash_combine(before.steps_hash, hash(step)) * 0x9e3779b97f4a7c15ULL;
}

size_t place_of(uint64_t hash, size_t places) { return (hash >> 32) & (places - 1); }

}  // namespace

StepCache::StepCache(Program program, std::shared_ptr<const Target> target)
    : target_(std::move(target)), kept_(kKept), seen_(kSeen) {
  ScheduleState first{std::move(program), {}, 0};
  first.paths = stage_paths(first.program.body);
  first_ = std::make_shared<const ScheduleState>(std::move(first));
}

ScheduleStateRef StepCache::step(const ScheduleStateRef& before, const Primitive& step) {
  const uint64_t hash = steps_hash(*before, step);
  Kept& kept = kept_[place_of(hash, kKept)];
  if (kept.before == before && kept.step == step) {
    ++found_;
    kept.credit = std::min(kept.credit + 1, kMostCredit);
    return kept.after;
  }
  ScheduleState made = next_state(*before, *target_, step);
  made.steps_hash = hash;
  const auto after = std::make_shared<const ScheduleState>(std::move(made));
  uint64_t& seen = seen_[place_of(hash, kSeen)];
  if (seen == hash && --kept.credit < 0) kept = {before, after, step};
  seen = hash;
  return after;
}

}  // namespace tenon
