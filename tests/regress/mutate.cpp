#include "mutate.h"

#include <sys/resource.h>
#include <tenon/support/error.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#if defined(__SANITIZE_ADDRESS__)
/// Read by the sanitizer: an allocation of 2 GB is an error, as MemoryLimit says.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=2048:allocator_may_return_null=0:detect_stack_use_after_return=0";
}
#endif

namespace tenon {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr uint64_t kMoreBytes = uint64_t{2} << 30;

size_t below(size_t n, Rng& rng) {
  return static_cast<size_t>(rng.below(static_cast<int64_t>(std::max<size_t>(n, 1))));
}

void damage_bytes(std::string& bytes, Rng& rng) {
  const size_t at = below(bytes.size(), rng), most = std::min<size_t>(bytes.size() - at, 40);
  switch (bytes.empty() ? 3 : rng.below(10)) {
    case 0:
      bytes.resize(at);
      return;
    case 1:
      bytes.erase(at, 1 + below(most, rng));
      return;
    case 2:
      bytes.insert(below(bytes.size() + 1, rng), bytes.substr(at, 1 + below(most, rng)));
      return;
    case 3:
      bytes.insert(at, 1 + below(4, rng), static_cast<char>(rng.below(256)));
      return;
    case 4: {
      const char extremes[] = {'\0', '\x01', '\x7f', '\x80', '\xff'};
      bytes[at] = extremes[below(std::size(extremes), rng)];
      return;
    }
    default:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.below(8)));
  }
}

struct Span {
  size_t begin = 0, end = 0;
};

bool is_number_char(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '.';
}

/// Numbers outside of words.
std::vector<Span> numbers_of(const std::string& text) {
  std::vector<Span> out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts = is_number_char(text[i]) &&
                        (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1])));
    if (!starts) continue;
    size_t end = i;
    while (end < text.size() && is_number_char(text[end])) ++end;
    out.push_back({i, end});
    i = end;
  }
  return out;
}

std::vector<Span> words_of(const std::string& text) {
  std::vector<Span> out;
  for (size_t i = text.find('"'); i != std::string::npos; i = text.find('"', i + 1)) {
    const size_t end = text.find('"', i + 1);
    if (end == std::string::npos) break;
    out.push_back({i, end + 1});
    i = end;
  }
  return out;
}

void replace(std::string& text, const std::vector<Span>& places, const std::string& by, Rng& rng) {
  if (places.empty()) return;
  const Span place = places[below(places.size(), rng)];
  text.replace(place.begin, place.end - place.begin, by);
}

void damage_text(std::string& text, Rng& rng) {
  static const char* const kNumbers[] = {"0",
                                         "-1",
                                         "1",
                                         "2",
                                         "3",
                                         "007",
                                         "-0",
                                         "7.5",
                                         "64",
                                         "2147483648",
                                         "4294967296",
                                         "4611686018427387904",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "9223372036854775808",
                                         "18446744073709551615",
                                         "99999999999999999999",
                                         "1e308",
                                         "1e999"};
  static const char* const kValues[] = {"null", "true", "\"\"",        "[]",          "{}",
                                        "[1]",  "1",    "\"\\u0000\"", "[\"x\",[2]]", "\"C:i\""};
  const std::vector<Span> words = words_of(text);
  switch (rng.below(4)) {
    case 0:
      return damage_bytes(text, rng);
    case 1:
      return replace(text, words, kValues[below(std::size(kValues), rng)], rng);
    case 2: {
      if (words.empty()) return damage_bytes(text, rng);
      const Span from = words[below(words.size(), rng)];
      return replace(text, words, text.substr(from.begin, from.end - from.begin), rng);
    }
    default:
      replace(text, numbers_of(text), kNumbers[below(std::size(kNumbers), rng)], rng);
  }
}

char running_case[128];  // read by the signal's handler

void report_hang(int) {
  const ssize_t ignored = ::write(STDERR_FILENO, running_case, std::strlen(running_case));
  static_cast<void>(ignored);
  ::_exit(1);
}

uint64_t address_space_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

std::string mutate_bytes(std::string bytes, Rng& rng) {
  for (int64_t changes = rng.between(1, 3); changes > 0; --changes) damage_bytes(bytes, rng);
  return bytes;
}

std::string mutate_text(std::string text, Rng& rng) {
  for (int64_t changes = rng.between(1, 3); changes > 0; --changes) damage_text(text, rng);
  return text;
}

CaseLimit::CaseLimit(const char* test, uint64_t number) {
  std::snprintf(running_case, sizeof running_case, "\nhangs: %s, case %llu\n", test,
                static_cast<unsigned long long>(number));
  std::signal(SIGALRM, report_hang);
  ::alarm(kSanitized ? 60 : 20);
}

CaseLimit::~CaseLimit() { ::alarm(0); }

MemoryLimit::MemoryLimit() {
  if (kSanitized) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  before_ = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, address_space_bytes() + kMoreBytes);
  ::setrlimit(RLIMIT_AS, &limit);
}

MemoryLimit::~MemoryLimit() {
  if (kSanitized) return;
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = before_;
  ::setrlimit(RLIMIT_AS, &limit);
}

int64_t peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

End run_case(const std::function<void()>& f) {
  try {
    f();
    return End::done;
  } catch (const UserError& error) {
    if (std::strlen(error.what()) == 0) throw std::logic_error("a UserError without a word");
    return End::refused;
  }
}

}  // namespace tenon
