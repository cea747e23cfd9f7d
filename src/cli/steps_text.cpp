#include "cli/steps_text.h"

#include <tenon/support/text.h>

#include <algorithm>
#include <vector>

namespace tenon {
namespace {

constexpr size_t kMark = 2;  // "+ ", "- " or "  " in front of a line of the loop tree

bool is_change(const std::string& line) { return line[0] != ' '; }

size_t depth(const std::string& line) { return line.find_first_not_of(' ', kMark); }

// Changed lines, their neighbours, and of the lines before these the ones that they stand inside
// of.
std::vector<bool> telling_lines(const std::vector<std::string>& lines) {
  std::vector<bool> telling(lines.size(), false);
  for (size_t n = 0; n < lines.size(); ++n) {
    if (!is_change(lines[n])) continue;
    size_t inside = depth(lines[n]);
    telling[n] = true;
    if (n > 0) telling[n - 1] = true;
    if (n + 1 < lines.size()) telling[n + 1] = true;
    for (size_t k = n; k-- > 0;) {
      if (depth(lines[k]) >= inside) continue;
      telling[k] = true;
      inside = depth(lines[k]);
    }
  }
  return telling;
}

std::string telling_part(const std::vector<std::string>& lines) {
  const std::vector<bool> telling = telling_lines(lines);
  std::string out;
  for (size_t n = 0; n < lines.size(); ++n) {
    if (telling[n]) {
      out += lines[n] + "\n";
    } else if (n == 0 || telling[n - 1]) {
      out += std::string(depth(lines[n]), ' ') + "...\n";
    }
  }
  return out;
}

}  // namespace

std::string steps_text(const Schedule& schedule) {
  std::string out;
  for (size_t n = 0; n < schedule.trace().size(); ++n) {
    std::vector<std::string> lines = split_text(schedule.diff(n, n + 1), '\n');
    out += lines.front() + "\n";  // "step 3: ..."
    lines.erase(lines.begin());
    std::erase_if(lines, [](const std::string& line) { return line.empty(); });
    const bool changed = std::any_of(lines.begin(), lines.end(), is_change);
    out += changed ? telling_part(lines) : "  changes nothing\n";
  }
  return out;
}

}  // namespace tenon
