#include "command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split_words(const std::string& program, const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out = {program};
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

[[noreturn]] void become(const fs::path& folder, const fs::path& output,
                         const std::vector<char*>& arguments, int64_t file_bytes) {
  const int out = ::open((output / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int err = ::open((output / "err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (out < 0 || err < 0 || ::chdir(folder.c_str()) != 0) ::_exit(126);
  const rlimit limit{static_cast<rlim_t>(file_bytes), RLIM_INFINITY};
  if (file_bytes >= 0 && ::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(126);
  ::dup2(out, 1);
  ::dup2(err, 2);
  ::setenv("TENON_SHIPPED_LOGS", "", 1);  // what a schedule comes from hangs on no other file
  ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

Command::Command(const fs::path& folder, const std::string& words, int64_t file_bytes,
                 const std::string& program) {
  std::string pattern = (fs::temp_directory_path() / "tenon_cli_XXXXXX").string();
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  output_ = pattern;
  std::vector<std::string> list = split_words(program, words);
  std::vector<char*> arguments;
  for (std::string& word : list) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_ = ::fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) become(folder, output_, arguments, file_bytes);
}

Command::~Command() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;  // a folder left in /tmp fails no test
  fs::remove_all(output_, ignored);
}

void Command::signal(int number) const { REQUIRE(::kill(pid_, number) == 0); }

bool Command::ended() {
  if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
  return pid_ < 0;
}

bool Command::wait_until(const std::function<bool()>& condition, double limit_s) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::duration<double>(limit_s);
  while (std::chrono::steady_clock::now() < limit) {
    if (condition()) return true;
    if (ended()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

Finished Command::wait(double limit_s) {
  const bool in_time = wait_until([this] { return ended(); }, limit_s);
  Finished out;
  out.out = read_text(output_ / "out");
  out.err = read_text(output_ / "err");
  INFO("stdout: " << out.out << "\nstderr: " << out.err);
  REQUIRE(in_time);
  out.code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  return out;
}

Finished run_command(const fs::path& folder, const std::string& words) {
  return Command(folder, words).wait();
}

Finished expect(int code, const fs::path& folder, const std::string& words) {
  const Finished done = run_command(folder, words);
  INFO("tenon " << words << "\nstdout: " << done.out << "\nstderr: " << done.err);
  CHECK(done.code == code);
  if (code != 0) {
    CHECK(done.out == "");
    CHECK(done.err != "");
  }
  return done;
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    INFO("line: " << line);
    out.push_back(nlohmann::json::parse(line, nullptr, false));
    REQUIRE(out.back().is_object());
  }
  return out;
}

std::vector<std::string> keys_of(const nlohmann::json& object) {
  std::vector<std::string> out;
  for (const auto& [key, value] : object.items()) out.push_back(key);
  std::sort(out.begin(), out.end());
  return out;
}

std::string read_text(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  REQUIRE(out.good());
}

int count_lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tenon
