#include <tenon/driver/driver.h>
#include <tenon/driver/failure.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/options.h"
#include "cli/steps_text.h"
#include "cli/verbs.h"

namespace tenon {
namespace {

struct ShowCommand : CommandOptions {
  std::string model;
  bool steps = false, loops = false, cpp = false, ir = false, source = false, assembly = false,
       dot = false;
};

void heading(const std::string& text) { fmt::print("== {}\n", text); }

// The parts asked for; when none is: steps, one a line, and loops.
void show_schedule(const ShowCommand& command, const Task& task, const Trace& trace) {
  const bool any = command.steps || command.loops || command.cpp || command.ir || command.source ||
                   command.assembly;
  if (command.steps) {
    heading("steps");
    fmt::print("{}", steps_text(replay(task.program, task.target, trace)));
  } else if (!any) {
    heading("steps");
    for (const Primitive& step : trace) fmt::print("{}\n", to_text(step));
  }
  if (command.cpp) {
    heading("C++");
    fmt::print("{}", to_cpp(trace));
  }
  if (command.loops || !any) {
    heading("loops");
    fmt::print("{}", replay(task.program, task.target, trace).print());
  }
  if (!command.ir && !command.source && !command.assembly) return;
  const Kernel kernel = compile_or_keep(task, trace, command.parsed_threads());
  if (command.ir) heading("IR"), fmt::print("{}", kernel.ir());
  if (command.source) heading("source"), fmt::print("{}", kernel.source());
  if (command.assembly) heading("assembly"), fmt::print("{}", kernel.assembly());
}

void show_record(const ShowCommand& command) {
  const LogRef where = LogRef::parse(command.subject[0]);
  const Record record = read_record(where);
  const Task task = task_of_record(record, command.model, network_options(command));
  if (command.json) {
    fmt::print("{}\n", to_json_line(record));
    return;
  }
  fmt::print("{} {}: {} {} trial {}, {}, check {}\n", record.task, record.args,
             record.template_name, record.knobs, record.trial, name(record.status),
             name(record.check));
  if (!record.samples_us.empty()) {
    fmt::print("measured {:.2f} us (median of {}) on {} with {} thread(s), {}\n", median_us(record),
               record.samples_us.size(), record.target.cpu, record.threads, record.time);
  }
  if (!record.reason.empty()) fmt::print("reason: {}\n", record.reason);
  show_schedule(command, task, trace_from_json(record.trace));
}

void show_network(const ShowCommand& command) {
  const NetworkOptions options = network_options(command);
  Network network = Network::load(command.subject[0], options);
  if (command.dot) {
    fmt::print("{}", network.dot());
    return;
  }
  network.select(open_store(command), check_adapted(command.parsed_threads()));
  for (const GroupKernel& kernel : network.kernels()) {
    fmt::print("{}: {} x, {}, {:.3f} MFLOP, nodes {}\n", kernel.name, kernel.uses, kernel.schedule,
               kernel.task.flops * 1e-6, join(kernel.nodes));
    if (command.steps || command.loops || command.cpp || command.ir || command.source ||
        command.assembly) {
      show_schedule(command, kernel.task, kernel.trace);
    }
  }
}

void run_show(const ShowCommand& command) {
  if (is_model(command.subject)) return show_network(command);
  const std::string& first = command.subject[0];
  if (command.subject.size() == 1 &&
      (first.find(':') != std::string::npos || first.ends_with(".jsonl")))
    return show_record(command);
  refuse_network_options(command);
  const Task task = operator_task(command.subject, command.parsed_target());
  const NamedTrace chosen = schedules_for(task, command).back();
  fmt::print("{} {}: {}\n", task.name, task.args, chosen.schedule);
  show_schedule(command, task, chosen.trace);
}

}  // namespace

void add_show(CLI::App& app) {
  auto command = std::make_shared<ShowCommand>();
  CLI::App* verb = app.add_subcommand(
      "show", "steps, loop tree, C++, IR, source, assembly; a network's graph as dot");
  verb->add_option("subject", command->subject,
                   "LOG:LINE, model.onnx, or an operator and its arguments")
      ->required();
  verb->add_option("--model", command->model, "the network that LOG:LINE was tuned for");
  add_network(*verb, *command);
  verb->add_option("--log", command->log, "file of records to look in first");
  verb->add_flag("--steps", command->steps,
                 "the schedule's steps and what each changed in the loop tree");
  verb->add_flag("--loops", command->loops, "the loop tree");
  verb->add_flag("--cpp", command->cpp, "the C++ that rebuilds the schedule");
  verb->add_flag("--ir", command->ir, "flat code");
  verb->add_flag("--source", command->source, "LLVM IR");
  verb->add_flag("--asm", command->assembly, "assembly");
  verb->add_flag("--dot", command->dot, "a network's graph in the dot language");
  add_common(*verb, *command);
  verb->callback([command] { run_show(*command); });
}

}  // namespace tenon
