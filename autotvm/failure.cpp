#include <tenon/autotvm/failure.h>
#include <tenon/support/error.h>
#include <tenon/support/files.h>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace tenon {

std::string write_failure(const Record& record, const Program& program, const std::string& log) {
  namespace fs = std::filesystem;
  const fs::path beside = log;
  std::error_code ignored;  // writing says it better
  if (beside.has_parent_path()) fs::create_directories(beside.parent_path(), ignored);
  const std::string file =
      (beside.parent_path() / fmt::format("{}-failure-{}-{}.json", beside.stem().string(),
                                          record.program.substr(0, 8), record.trial))
          .string();
  Record kept = record;
  kept.newer = nlohmann::json{{"program_text", print(program)}}.dump();
  if (const auto failed = write_file(file, to_json_line(kept) + "\n"))
    throw UserError(fmt::format("cannot write {}: {}", file, failed->message));
  return file;
}

}  // namespace tenon
