#include <tenon/autotvm/failure.h>
#include <tenon/ir/program_json.h>
#include <tenon/support/error.h>
#include <tenon/support/files.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tenon {

std::string write_failure(const Record& record, const Task& task, const std::string& log) {
  namespace fs = std::filesystem;
  const fs::path beside = log;
  std::error_code ignored;  // writing says it better
  if (beside.has_parent_path()) fs::create_directories(beside.parent_path(), ignored);
  const std::string file =
      (beside.parent_path() / fmt::format("{}-failure-{}-{}.json", beside.stem().string(),
                                          record.program.substr(0, 8), record.trial))
          .string();
  Record kept = record;
  nlohmann::json ranges = nlohmann::json::object();
  for (const auto& [input, range] : task.input_ranges) ranges[input] = range;
  kept.newer = nlohmann::json{
      {"program_text", print(task.program)},
      {"program_tree", nlohmann::json::parse(to_json(task.program))},
      {"input_ranges", ranges},
      {"flops",
       task.flops}}.dump();
  if (const auto failed = write_file(file, to_json_line(kept) + "\n"))
    throw UserError(fmt::format("cannot write {}: {}", file, failed->message));
  return file;
}

std::optional<Task> task_of_failure(const Record& record, const Target& target) try {
  const auto more = nlohmann::json::parse(record.newer);
  if (!more.contains("program_tree")) return std::nullopt;
  Task task(record.task, program_from_json(more["program_tree"].dump()), {}, target);
  task.args = record.args;
  if (auto args = nlohmann::ordered_json::parse(record.args); args.contains("sample_sizes")) {
    args["sample_sizes"].get_to(task.sample_sizes);
    args.erase("sample_sizes");
    task.args = args.dump();
  }
  task.flops = more.value("flops", 0.0);
  const auto ranges = more.value("input_ranges", nlohmann::json::object());
  for (const auto& [input, range] : ranges.items())
    task.input_ranges[input] = {range.at(0).get<int64_t>(), range.at(1).get<int64_t>()};
  if (program_hash(task.program) == record.program) return task;
  throw UserError(fmt::format("the program in the file is not the one that failed: {}, not {}",
                              program_hash(task.program), record.program));
} catch (const nlohmann::json::exception& e) {
  throw UserError(fmt::format("what the failed trial left is damaged: {}", e.what()));
}

}  // namespace tenon
