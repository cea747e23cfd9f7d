#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/verbs.h"
#include "kernels/table.h"

namespace tenon {
namespace {

void print_entry(const KernelEntry& entry) {
  fmt::print("{:16} {}\n", entry.name, entry.summary);
  for (const KernelArg& arg : entry.args) {
    const std::string standard = arg.standard.empty() ? "must be given" : "default " + arg.standard;
    fmt::print("    {:12} {} ({})\n", arg.name + "=", arg.help, standard);
  }
}

std::string json_line(const KernelEntry& entry) {
  nlohmann::ordered_json args = nlohmann::ordered_json::array();
  for (const KernelArg& arg : entry.args) {
    args.push_back({{"name", arg.name}, {"default", arg.standard}, {"help", arg.help}});
  }
  const nlohmann::ordered_json line = {
      {"kernel", entry.name}, {"summary", entry.summary}, {"args", args}, {"inputs", entry.inputs}};
  return line.dump();
}

}  // namespace

void add_kernels(CLI::App& app) {
  auto options = std::make_shared<CommandOptions>();
  CLI::App* verb = app.add_subcommand("kernels", "operators, their arguments and templates");
  verb->add_option("kernel", options->subject, "only this one");
  add_common(*verb, *options);
  verb->callback([options] {
    std::vector<KernelEntry> shown = kernel_table();
    if (!options->subject.empty()) shown = {find_kernel(options->subject[0])};
    for (const KernelEntry& entry : shown) {
      if (options->json) {
        fmt::print("{}\n", json_line(entry));
      } else {
        print_entry(entry);
      }
    }
    if (!options->json && options->subject.empty()) {
      fmt::print(
          "every operator also takes type= (f32, f64, i32, ...) and constant= (inputs known ahead "
          "of time)\n");
    }
  });
}

}  // namespace tenon
