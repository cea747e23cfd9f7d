#pragma once
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tenon {

/// What a program printed and how it ended; killed by a signal: 128 + its number.
struct Finished {
  int code = 0;
  std::string out, err;
};

/// The built `tenon` as a process. Its own files (stdout, stderr) lie outside of `folder`.
class Command {
 public:
  /// `words`: the arguments in one text, split at blanks. Runs in `folder`. `file_bytes`: no file
  /// may grow beyond it, as on a disk that is full. `program`: by another path than the built one.
  Command(const std::filesystem::path& folder, const std::string& words, int64_t file_bytes = -1,
          const std::string& program = TENON_COMMAND);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  void signal(int number) const;
  /// Polls until `condition` holds; false when the process ended before or `limit_s` passed.
  bool wait_until(const std::function<bool()>& condition, double limit_s);
  /// Fails the test when it does not end in time.
  Finished wait(double limit_s = 200);

 private:
  bool ended();
  std::filesystem::path output_;
  int pid_ = -1;
  int status_ = 0;
};

Finished run_command(const std::filesystem::path& folder, const std::string& words);

/// Runs it and checks the exit code; with code 0 nothing is checked of stderr, else that stdout is
/// empty.
Finished expect(int code, const std::filesystem::path& folder, const std::string& words);

/// Every line as JSON; fails the test for a line that is none.
std::vector<nlohmann::json> json_lines(const std::string& text);
std::vector<std::string> keys_of(const nlohmann::json& object);  // sorted
std::string read_text(const std::filesystem::path& file);        // empty: there is none
void write_text(const std::filesystem::path& file, const std::string& text);
int count_lines(const std::string& text);
bool contains(const std::string& text, const std::string& part);

}  // namespace tenon
