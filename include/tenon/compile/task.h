#pragma once
#include <tenon/schedule/knobs.h>
#include <tenon/te/te.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// What is compiled and tuned: an operator or a fused group on one machine.
struct Task {
  std::string name;
  Program program;                       ///< unscheduled; its hash is what records are kept by
  std::vector<NamedTemplate> templates;  ///< the first is the default; none: the generic one
  Target target;
  std::string args = "{}";  ///< JSON object: the operator's arguments, for records
  double flops = 0;         ///< floating-point operations of one call; 0: not known
  /// Values that integer inputs may have, both inclusive, where they are used as indices. Others
  /// are measured with small numbers.
  std::map<std::string, std::pair<int64_t, int64_t>> input_ranges;
  /// Values of the program's symbols, by name, that schedules are measured with. The winner's
  /// kernel serves all others as well.
  std::map<std::string, int64_t> sample_sizes;

  Task(std::string name, Program program, std::vector<NamedTemplate> templates, Target target)
      : name(std::move(name)),
        program(std::move(program)),
        templates(std::move(templates)),
        target(std::move(target)) {}
  Task(const std::string& name, const std::vector<Tensor>& outputs,
       std::vector<NamedTemplate> templates, Target target)
      : Task(name, make_program(name, outputs), std::move(templates), std::move(target)) {}
  /// One template of the user's own; none: the generic one.
  Task(const std::string& name, const Tensor& output, Template fn, Target target)
      : Task(
            name, std::vector<Tensor>{output},
            fn ? std::vector<NamedTemplate>{{"user", std::move(fn)}} : std::vector<NamedTemplate>{},
            std::move(target)) {}
  /// The generic template.
  Task(const std::string& name, const Tensor& output, Target target)
      : Task(name, std::vector<Tensor>{output}, std::vector<NamedTemplate>{}, std::move(target)) {}
};

}  // namespace tenon
