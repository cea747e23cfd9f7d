#include "autotvm/measure/race.h"

#include <tenon/support/stats.h>
#include <tenon/target/target.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tenon {
namespace {

constexpr double kFarBehind = 4;    // one call may take so many times the best and
constexpr double kPatienceS = 0.1;  // so much more before it is ended
constexpr double kBehind = 1.05;    // slower by so much in two samples: more tell no more
constexpr double kTimedUs = 2e4;    // a kernel's samples: of long calls a few say as much
constexpr int kLeastSamples = 3;
constexpr double kRecheckUs = 300;                      // the second look
constexpr int kCompareRounds = 3, kCompareSamples = 5;  // processes, and samples in each
constexpr double kLongestSampleUs = 10000;  // of those: what a kernel finds cold matters less

double least(const std::vector<double>& samples) {
  return *std::min_element(samples.begin(), samples.end());
}

/// So many times the limit of outpaced there is no second look: long calls mean more, and cost
/// more.
double hopeless(double us) { return us < 1000 ? 10 : us < 5000 ? 4 : 2; }

void refuse(const Built& built, Measurement& m) {
  m.compile_us = built.object.compile_us;
  m.status = built.status;
  m.reason = built.reason;
}

}  // namespace

RunnerProcess& Race::process() {
  if (!process_) {
    clock_.run("start", [&] { process_.emplace(options_.program, setup_, options_.stop); });
    renew();
  }
  return *process_;
}

/// Another worker from here on, with nothing loaded.
void Race::renew() {
  if (process_) process_->renew();
  first_own_bytes_ = 0;
  incumbent_slot_ = -1;
}

/// Notes the reply in `m`; true when all is well. A worker that has ended is replaced later.
bool Race::good(const RunnerReply& reply, Measurement& m) {
  if (!reply.alive) renew();
  if (reply.status == TrialStatus::ok) return !reply.stopped;
  m.status = reply.status;
  m.reason = reply.reason;
  return false;
}

bool Race::load(int slot, const KernelObject& object, Measurement& m) {
  return clock_.run("load", [&] { return good(process().load(slot, object), m); });
}

/// Puts the incumbent into the process; true when it is there.
bool Race::load_incumbent() {
  if (!incumbent_) return false;
  process();
  if (incumbent_slot_ >= 0) return true;
  Measurement ignored;  // it was loaded before; without it there is just no alternation
  const int slot = next_slot_++;
  if (load(slot, incumbent_->object, ignored)) incumbent_slot_ = slot;
  return incumbent_slot_ >= 0;
}

/// Seconds that one call may take: more where many programs share the CPUs.
double Race::call_timeout_s() const {
  if (!incumbent_) return options_.timeout_s;
  double load = 0;
  ::getloadavg(&load, 1);
  const double crowd = std::max(1.0, load / allowed_cores());
  return std::min(options_.timeout_s, crowd * (kPatienceS + kFarBehind * incumbent_->us * 1e-6));
}

/// Two calls, and arrays that are filled and compared.
double Race::verify_timeout_s() const {
  constexpr double kBytesPerS = 2e8;
  const auto bytes = static_cast<double>(argument_offsets(setup_.parameters).back());
  return 1 + 4 * call_timeout_s() + bytes / kBytesPerS;
}

Measurement Race::measure(const Built& built) {
  Measurement m;
  refuse(built, m);
  if (built.status != TrialStatus::ok) return m;
  load_incumbent();
  const int slot = next_slot_++;
  if (race(slot, built, m)) {
    settle(slot, built.object, m);
  } else if (process_) {
    clock_.run("load", [&] { process_->unload(slot); });
  }
  return m;
}

bool Race::race(int slot, const Built& built, Measurement& m) {
  return load(slot, built.object, m) && clock_.run("first", [&] { return keeps_pace(slot, m); }) &&
         verify(slot, m) && clock_.run("time", [&] { return time(slot, m); });
}

/// A first look: false for a candidate that is far behind the incumbent, or fails.
bool Race::keeps_pace(int slot, Measurement& m) {
  const double limit_us = incumbent_ ? options_.outpaced * incumbent_->us : 0;
  const double timeout_s = call_timeout_s();
  RunnerReply reply = process().first(slot, limit_us, timeout_s);
  if (!good(reply, m)) {
    if (m.status == TrialStatus::run_timeout && timeout_s < options_.timeout_s) {
      m.status = TrialStatus::outpaced;
      m.reason = fmt::format("not finished after {:.3g} s, the best takes {:.4g} us", timeout_s,
                             incumbent_->us);
    }
    return false;
  }
  first_us_ = least(reply.samples_us.at(0));
  if (limit_us <= 0 || first_us_ <= limit_us) return true;
  double best_us = incumbent_->us;
  if (incumbent_slot_ >= 0 && first_us_ < hopeless(first_us_) * limit_us) {
    // The machine may have been busy just then: again, with the incumbent beside it.
    reply = process().time({slot, incumbent_slot_}, kRecheckUs, 1, 4 * timeout_s);
    if (!good(reply, m)) return false;
    first_us_ = least(reply.samples_us.at(0));
    best_us = least(reply.samples_us.at(1));
    if (first_us_ <= options_.outpaced * best_us) return true;
  }
  m.status = TrialStatus::outpaced;
  m.reason = fmt::format("{:.4g} us in its first calls, the best takes {:.4g}", first_us_, best_us);
  return false;
}

bool Race::verify(int slot, Measurement& m) {
  const RunnerReply reply =
      clock_.run("verify", [&] { return process().verify(slot, verify_timeout_s()); });
  const bool compared =
      reply.alive && (reply.status == TrialStatus::ok || reply.status == TrialStatus::wrong_answer);
  if (compared) {
    m.check = reply.status == TrialStatus::ok ? CheckResult::passed : CheckResult::failed;
    m.check_error = reply.check_error;
  }
  if (good(reply, m)) return true;
  renew();  // who writes where it should not may have spoiled more
  return false;
}

bool Race::time(int slot, Measurement& m) {
  std::vector<int> slots = {slot};
  if (incumbent_slot_ >= 0) slots.push_back(incumbent_slot_);
  const double sample_s = std::max(options_.sample_us, first_us_) * 1e-6;
  const auto affordable = static_cast<int>(std::min(kTimedUs * 1e-6 / sample_s, 1e3));
  const int samples = std::min(std::max(affordable, kLeastSamples), options_.samples);
  const double timeout_s =
      2 * call_timeout_s() + 10 * sample_s * samples * static_cast<double>(slots.size());
  const RunnerReply reply = process().time(slots, options_.sample_us, samples, timeout_s, kBehind);
  if (!good(reply, m)) {
    m.check = CheckResult::not_run;
    return false;
  }
  cpu_.add(reply.cpu);
  m.samples_us = reply.samples_us.at(0);
  m.status = TrialStatus::ok;
  m.reason.clear();
  if (slots.size() == 2) incumbent_->us = median(reply.samples_us.at(1));
  own_bytes_ = reply.own_bytes;
  if (first_own_bytes_ == 0) first_own_bytes_ = own_bytes_;
  return true;
}

/// The faster of the two stays loaded; a worker that has grown is replaced.
void Race::settle(int slot, const KernelObject& object, const Measurement& m) {
  const double us = median(m.samples_us);
  if (!incumbent_ || us < incumbent_->us) {
    if (incumbent_slot_ >= 0) process().unload(incumbent_slot_);
    incumbent_ = Incumbent{object, us};
    incumbent_slot_ = slot;
  } else {
    process().unload(slot);
  }
  if (own_bytes_ > first_own_bytes_ + options_.growth_bytes) renew();
}

/// Runs and is right; first_us_ is how long it takes.
bool Race::stands_alone(const Built& built, Measurement& m) {
  refuse(built, m);
  if (built.status != TrialStatus::ok) return false;
  const int slot = next_slot_++;
  if (!load(slot, built.object, m)) return false;
  const RunnerReply reply = process().first(slot, 0, options_.timeout_s);
  const bool right = good(reply, m) && verify(slot, m);
  if (right) first_us_ = least(reply.samples_us.at(0));
  if (process_) process_->unload(slot);
  return right;
}

std::vector<Measurement> Race::compare(const std::vector<Built>& kernels, double seconds) {
  std::vector<Measurement> out(kernels.size());
  std::vector<int> passed;
  const double share_us =
      seconds * 1e6 / (kCompareRounds * kCompareSamples * static_cast<double>(kernels.size()));
  const double sample_us = std::max(options_.sample_us, std::min(share_us, kLongestSampleUs));
  double round_us = 0;  // one sample of each
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (!stands_alone(kernels[k], out[k])) continue;
    passed.push_back(static_cast<int>(k));
    round_us += std::max(sample_us, first_us_);
  }
  if (passed.empty()) return out;
  const double affordable = std::floor(seconds * 1e6 / round_us);
  const auto samples = static_cast<int>(
      std::clamp<double>(affordable, kLeastSamples, kCompareRounds * kCompareSamples));
  const int rounds = samples < 2 * kCompareRounds ? 1 : kCompareRounds;
  for (int round = 0; round < rounds; ++round) {
    RunnerProcess fresh(options_.program, setup_, options_.stop);
    for (int slot : passed) {
      Measurement& m = out[static_cast<size_t>(slot)];
      if (!good(fresh.load(slot, kernels[static_cast<size_t>(slot)].object), m)) return {};
    }
    const RunnerReply reply = fresh.time(passed, sample_us, samples / rounds,
                                         options_.timeout_s + 20e-6 * round_us * samples);
    cpu_.add(reply.cpu);
    for (size_t k = 0; k < passed.size(); ++k) {
      Measurement& m = out[static_cast<size_t>(passed[k])];
      if (!good(reply, m)) return {};
      const std::vector<double>& more = reply.samples_us.at(k);
      m.samples_us.insert(m.samples_us.end(), more.begin(), more.end());
    }
  }
  return out;
}

}  // namespace tenon
