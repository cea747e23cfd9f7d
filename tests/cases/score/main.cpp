#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

// score_cases [ID...]: runs the cases of test_cases, each in a child process with a time limit, and
// prints per id and target what became of them. With --kept it scores the reports of the latest
// runs instead of running. Exit 1 where anything was wrong, crashed, hung, refused without leave,
// or is missing.

namespace fs = std::filesystem;

namespace {

constexpr int kFirst = 1, kLast = 49;
constexpr double kLimitS = 100;
constexpr int kMostShown = 8;  // messages of one id

struct Line {
  std::string what, target, label, message;
};

struct Score {
  std::string id;
  std::vector<Line> lines;
  double seconds = 0;
};

std::string id_of(int number) { return fmt::format("D{:02}", number); }
fs::path reports() { return fs::path(TENON_BINARY_DIR) / "cases"; }
fs::path report_of(const std::string& id) { return reports() / (id + ".tsv"); }

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Starts test_cases on one id, its output in a file of its own.
pid_t start(const std::string& program, const std::string& id) {
  const pid_t child = fork();
  if (child != 0) return child;
  setpgid(0, 0);
  const int out = open((reports() / (id + ".txt")).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  dup2(out, 1);
  dup2(out, 2);
  setenv("TENON_CASES_REPORT", report_of(id).c_str(), 1);
  const std::string cases = id + "*";
  execl(program.c_str(), program.c_str(), cases.c_str(), nullptr);
  _exit(127);
}

/// How the child ended: "" well, "failed", "crashed ...", "hung".
std::string wait_for(pid_t child) {
  const double end = now_s() + kLimitS;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (now_s() > end) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      return "hung";
    }
    usleep(5000);
  }
  if (WIFSIGNALED(status)) return fmt::format("crashed {}", strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) == 127) return "crashed test_cases did not start";
  return WEXITSTATUS(status) == 0 ? "" : "failed";
}

std::vector<Line> read_report(const std::string& id) {
  std::vector<Line> lines;
  std::ifstream file(report_of(id));
  std::string text;
  while (std::getline(file, text)) {
    Line line;
    std::istringstream fields(text);
    std::getline(fields, line.what, '\t');
    std::getline(fields, line.target, '\t');
    std::getline(fields, line.label, '\t');
    std::getline(fields, line.message);
    lines.push_back(line);
  }
  return lines;
}

/// Runs one id; how the child ended becomes the last line of its report.
void run(const std::string& program, const std::string& id) {
  fs::create_directories(reports());
  fs::remove(report_of(id));
  const double from = now_s();
  const std::string end = wait_for(start(program, id));
  const std::vector<Line> lines = read_report(id);
  std::string what = end.empty() ? "ended" : end.substr(0, end.find(' '));
  Line last;
  if (!lines.empty()) last = lines.back();
  if (what == "failed" && lines.empty()) what = "missing";
  // Catch reports a signal itself and then dies of it; what ran last was under way.
  std::ofstream(report_of(id), std::ios::app)
      << what << '\t' << (last.what == "starts" ? last.target : "test") << '\t'
      << (last.what == "starts" ? last.label : "") << '\t' << end << ' '
      << (last.what == "starts" ? last.message : "") << '\n'
      << "seconds\t" << now_s() - from << "\t\t\n";
}

bool is_bad(const std::string& what) {
  return what == "wrong" || what == "crashed" || what == "hung" || what == "refused_wrongly" ||
         what == "failed" || what == "missing";
}

Score score_of(const std::string& id) {
  Score score{id, {}, 0};
  bool ended = false;
  for (const Line& line : read_report(id)) {
    if (line.what == "seconds") score.seconds = std::stod(line.target);
    ended = ended || line.what == "ended" || is_bad(line.what);
    if (line.what != "starts" && line.what != "seconds" && line.what != "ended")
      score.lines.push_back(line);
  }
  if (!ended || score.lines.empty()) score.lines.push_back({"missing", "test", "", "no such case"});
  return score;
}

std::string cell(const Score& score, const std::string& target) {
  std::map<std::string, int> counts;
  for (const Line& line : score.lines)
    if (line.target == target) ++counts[line.what];
  std::string text;
  for (const auto& [what, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  return text;
}

/// Prints one id; true when nothing is bad.
bool print(const Score& score, std::map<std::string, int>& totals) {
  std::vector<std::string> targets;
  for (const Line& line : score.lines)
    if (std::find(targets.begin(), targets.end(), line.target) == targets.end())
      targets.push_back(line.target);
  for (const std::string& target : targets)
    std::cout << fmt::format("{:<5}{:<10}{}\n", score.id, target, cell(score, target));
  std::set<std::string> seen;
  int shown_bad = 0;
  bool good = true;
  for (const Line& line : score.lines) {
    ++totals[line.what];
    good = good && !is_bad(line.what);
    if (line.what == "passed") continue;
    const bool bad = is_bad(line.what);
    const std::string text =
        fmt::format("{}: {}", line.what, line.message.substr(0, bad ? 600 : 160));
    if (!seen.insert(text).second) continue;
    if (bad ? shown_bad++ < kMostShown : seen.size() <= kMostShown)
      std::cout << fmt::format("       {} {}: {}\n", line.target, line.label, text);
  }
  return good;
}

int usage() {
  std::cerr << "usage: score_cases [--kept] [ID...]\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> ids;
  bool kept = false;
  for (int n = 1; n < argc; ++n) {
    const std::string word = argv[n];
    if (word == "--kept")
      kept = true;
    else if (word.size() == 3 && word[0] == 'D')
      ids.push_back(word);
    else
      return usage();
  }
  if (ids.empty())
    for (int n = kFirst; n <= kLast; ++n) ids.push_back(id_of(n));
  const std::string program = (fs::canonical(argv[0]).parent_path() / "test_cases").string();

  std::map<std::string, int> totals;
  bool good = true;
  double seconds = 0;
  for (const std::string& id : ids) {
    if (!kept) run(program, id);
    const Score score = score_of(id);
    seconds += score.seconds;
    good = print(score, totals) && good;
  }
  int all = 0;
  for (const auto& [what, count] : totals) all += count;
  for (const char* what :
       {"passed", "refused", "refused_wrongly", "wrong", "crashed", "hung", "failed", "missing"})
    std::cout << fmt::format("{} {}, ", totals[what], what);
  std::cout << fmt::format(
      "share of refusals {:.1f}% of {} runs, {} ids, {:.0f} s\n",
      100.0 * (totals["refused"] + totals["refused_wrongly"]) / std::max(all, 1), all, ids.size(),
      seconds);
  return good ? 0 : 1;
}
