#include "cli/options.h"

#include <tenon/driver/bench.h>
#include <tenon/graph/network.h>
#include <tenon/records/lookup.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>

namespace tenon {

int CommandOptions::parsed_threads() const {
  if (threads < 0)
    throw UserError(fmt::format("--threads {}: it must be at least 1 (0: all cores)", threads));
  return threads == 0 ? allowed_cores() : threads;
}

std::map<std::string, std::vector<int64_t>> CommandOptions::parsed_shapes() const {
  std::map<std::string, std::vector<int64_t>> out;
  for (const std::string& text : shapes) {
    auto [input_name, rest] = split_assignment(text, "--shape x=1x3x48x192");
    std::vector<int64_t> dims;
    for (const std::string& part :
         rest == "scalar" ? std::vector<std::string>{} : split_text(rest, 'x')) {
      auto extent = parse_int(part);
      if (!extent || *extent < 0) {
        throw UserError(
            fmt::format("--shape {}: \"{}\" is not an extent\n  try: --shape {}=1x3x48x192", text,
                        part, input_name));
      }
      dims.push_back(*extent);
    }
    out[input_name] = dims;
  }
  return out;
}

Target CommandOptions::parsed_target() const {
  Target parsed = Target::parse(target);
  parsed.cores = parsed_threads();  // templates balance parallel loops over as many
  return parsed;
}

void add_common(CLI::App& verb, CommandOptions& options) {
  verb.add_option("--target", options.target,
                  "host, or a level of it: " + join(Target::known_names()) +
                      "; \"host,-amx\" leaves out features; opencl (opencl:1 the second device)")
      ->capture_default_str();
  verb.add_option("--threads", options.threads,
                  "threads to run on (0: all cores this process may use)")
      ->capture_default_str();
  verb.add_flag("--json", options.json, "one JSON object a line instead of tables");
  verb.add_flag("--quiet", options.quiet, "no progress");
}

void add_network(CLI::App& verb, CommandOptions& options) {
  verb.add_option("--shape", options.shapes, "a network: an input's shape: x=1x3x48x192")
      ->allow_extra_args(false);
  verb.add_flag("--no-fuse", options.no_fuse, "a network: one kernel per node");
  verb.add_option("--skip-pass", options.skip_passes, "a network: leave out a pass, by name")
      ->allow_extra_args(false);
  verb.add_flag("--allow-winograd", options.allow_winograd,
                "a network: 3x3 convolutions by Winograd's algorithm, other roundings");
}

void refuse_network_options(const CommandOptions& options) {
  const char* given = !options.shapes.empty()        ? "--shape"
                      : options.no_fuse              ? "--no-fuse"
                      : !options.skip_passes.empty() ? "--skip-pass"
                      : options.allow_winograd       ? "--allow-winograd"
                                                     : nullptr;
  if (!given) return;
  throw UserError(fmt::format(
      "{} is for networks; \"{}\" is no .onnx file\n  try: an operator's sizes as arguments "
      "(tenon kernels)",
      given, options.subject[0]));
}

bool is_model(const std::vector<std::string>& subject) {
  if (subject.empty()) return false;
  if (subject[0].ends_with(".onnx")) return true;
  return subject.size() == 1 && !subject[0].ends_with(".jsonl") &&
         std::filesystem::is_regular_file(subject[0]);
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "tenon: warning: {}\n", warning);
}

RecordStore open_store(const CommandOptions& options) {
  RecordPlaces places;
  places.log = options.log;
  RecordStore store(places);
  print_warnings(store.warnings());
  return store;
}

std::vector<NamedTrace> schedules_for(const Task& task, const CommandOptions& options) {
  const RecordStore store = open_store(options);
  const int threads = options.parsed_threads();
  warn_of_passed_over(store, {&task}, threads);
  return default_and_best(task, store, threads);
}

NetworkOptions network_options(const CommandOptions& options) {
  NetworkOptions out;
  out.bindings.shapes = options.parsed_shapes();
  out.target = options.parsed_target();
  out.threads = options.parsed_threads();
  out.fuse = !options.no_fuse;
  out.skip_passes = options.skip_passes;
  out.allow_winograd = options.allow_winograd;
  return out;
}

double parse_seconds(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string unit(rest, end);
  double scale = 0;
  if (unit.empty() || unit == "s") scale = 1;
  if (unit == "m" || unit == "min") scale = 60;
  if (unit == "h") scale = 3600;
  if (error != std::errc() || scale == 0 || !(value > 0)) {
    throw UserError(fmt::format("--time {}: not a duration\n  try: --time 60s, 5m or 1h", text));
  }
  return value * scale;
}

std::pair<std::string, std::string> split_assignment(const std::string& text,
                                                     const std::string& what) {
  size_t at = text.find('=');
  if (at == std::string::npos || at == 0) {
    throw UserError(fmt::format("\"{}\" is not NAME=VALUE\n  try: {}", text, what));
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace tenon
