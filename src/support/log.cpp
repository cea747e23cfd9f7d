#include <tenon/support/log.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tenon {

int log_level() {
  static const int level = [] {
    const char* text = std::getenv("TENON_LOG");
    return text ? std::atoi(text) : 0;
  }();
  return level;
}

void log_line(int level, std::string_view where, std::string_view text) {
  if (level > log_level()) return;
  fmt::print(stderr, "[{}] {}\n", where, text);
}

void dump_text(std::string_view name, std::string_view text) {
  static const char* const directory = std::getenv("TENON_DUMP");
  static std::atomic<int> number{0};
  if (!directory) return;
  std::filesystem::create_directories(directory);
  std::string file(name);
  for (char& c : file) c = c == '/' ? '_' : c;
  std::ofstream(std::filesystem::path(directory) / fmt::format("{:03}-{}.txt", number++, file))
      << text;
}

}  // namespace tenon
