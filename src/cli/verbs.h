#pragma once
#include <vector>

namespace CLI {
class App;
}

namespace tenon {

/// One verb of the command: adds its subcommand with options to `app`; the subcommand's callback
/// does the work and throws what goes wrong (main.cpp turns that into messages and exit codes).
/// Each stands in a file of its own.
struct Verb {
  const char* name;
  void (*add)(CLI::App& app);
};

void add_targets(CLI::App& app);
void add_kernels(CLI::App& app);
void add_tune(CLI::App& app);
void add_run(CLI::App& app);
void add_bench(CLI::App& app);
void add_show(CLI::App& app);
void add_replay(CLI::App& app);
void add_log(CLI::App& app);

/// `tenon log train`, in a file of its own.
void add_log_train(CLI::App& log);

/// The table of verbs, in the order of --help.
const std::vector<Verb>& verbs();

/// Thrown by a verb whose work was done but whose result is a failure (exit code 1); the message is
/// already printed.
struct CheckFailed {};
/// Thrown when Ctrl-C ended the work (exit code 130).
struct Interrupted {};

}  // namespace tenon
