#include <tenon/driver/check_log.h>
#include <tenon/driver/driver.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "kernels/table.h"

namespace tenon {
namespace {

bool is_operator(const std::string& name) {
  for (const KernelEntry& entry : kernel_table()) {
    if (entry.name == name) return true;
  }
  return false;
}

/// Tasks of records, each made once.
class TaskSource {
 public:
  TaskSource(std::filesystem::path model, NetworkOptions options)
      : model_(std::move(model)), options_(std::move(options)) {}

  /// Null where there is no way to know it. UserError as task_of_record().
  const Task* find(const Record& r) {
    const std::string target = r.target.to_json();
    const auto key = std::pair(target, r.program);
    if (const auto known = tasks_.find(key); known != tasks_.end()) return &known->second;
    if (!model_.empty() && models_.insert(target).second) add_network(r.target, target);
    if (const auto known = tasks_.find(key); known != tasks_.end()) return &known->second;
    if (!is_operator(r.task)) return nullptr;
    NetworkOptions options = options_;
    options.target = r.target;
    return &tasks_.emplace(key, task_of_record(r, {}, options)).first->second;
  }

 private:
  void add_network(const Target& target, const std::string& text) {
    NetworkOptions options = options_;
    options.target = target;
    const Network network = Network::load(model_, options);
    for (const GroupKernel& kernel : network.kernels())
      tasks_.emplace(std::pair(text, program_hash(kernel.task.program)), kernel.task);
  }

  std::filesystem::path model_;
  NetworkOptions options_;
  std::set<std::string> models_;  // targets that the network was loaded for
  std::map<std::pair<std::string, std::string>, Task> tasks_;
};

std::string first_line(const std::string& text) { return split_text(text, '\n').front(); }

/// What is wrong with the record by itself; empty: nothing.
std::string record_problem(const Record& r) {
  if (r.status != TrialStatus::ok && r.reason.empty())
    return fmt::format("status {} without a reason", name(r.status));
  if (r.check == CheckResult::passed && r.status != TrialStatus::ok)
    return fmt::format("status {} with a check that passed", name(r.status));
  return "";
}

/// What is wrong with the record as one of this task; empty: nothing.
std::string replay_problem(const Record& r, const Task& task) {
  if (!r.family.empty() && r.family != family_hash(task.program))
    return fmt::format("the family is {}, not {}", family_hash(task.program), r.family);
  try {
    const Trace trace = trace_from_json(r.trace);
    if (replay(task.program, r.target, trace).trace() == trace) return "";
    return "the trace replays to another one";
  } catch (const UserError& e) {
    return "the trace does not replay: " + first_line(e.what());
  }
}

class Checker {
 public:
  Checker(TaskSource tasks, LogCheck& out) : tasks_(std::move(tasks)), out_(out) {}

  void check(const LogLine& line) {
    const std::optional<Result<Record>> record = record_of(line);
    if (!record) return;
    if (record->ok()) {
      ++out_.records;
      check_record(line.where, record->value());
    } else if (schema_of(line.text) > kRecordSchema) {
      ++out_.newer;
    } else {
      say(line.where, record->error());
    }
  }

 private:
  void say(const LogRef& where, const std::string& text) { out_.wrong.push_back({where, text}); }

  void check_record(const LogRef& where, const Record& r) {
    if (const std::string problem = record_problem(r); !problem.empty()) say(where, problem);
    const Task* task = nullptr;
    try {
      task = tasks_.find(r);
    } catch (const UserError& e) {
      return say(where, first_line(e.what()));
    }
    if (!task) {
      ++out_.not_rebuilt;
      return;
    }
    if (r.status == TrialStatus::refused) return;  // it has no trace
    const std::string problem = replay_problem(r, *task);
    if (problem.empty()) {
      ++out_.replayed;
    } else {
      say(where, problem);
    }
  }

  TaskSource tasks_;
  LogCheck& out_;
};

}  // namespace

LogCheck check_log(const std::string& log, const std::filesystem::path& model,
                   const NetworkOptions& options) {
  LogCheck out;
  Checker checker(TaskSource(model, options), out);
  for_each_line(log, [&](const LogLine& line) {
    checker.check(line);
    return true;
  });
  return out;
}

}  // namespace tenon
