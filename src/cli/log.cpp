#include <CLI/CLI.hpp>

#include "cli/verbs.h"

namespace tenon {

void add_log(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("log", "logs of trials: train");
  verb->require_subcommand(1);
  add_log_train(*verb);
}

}  // namespace tenon
