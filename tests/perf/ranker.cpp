// How well the learned ranker orders points of operators that it never saw, beside the draft score.
//
//   ninja -C build perf_draft perf_ranker
//   build/bin/perf_draft measure POINTS.jsonl 1000 1 matmul m=256 n=256 k=256    # and others
//   build/bin/perf_ranker POINTS.jsonl ... [-o ranker.json]                      # measures nothing
//   tests/perf/ranker.sh                                                         # all of it
//
// For each operator a ranker learns from the points of all others: Spearman's rank correlation of
// order and measured time, how many of the first 16 are in the true best 5%, and the time of the
// true best over that of the best of these 16. The last lines count the tasks with 8 such points
// and a best of 0.97. With -o the ranker of all points is kept.
#include <fmt/format.h>
#include <tenon/autotvm/ranker.h>
#include <tenon/ir/ops.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/error.h>
#include <tenon/support/files.h>
#include <tenon/support/text.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "sketched_task.h"

using namespace tenon;
using nlohmann::ordered_json;

namespace {

class Points {
 public:
  /// Adds a line of perf_draft; points that are refused by now are counted.
  void add(const std::string& text) {
    const ordered_json line = ordered_json::parse(text);
    const auto words = line.at("operator").get<std::vector<std::string>>();
    const int threads = line.at("threads");
    const std::string name = fmt::format("{} x{}", join(words, " "), threads);
    const auto place = tasks_.find(name);
    const Task& task = place != tasks_.end()
                           ? place->second
                           : tasks_.emplace(name, task_for(words, threads)).first->second;
    try {
      const Point point = Point::from_json(line.at("knobs").dump());
      const Program program = apply_template(task, line.at("template"), point).program();
      if (!seen_.insert(name + program_hash(program)).second) return;
      const double start = now_us();
      RankerFeatures features = ranker_features(program, task.target, threads);
      spent_us_ += now_us() - start;
      rows.push_back({words.at(0), name, std::move(features), line.at("us")});
    } catch (const UserError&) {
      ++refused_;
    }
  }

  std::string text() const {
    return fmt::format("{} points of {} tasks, {} refused; {:.0f} us for the features of one\n",
                       rows.size(), tasks_.size(), refused_,
                       spent_us_ / static_cast<double>(std::max<size_t>(1, rows.size())));
  }

  std::vector<RankerRow> rows;

 private:
  std::map<std::string, Task> tasks_;
  std::set<std::string> seen_;
  int64_t refused_ = 0;
  double spent_us_ = 0;
};

constexpr size_t kLeastPoints = 16 * 20;  // of which 5% are 16
constexpr int64_t kReach = 8, kAim = 12;
constexpr double kReached = 0.97;

std::string counts(const std::vector<UnseenQuality>& qualities, const char* title,
                   RankQuality UnseenQuality::*order) {
  int64_t tasks = 0, met = 0, aimed = 0;
  for (const UnseenQuality& q : qualities) {
    if (q.points < kLeastPoints) continue;
    const RankQuality& r = q.*order;
    ++tasks;
    met += r.hits >= kReach && r.reached >= kReached;
    aimed += r.hits >= kAim && r.reached >= kReached;
  }
  return fmt::format("{}: of {} tasks of {} points and more {} with {} of 16 and {}, {} with {}\n",
                     title, tasks, kLeastPoints, met, kReach, kReached, aimed, kAim);
}

void run(const std::vector<std::string>& files, const std::string& out) {
  Points points;
  for (const std::string& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) points.add(line);
  }
  const std::vector<UnseenQuality> qualities = leave_one_out(points.rows);
  fmt::print("{}{}{}{}", points.text(), quality_table(qualities),
             counts(qualities, "draft", &UnseenQuality::draft),
             counts(qualities, "draft + ranker", &UnseenQuality::ranker));
  if (out.empty()) return;
  const double start = now_us();
  const Ranker ranker = Ranker::fit(points.rows);
  fmt::print("learned in {:.2f} s\n", (now_us() - start) * 1e-6);
  if (const auto failure = write_file(out, ranker.to_json())) throw UserError(failure->message);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<std::string> files(argv + 1, argv + argc);
    std::string out;
    if (files.size() > 2 && files[files.size() - 2] == "-o") {
      out = files.back();
      files.resize(files.size() - 2);
    }
    if (files.empty()) {
      fmt::print(stderr, "perf_ranker POINTS... [-o RANKER.json]\n");
      return 2;
    }
    run(files, out);
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "perf_ranker: {}\n", e.what());
    return 1;
  }
}
