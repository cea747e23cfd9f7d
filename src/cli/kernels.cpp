#include <tenon/driver/driver.h>
#include <tenon/support/text.h>

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

// Which templates fit an operator depends on its arguments.
nlohmann::ordered_json template_line(const Task& task, const NamedTemplate& t) {
  const KnobSpace space = survey(t.fn, task.program, task.target);
  nlohmann::ordered_json knobs = nlohmann::ordered_json::array();
  for (const Domain& domain : space.domains) knobs.push_back(domain.name);
  return {{"template", t.name}, {"knobs", knobs}, {"points", space.size()}};
}

void print_templates(const CommandOptions& options) {
  const Task task = operator_task(options.subject, options.parsed_target());
  if (!options.json) fmt::print("{} {}\n", task.name, task.args);
  for (const NamedTemplate& t : task.templates) {
    const nlohmann::ordered_json line = template_line(task, t);
    if (options.json) {
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print("  template {:10} {} points: {}\n", t.name, line["points"].get<int64_t>(),
                 join(line["knobs"].get<std::vector<std::string>>()));
    }
  }
}

}  // namespace

void add_kernels(CLI::App& app) {
  auto options = std::make_shared<CommandOptions>();
  CLI::App* verb = app.add_subcommand("kernels", "operators, their arguments and templates");
  verb->add_option("kernel", options->subject,
                   "only this one; with its arguments: the templates that fit them");
  add_common(*verb, *options);
  verb->callback([options] {
    if (options->subject.size() > 1) return print_templates(*options);
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
          "of time)\ntemplates: tenon kernels matmul m=64 n=64 k=64\n");
    }
  });
}

}  // namespace tenon
