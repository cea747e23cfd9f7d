#include <tenon/compile/compile.h>
#include <tenon/driver/driver.h>
#include <tenon/driver/ranker.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <optional>
#include <set>

namespace tenon {
namespace {

class Trainer {
 public:
  Trainer(const std::filesystem::path& model, const NetworkOptions& options)
      : model_(model), options_(options) {}

  /// A trace that was measured more than once counts as its last trial did.
  void add(const LoadedLog& log) {
    for (const std::string& w : log.warnings) out_.warnings.push_back(w);
    for (const LoggedRecord& logged : log.records) {
      const Record& r = logged.record;
      if (!can_be_best(r)) {
        ++out_.passed_over[std::string("no time: ") + std::string(name(r.status))];
        continue;
      }
      const std::string key = task_key(r) + r.trace;
      const auto [place, fresh] = places_.emplace(key, records_.size());
      if (fresh)
        records_.push_back(r);
      else
        records_[place->second] = r;
    }
  }

  RankerTraining result() {
    for (const Record& r : records_) add_row(r);
    out_.rows = rows_.size();
    out_.ranker = Ranker::fit(rows_);
    if (!out_.ranker.knows()) throw UserError(too_few());
    std::set<std::string> tasks;
    for (const RankerRow& row : rows_) tasks.insert(row.task);
    out_.tasks = tasks.size();
    out_.unseen = leave_one_out(rows_);
    return std::move(out_);
  }

 private:
  static std::string task_key(const Record& r) {
    return fmt::format("{} {} {} x{}{} on {}", r.task, r.args, r.program, r.threads,
                       r.cold ? " cold" : "", r.target.fingerprint());
  }

  const std::optional<Task>& task_of(const Record& r) {
    const auto [place, fresh] = tasks_.emplace(task_key(r), std::nullopt);
    if (!fresh) return place->second;
    try {
      NetworkOptions options = options_;
      options.target = r.target;
      place->second = task_of_record(r, model_, options);
    } catch (const UserError& e) {
      out_.warnings.push_back(fmt::format("{} {}: {}", r.task, r.args, e.what()));
    }
    return place->second;
  }

  void add_row(const Record& r) {
    const std::optional<Task>& task = task_of(r);
    if (!task) {
      ++out_.passed_over["the task cannot be rebuilt"];
      return;
    }
    try {
      const Program program =
          replay(task->program, task->target, trace_from_json(r.trace)).program();
      RankerFeatures features =
          ranker_features(program, task->target, r.threads, task->sample_sizes);
      rows_.push_back({r.task,
                       fmt::format("{} {} x{}{}", r.task, r.args, r.threads, r.cold ? " cold" : ""),
                       std::move(features), median_us(r)});
    } catch (const UserError&) {
      ++out_.passed_over["the schedule is no longer legal"];
    }
  }

  std::string too_few() const {
    std::string text = fmt::format("{} records teach something, a ranker needs 32", rows_.size());
    for (const auto& [reason, count] : out_.passed_over)
      text += fmt::format("\n  {:5} x {}", count, reason);
    return text + "\n  try: tenon tune OPERATOR --trials 200, for several operators";
  }

  std::filesystem::path model_;
  NetworkOptions options_;
  std::vector<Record> records_;
  std::map<std::string, size_t> places_;
  std::map<std::string, std::optional<Task>> tasks_;
  std::vector<RankerRow> rows_;
  RankerTraining out_;
};

}  // namespace

RankerTraining train_ranker(const std::vector<std::string>& logs,
                            const std::filesystem::path& model, const NetworkOptions& options) {
  if (const auto missing = trees_missing()) throw UserError(*missing);
  Trainer trainer(model, options);
  for (const std::string& log : logs) trainer.add(load_log(log));
  return trainer.result();
}

}  // namespace tenon
