#include <fmt/format.h>
#include <sys/wait.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>

#include "minimise.h"
#include "random_gpu_step.h"

// fuzz_schedules [--seed N] [--first N] [--programs N] [--minutes M] [--no-machine]
//
// The long mode of tests/equivalence: random formulas under random schedules until told to stop
// (Ctrl-C, --minutes, --programs). Each as a loop tree and flat code in the interpreter's race
// mode, and as machine code in a child process on data between forbidden pages; one in a hundred
// under GPU primitives on the OpenCL device, where there is one. What is found is made small and
// printed as a test. A program that runs on for kGrace seconds after Ctrl-C (or at a second one) is
// left, and named. Exit code: 0 nothing found, 1 something, 2 wrong options, 3 left inside a
// program.

using namespace tenon;
using Clock = std::chrono::steady_clock;

namespace {

constexpr unsigned kGrace = 2;

std::atomic<bool> g_stop{false};
/// What is going on, for the end by a signal.
std::atomic<uint64_t> g_seed{0};
std::atomic<int64_t> g_program{0};
std::atomic<const char*> g_doing{"starting"};

/// Only what a signal handler may do: no allocation, no locks.
[[noreturn]] void leave() {
  char text[320];
  const auto end = fmt::format_to_n(
      text, sizeof text,
      "\nstopped while {}: program {} of seed {}\nagain: fuzz_schedules --seed {} --first {} "
      "--programs {}\n",
      g_doing.load(), g_program.load(), g_seed.load(), g_seed.load(), g_program.load(),
      g_program.load() + 1);
  const ssize_t sent = write(STDERR_FILENO, text, std::min(end.size, sizeof text));
  _exit(sent > 0 ? 3 : 4);
}

void on_signal(int) {
  if (g_stop.exchange(true)) leave();
  alarm(kGrace);
}
void on_alarm(int) { leave(); }

void catch_signals() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGALRM, on_alarm);
}

/// A child ends at each of them.
void drop_signals() {
  for (const int s : {SIGINT, SIGTERM, SIGALRM}) std::signal(s, SIG_DFL);
}

struct Options {
  uint64_t seed = 1;
  int64_t first = 0, programs = INT64_MAX;
  double minutes = 1e9;
  bool machine = true;
};

std::optional<Options> parse(int argc, char** argv) {
  Options o;
  for (int n = 1; n < argc; ++n) {
    const std::string word = argv[n];
    if (word == "--no-machine") {
      o.machine = false;
      continue;
    }
    const std::optional<int64_t> value = n + 1 < argc ? parse_int(argv[++n]) : std::nullopt;
    if (!value || *value < 0) return std::nullopt;
    if (word == "--seed")
      o.seed = static_cast<uint64_t>(*value);
    else if (word == "--first")
      o.first = *value;
    else if (word == "--programs")
      o.programs = *value;
    else if (word == "--minutes")
      o.minutes = static_cast<double>(*value);
    else
      return std::nullopt;
  }
  return o;
}

/// f() in a child process: its text, or how the child ended.
template <class F>
std::string in_child(F&& f) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe for a child process";
  const pid_t child = fork();
  if (child == 0) {
    drop_signals();
    alarm(60);
    const std::string text = f();
    const bool sent = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    return fmt::format("machine code: the process ended by signal {}{}", WTERMSIG(status),
                       WTERMSIG(status) == SIGALRM ? " (after 60 s)" : "");
  return text;
}

std::string judge(const Oracle& oracle, const Schedule& s, const Options& options) {
  g_doing = "interpreting the loop tree";
  std::string fault = oracle.tree_fault(s.program());
  g_doing = "lowering or interpreting the flat code";
  if (fault.empty()) fault = oracle.flat_fault(s.program(), s.target());
  if (!fault.empty() || !options.machine) return fault;
  g_doing = "running machine code";
  return in_child([&] { return oracle.machine_fault(s.program(), Target::host()); });
}

/// The formula under a random schedule with GPU primitives on the OpenCL device. The driver lives
/// in the child alone: it does not survive a fork.
std::string opencl_fault(const DrawnProgram& d) {
  return in_child([&]() -> std::string {
    try {
      const Target device = Target::opencl();
      Schedule s(d.formula.program, device);
      Rng rng(d.data_seed);
      for (int64_t left = rng.between(8, 24); left > 0; --left)
        s.try_apply(random_gpu_step(s, rng));
      const std::string fault = Oracle(d.formula, d.data_seed).machine_fault(s.program(), device);
      return fault.empty() ? "" : fmt::format("on OpenCL: {}\n{}", fault, to_cpp(s.trace()));
    } catch (const Error& e) {
      return fmt::format("on OpenCL: {}", e.what());
    }
  });
}

bool has_opencl() {
  return in_child([]() -> std::string {
           try {
             Target::opencl();
             return "";
           } catch (const DeviceError& e) {
             std::cerr << "without OpenCL: " << e.what() << "\n";
             return "none";
           }
         }) == "";
}

void report(const DrawnProgram& d, int64_t number, const std::string& fault, const Options& o) {
  std::cout << fmt::format("\nprogram {} of seed {} is wrong: {}\nmaking it smaller ...\n", number,
                           o.seed, fault.substr(0, fault.find('\n')))
            << std::flush;
  const Judge again = [&](const Oracle& oracle, const Schedule& s) { return judge(oracle, s, o); };
  FuzzCase c{d.choices, d.data_seed, d.schedule.trace(), d.schedule.target()};
  c = minimise(std::move(c), again, 3000, g_stop);  // best so far, when told to stop
  std::cout << cpp_case(c, fault) << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Options> options = parse(argc, argv);
  if (!options) {
    std::cerr << "usage: fuzz_schedules [--seed N] [--first N] [--programs N] [--minutes M] "
                 "[--no-machine]\n";
    return 2;
  }
  g_seed = options->seed;
  catch_signals();
  Tally tally;
  int64_t found = 0;
  const bool opencl = options->machine && has_opencl();
  const auto start = Clock::now();
  auto shown = start;
  auto minutes = [&] { return std::chrono::duration<double>(Clock::now() - start).count() / 60; };
  for (int64_t n = options->first; n < options->programs && !g_stop; ++n) {
    if (minutes() >= options->minutes) break;
    g_program = n;
    g_doing = "drawing a schedule";
    const DrawnProgram d = draw_program(options->seed, n, narrow_target(), &tally);
    std::string fault;
    g_doing = "interpreting the formula";
    try {
      fault = judge(Oracle(d.formula, d.data_seed), d.schedule, *options);
    } catch (const std::exception& e) {
      fault = fmt::format("the unscheduled formula cannot be run: {}", e.what());
    }
    if (fault.empty() && opencl && n % 100 == 99) {
      g_doing = "running on OpenCL";
      if (fault = opencl_fault(d); !fault.empty() && !g_stop) {
        ++found;
        std::cout << fmt::format("\nprogram {} of seed {} is wrong {}\n", n, options->seed, fault);
        continue;
      }
    }
    if (!fault.empty() && !g_stop) {
      ++found;
      report(d, n, fault, *options);
    }
    if (Clock::now() - shown < std::chrono::seconds(2)) continue;
    shown = Clock::now();
    std::cerr << fmt::format("{:.1f} min: {} programs, {} steps accepted, {} found\n", minutes(),
                             tally.programs, tally.all_accepted(), found);
  }
  alarm(0);
  std::cout << fmt::format("seed {}, {:.1f} min: {}{} found\n", options->seed, minutes(),
                           tally.text(), found);
  return found > 0 ? 1 : 0;
}
