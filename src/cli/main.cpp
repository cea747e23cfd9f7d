#include <tenon/autotvm/tune.h>
#include <tenon/driver/version.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>

#include "cli/verbs.h"

namespace tenon {
namespace {

// DESIGN section 8: 0 done, 1 a check failed or no candidate worked, 2 the user's input, 3 device
// absent, 70 internal, 130 Ctrl-C.
enum ExitCode {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kNoDevice = 3,
  kInternal = 70,
  kInterrupted = 130
};

int complain(const std::string& message, int code) {
  fmt::print(stderr, "tenon: {}\n", message);
  return code;
}

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  return names;
}

/// A word that must be one of `known`. CLI11 says only "subcommand required" or "not expected".
void check_word(const std::string& what, const std::string& word,
                const std::vector<std::string>& known, const std::string& command) {
  for (const std::string& name : known) {
    if (name == word) return;
  }
  const std::vector<std::string> near = nearest_names(word, known);
  throw UserError(fmt::format("there is no {} \"{}\"\n  {}s: {}\n  try: {}{} --help", what, word,
                              what, join(known), command, near.empty() ? "" : " " + near[0]));
}

void check_verb(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  check_word("verb", argv[1], verb_names(), "tenon");
  if (argc < 3 || argv[2][0] == '-' || std::string_view(argv[1]) != "log") return;
  check_word("action", argv[2], {"merge", "best", "check", "stats", "train"}, "tenon log");
}

int run(int argc, char** argv) {
  CLI::App app{
      "Tenon fits tensor kernels to machines: import or write an operator, tune it, run it."};
  app.name("tenon");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  for (const Verb& verb : verbs()) verb.add(app);
  try {
    check_verb(argc, argv);
    app.parse(argc, argv);
    return kDone;
  } catch (const CLI::ParseError& e) {
    const int code = app.exit(e);
    return code == 0 ? kDone : kUsage;
  } catch (const CheckFailed&) {
    return kFailed;
  } catch (const Interrupted&) {
    return complain("stopped by Ctrl-C; every finished trial is in the log", kInterrupted);
  } catch (const TuneError& e) {
    return complain(e.what(), kFailed);
  } catch (const UserError& e) {
    return complain(e.what(), kUsage);
  } catch (const DeviceError& e) {
    return complain(e.what(), kNoDevice);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kInternal);
  } catch (const std::exception& e) {
    return complain(e.what(), kInternal);
  }
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs = {
      {"targets", add_targets}, {"kernels", add_kernels}, {"tune", add_tune},     {"run", add_run},
      {"bench", add_bench},     {"show", add_show},       {"replay", add_replay}, {"log", add_log}};
  return kVerbs;
}

}  // namespace tenon

int main(int argc, char** argv) { return tenon::run(argc, argv); }
