// How well the draft score ranks: random points of an operator's templates and sketches (or of one
// of both), measured once and kept in a file, against their drafts.
//
//   ninja -C build perf_draft
//   build/bin/perf_draft measure POINTS.jsonl 200 1 matmul m=256 n=256 k=256    # points, threads
//   build/bin/perf_draft measure POINTS.jsonl 200 1 --sketches matmul m=256 n=256 k=256
//   build/bin/perf_draft rank POINTS.jsonl ...                                  # measures nothing
//   build/bin/perf_draft speed [THREADS] [POINTS] [OPERATOR]                               # of a
//   dozen operators
//
// For each operator `rank` prints Spearman's rank correlation of drafted cycles to measured time,
// how many of the 16 best drafts are in the true best 5%, the best of these 16 as a share of the
// true best, what was called hopeless (and the best of it), and what a point costs. `speed` prints
// what random points cost to schedule, to draft and to hash, in time of one core (mean, and the
// dearest template), and how long a batch takes as the search has it forecast (default 10,000
// points on two threads).
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/file.h>
#include <tenon/autotvm/ranker.h>
#include <tenon/ir/ops.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "autotvm/forecast.h"
#include "autotvm/model/draft.h"
#include "sketched_task.h"

using namespace tenon;
using nlohmann::ordered_json;

namespace {

constexpr int kRounds = 5;
constexpr double kFloor_us = 1500, kLong_us = 30'000;
constexpr uint64_t kSeed = 20;

/// Time of this thread on its core, microseconds: other processes do not count.
double thread_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

// -- measure

struct Trial {
  std::string template_name;
  Point point;
  Kernel kernel;
  std::vector<Array> arguments;
  std::vector<double> us;
};

/// Which templates of a task points are drawn from.
enum class Space : uint8_t { templates, sketches, both };

bool is_sketch(const NamedTemplate& t) { return t.name.rfind("sketch.", 0) == 0; }

/// Draws from the templates of one space in turn.
class Draw {
 public:
  Draw(const Task& task, bool sketches) : task_(task) {
    for (const NamedTemplate& t : task.templates)
      if (is_sketch(t) == sketches) {
        templates_.push_back(&t);
        spaces_.push_back(survey(t.fn, task.program, task.target));
      }
  }

  bool empty() const { return templates_.empty(); }

  /// A compiled program that is not in `seen`, if this try finds one.
  std::optional<Trial> next(Rng& rng, std::set<std::string>& seen) {
    const size_t t = tries_++ % spaces_.size();
    Trial trial{templates_[t]->name, spaces_[t].random_point(rng), {}, {}, {}};
    try {
      const Schedule s = apply_template(task_, trial.template_name, trial.point);
      if (!seen.insert(program_hash(s.program())).second) return std::nullopt;
      trial.kernel = compile(s.program(), task_.target);
      return trial;
    } catch (const UserError&) {
      return std::nullopt;  // a point that a primitive refuses
    }
  }

 private:
  const Task& task_;
  std::vector<const NamedTemplate*> templates_;
  std::vector<KnobSpace> spaces_;
  size_t tries_ = 0;
};

/// Distinct programs; of both spaces half of the tries each, so that one that is soon exhausted
/// leaves room to the other.
std::vector<Trial> draw(const Task& task, Space space, size_t wanted) {
  std::vector<Draw> draws;
  for (const bool sketches : {false, true}) {
    if (space == (sketches ? Space::templates : Space::sketches)) continue;
    Draw d(task, sketches);
    if (!d.empty()) draws.push_back(std::move(d));
  }
  if (draws.empty()) return {};
  std::vector<Trial> out;
  std::set<std::string> seen;
  Rng rng(kSeed);
  for (size_t tries = 0; out.size() < wanted && tries < 20 * wanted; ++tries)
    if (auto trial = draws[tries % draws.size()].next(rng, seen)) out.push_back(std::move(*trial));
  return out;
}

std::vector<Array> arguments_for(const Kernel& kernel) {
  std::vector<Array> out;
  for (const Param& p : kernel.program().params)
    out.push_back(random(p.buffer->dtype, *const_shape(p.buffer->shape), 3));
  return kernel.prepacked(out);
}

/// Rounds over all kernels, so that a slow minute slows all of them; those far behind and long ones
/// take part in the first two.
void time_all(std::vector<Trial>& trials, int threads) {
  ThreadPool pool(threads);
  for (Trial& t : trials) t.arguments = arguments_for(t.kernel);
  const ThreadPool::Busy busy(pool);
  double best = 0;
  for (int round = 0; round < kRounds; ++round)
    for (Trial& t : trials) {
      if (round > 1 && t.us[0] > std::min(2 * best, kLong_us / round)) continue;
      t.us.push_back(time_repeatedly([&] { t.kernel.run(t.arguments, pool); }, kFloor_us, 1).min());
      if (best == 0 || t.us.back() < best) best = t.us.back();
    }
}

struct MeasureOptions {
  std::string file;
  size_t points = 200;
  int threads = 1;
  Space space = Space::both;
  std::string lock;  // a file that is locked while kernels are timed
  std::vector<std::string> words;
};

void measure(const MeasureOptions& o) {
  const Task task = task_for(o.words, o.threads);
  std::vector<Trial> trials = draw(task, o.space, o.points);
  const int held = o.lock.empty() ? -1 : open(o.lock.c_str(), O_RDONLY);
  if (held >= 0) flock(held, LOCK_EX);
  const sched_param first{.sched_priority = 1};
  sched_setscheduler(0, SCHED_RR, &first);  // where it is allowed, builds do not disturb
  const double start = now_us();
  time_all(trials, o.threads);
  fmt::print("{}: {} points, timed in {:.1f} s\n", join(o.words, " "), trials.size(),
             (now_us() - start) * 1e-6);
  if (held >= 0) close(held);
  std::ofstream out(o.file, std::ios::app);
  for (const Trial& t : trials)
    out << ordered_json{{"operator", o.words},
                        {"threads", o.threads},
                        {"template", t.template_name},
                        {"knobs", ordered_json::parse(t.point.to_json())},
                        {"us", *std::min_element(t.us.begin(), t.us.end())}}
               .dump()
        << "\n";
}

// -- rank

struct Scored {
  std::string template_name;
  Point point;
  double us = 0, cycles = 0, apply_us = 0, draft_us = 0;
  DraftFeatures features;
  std::optional<std::string> hopeless;
};

double median_of(const std::vector<Scored>& all, double Scored::*member) {
  std::vector<double> values;
  for (const Scored& s : all) values.push_back(s.*member);
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void print_points(const std::vector<Scored>& by_draft, double best) {
  for (const Scored& s : by_draft) {
    fmt::print("  {:8.1f} us {:5.2f} draft {:10.0f} ({:6.2f}/us) {} {}{}\n", s.us, best / s.us,
               s.cycles, s.cycles / s.us, s.template_name, s.point.to_json(),
               s.hopeless ? " hopeless: " + *s.hopeless : "");
    const auto names = DraftFeatures::names();
    const auto values = s.features.vector();
    fmt::print("      ");
    for (size_t n = 0; n < names.size(); ++n)
      if (values[n] != 0) fmt::print(" {}={:.4g}", names[n], values[n]);
    fmt::print("\n");
  }
}

void report(const std::string& title, std::vector<Scored> all, bool verbose) {
  std::vector<double> us, cycles;
  for (const Scored& s : all) {
    us.push_back(s.us);
    cycles.push_back(s.cycles);
  }
  const double rho = rank_quality(cycles, us).rho;
  std::sort(us.begin(), us.end());
  const double best = us[0], good = us[std::max<size_t>(1, us.size() / 20) - 1];
  const auto dropped = std::count_if(all.begin(), all.end(), [](auto& s) { return s.hopeless; });
  double best_dropped = 0;
  for (const Scored& s : all)
    if (s.hopeless) best_dropped = std::max(best_dropped, best / s.us);
  std::stable_sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) {
    return std::pair(a.hopeless.has_value(), a.cycles) <
           std::pair(b.hopeless.has_value(), b.cycles);
  });
  const size_t top = std::min<size_t>(16, all.size());
  size_t hits = 0;
  double first = best / all[0].us, reached = 0;
  for (size_t n = 0; n < top; ++n) {
    hits += all[n].us <= good;
    reached = std::max(reached, best / all[n].us);
  }
  fmt::print("{:44} {:4} {:6.3f} {:4}/{:<3} {:6.3f} {:6.3f} {:4} {:6.2f} {:8.1f} {:8.1f}\n", title,
             all.size(), rho, hits, std::max<size_t>(1, us.size() / 20), reached, first, dropped,
             best_dropped, median_of(all, &Scored::apply_us), median_of(all, &Scored::draft_us));
  if (verbose) print_points(all, best);
}

Scored score(const Task& task, const ordered_json& line, int threads) {
  Scored s;
  s.template_name = line.at("template");
  s.point = Point::from_json(line.at("knobs").dump());
  s.us = line.at("us");
  const double a = thread_us();
  const Schedule schedule = apply_template(task, s.template_name, s.point);
  const double b = thread_us();
  const Draft d = draft(schedule.program(), task.target, threads);
  const double c = thread_us();
  s.cycles = d.cycles;
  s.features = d.features;
  s.hopeless = d.hopeless;
  s.apply_us = b - a;
  s.draft_us = c - b;
  return s;
}

void rank(const std::vector<std::string>& files, bool verbose) {
  fmt::print("{:44} {:>4} {:>6} {:>8} {:>6} {:>6} {:>4} {:>6} {:>8} {:>8}\n", "operator", "n",
             "rho", "best 5%", "top16", "top1", "drop", "best", "apply_us", "draft_us");
  for (const std::string& file : files) {
    std::map<std::pair<std::vector<std::string>, int>, std::vector<ordered_json>> operators;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
      ordered_json j = ordered_json::parse(line);
      operators[{j.at("operator"), j.at("threads")}].push_back(std::move(j));
    }
    for (const auto& [key, lines] : operators) {
      const Task task = task_for(key.first, key.second);
      const std::string title = fmt::format("{} x{}", join(key.first, " "), key.second);
      std::vector<Scored> all;
      for (const ordered_json& line : lines) {
        try {
          all.push_back(score(task, line, key.second));
        } catch (const UserError&) {
          continue;  // of a space that has changed since
        }
      }
      if (!all.empty()) report(title, all, verbose);
      if (all.size() < lines.size())
        fmt::print("  {}: {} of {} points are refused by now\n", title, lines.size() - all.size(),
                   lines.size());
    }
  }
}

// -- speed

/// Time of one core that points of one template take, microseconds in all.
struct Cost {
  double apply_us = 0, draft_us = 0, hash_us = 0;
  size_t points = 0, refused = 0;
  double each(double us) const { return us / static_cast<double>(std::max<size_t>(1, points)); }
  double all_us() const { return each(apply_us + draft_us + hash_us); }
};

/// Random points of all templates in turns.
std::vector<SpacePoint> draw(const TaskSpace& space, size_t count) {
  Rng rng(kSeed);
  std::vector<SpacePoint> out;
  for (size_t n = 0; n < count; ++n) {
    const size_t t = n % space.spaces().size();
    out.push_back({t, space.spaces()[t].random_point(rng)});
  }
  return out;
}

Cost cost_of(const TaskSpace& space, const Task& task, int threads,
             const std::vector<SpacePoint>& points, size_t template_index) {
  Cost out;
  for (const SpacePoint& at : points) {
    if (at.template_index != template_index) continue;
    const double a = thread_us();
    const Result<Candidate> made = space.candidate(at);
    const double b = thread_us();
    ++out.points;
    out.apply_us += b - a;
    if (!made) {
      ++out.refused;
      continue;
    }
    const Draft d = draft(made.value().program, task.target, threads);
    const double c = thread_us();
    const std::string hash = program_hash(made.value().program);
    out.draft_us += c - b;
    out.hash_us += thread_us() - c;
    TENON_CHECK(d.cycles > 0 && !hash.empty(), "a point without a draft");
  }
  return out;
}

void speed_of(const std::vector<std::string>& words, int threads, size_t batch) {
  constexpr size_t kPoints = 600;
  const Task task = operator_task(words, [&] {
    Target target = Target::host();
    target.cores = threads;
    return target;
  }());
  const TaskSpace space(task, SpaceKind::both);
  const std::vector<SpacePoint> points = draw(space, kPoints);
  Cost all;
  std::pair<double, std::string> dearest;
  for (size_t t = 0; t < space.spaces().size(); ++t) {
    const Cost c = cost_of(space, task, threads, points, t);
    all.apply_us += c.apply_us;
    all.draft_us += c.draft_us;
    all.hash_us += c.hash_us;
    all.points += c.points;
    all.refused += c.refused;
    dearest = std::max(dearest, std::pair(c.all_us(), space.template_name(t)));
  }
  const std::vector<SpacePoint> many = draw(space, batch);
  DraftForecaster forecast(space, task, threads);
  const double start = now_us();
  forecast(many);
  fmt::print("{:44} {:7.1f} {:7.1f} {:7.1f} {:7.1f} {:7} {:8.2f}   {:.1f} {}\n", join(words, " "),
             all.each(all.apply_us), all.each(all.draft_us), all.each(all.hash_us), all.all_us(),
             all.refused, (now_us() - start) * 1e-6, dearest.first, dearest.second);
}

void speed(int threads, size_t batch, const std::string& only) {
  fmt::print("{:44} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8}   {}\n", "operator, us a point", "apply",
             "draft", "hash", "all", "refused", "batch_s", "dearest template");
  const std::vector<std::string> operators = {
      "matmul m=1024 n=1024 k=1024",
      "matmul m=1000 n=999 k=777",
      "batch_matmul batch=12 m=128 n=128 k=64",
      "gemm m=128 n=3072 k=768",
      "conv2d c_in=64 h=56 w=56 c_out=64 k=3 pad=1",
      "conv2d c_in=256 h=14 w=14 c_out=256 k=1",
      "conv2d_blocked c_in=64 h=28 w=28 c_out=64 k=3 pad=1",
      "conv2d c_in=144 h=28 w=28 c_out=144 k=3 pad=1 groups=144",
      "softmax rows=1024 columns=1024",
      "layer_norm rows=1024 columns=768",
      "reduce shape=1024x1024 axis=1",
      "elementwise op=relu n=1048576"};
  for (const std::string& words : operators)
    if (only.empty() || words.rfind(only, 0) == 0) speed_of(split_text(words, ' '), threads, batch);
}

int usage() {
  fmt::print(stderr,
             "perf_draft measure FILE POINTS THREADS [--lock FILE] [--sketches | --templates] "
             "OPERATOR ARGUMENTS...\n"
             "perf_draft rank [--points] FILE...\n"
             "perf_draft speed [THREADS] [POINTS] [OPERATOR]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && words[0] == "speed") {
      speed(words.size() > 1 ? std::stoi(words[1]) : 2,
            words.size() > 2 ? std::stoul(words[2]) : 10'000, words.size() > 3 ? words[3] : "");
      return 0;
    }
    if (words.size() < 2) return usage();
    const bool verbose = words[1] == "--points";
    if (words[0] == "rank") {
      rank({words.begin() + (verbose ? 2 : 1), words.end()}, verbose);
      return 0;
    }
    if (words[0] != "measure" || words.size() < 5) return usage();
    MeasureOptions options;
    options.file = words[1];
    options.points = std::stoul(words[2]);
    options.threads = std::stoi(words[3]);
    size_t next = 4;
    if (words[next] == "--lock" && words.size() > next + 2) {
      options.lock = words[next + 1];
      next += 2;
    }
    if (words[next] == "--sketches" || words[next] == "--templates")
      options.space = words[next++] == "--sketches" ? Space::sketches : Space::templates;
    options.words = {words.begin() + static_cast<std::ptrdiff_t>(next), words.end()};
    measure(options);
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "perf_draft: {}\n", e.what());
    return 1;
  }
}
