#pragma once
#include <tenon/target/target.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tenon {
struct NamedTrace;
struct NetworkOptions;
struct Task;
class RecordStore;
}  // namespace tenon

namespace CLI {
class App;
}

namespace tenon {

/// What every verb understands. `subject` is an operator's name and its arguments ("matmul",
/// "m=64"), a model file, or LOG:LINE, as the verb says.
struct CommandOptions {
  std::vector<std::string> subject;
  std::string target = "host";
  int threads = 0;  // 0: all cores this process may use
  bool json = false;
  bool quiet = false;
  std::string log;
  std::vector<std::string> shapes;  // "x=1x3x48x192"
  bool no_fuse = false;             // networks: one kernel per node
  std::vector<std::string> skip_passes;
  bool allow_winograd = false;  // networks: use_winograd

  /// The target, with as many cores as threads were asked for.
  Target parsed_target() const;
  int parsed_threads() const;
  /// UserError for text that is not NAME=AxBxC.
  std::map<std::string, std::vector<int64_t>> parsed_shapes() const;
};

/// Adds --target, --threads, --json and --quiet.
void add_common(CLI::App& verb, CommandOptions& options);

/// Is the subject a model file: a word that ends in .onnx, or alone names an existing file that is
/// no log.
bool is_model(const std::vector<std::string>& subject);

/// On stderr, one line each.
void print_warnings(const std::vector<std::string>& warnings);

/// The records a verb may choose from, --log first; warns of what it cannot read.
RecordStore open_store(const CommandOptions& options);

/// The default schedule of an operator and, where there is one, the best recorded; warns where the
/// logs hold records that do not fit.
std::vector<NamedTrace> schedules_for(const Task& task, const CommandOptions& options);

NetworkOptions network_options(const CommandOptions& options);

/// Adds --shape, --no-fuse, --skip-pass and --allow-winograd.
void add_network(CLI::App& verb, CommandOptions& options);

/// UserError where an option of add_network() was given with what is no network.
void refuse_network_options(const CommandOptions& options);

/// "60s", "5m", "1h" or plain seconds, as seconds; UserError for anything else.
double parse_seconds(const std::string& text);

/// "NAME=rest" at the first '='; UserError that says what `what` should look like.
std::pair<std::string, std::string> split_assignment(const std::string& text,
                                                     const std::string& what);

}  // namespace tenon
