#include "backends.h"

#include <tenon/compile/compile.h>
#include <tenon/support/error.h>

#include <iostream>
#include <optional>

#include "interp/interp.h"
#include "lower/lower.h"

namespace tenon::cases {
namespace {

Run interpreted(const Program& program) {
  return [program](const std::vector<Array>& arguments, const Dims& dims) {
    std::vector<HostBuffer> buffers;
    for (const Array& a : arguments) buffers.push_back({a.raw()});
    InterpOptions options;
    options.dims = dims;
    interpret(program, buffers, options);
  };
}

Program verified_flat(const Program& program, const Target& target) {
  Program flat = lower(program, target);
  verify(flat, Form::Flat);
  return flat;
}

Backend machine(const std::string& name, const Target& target, bool is_host) {
  return {name, target,
          [target](const Program& program) -> Run {
            const Kernel kernel = compile(program, target);
            return [kernel](const std::vector<Array>& arguments, const Dims&) {
              static ThreadPool pool(2);
              kernel.run(arguments, pool);
            };
          },
          true, is_host};
}

std::vector<Backend> make_interpreters(const Target& target, bool is_host) {
  return {
      {"interp", target, interpreted, false, is_host},
      {"flat", target, [target](const Program& p) { return interpreted(verified_flat(p, target)); },
       false, is_host}};
}

std::vector<Backend> make_backends() {
  const Target& host = host_target();
  std::vector<Backend> all = make_interpreters(host, true);
  for (const std::string& name : Target::known_names()) {
    const Target target = Target::parse(name);
    if (!target.runs_on(host) || name == "host") continue;
    all.push_back(machine(name.substr(name.find('/') + 1), target, target.name == host.name));
  }
  return all;
}

std::optional<Backend> make_opencl() {
  try {
    return machine("opencl", Target::opencl(), false);
  } catch (const DeviceError& e) {
    std::cout << "not on OpenCL: " << e.what() << "\n";
    return std::nullopt;
  }
}

}  // namespace

const std::vector<Backend>& lockstep_backends() {
  static const std::vector<Backend> all = make_interpreters(Target::generic_gpu(), false);
  return all;
}

const Backend* opencl_backend() {
  static const std::optional<Backend> device = make_opencl();
  return device ? &*device : nullptr;
}

const Target& host_target() {
  static const Target host = Target::host();
  return host;
}

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = make_backends();
  return all;
}

}  // namespace tenon::cases
