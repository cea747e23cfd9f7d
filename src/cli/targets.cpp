#include <tenon/support/error.h>
#include <tenon/support/text.h>
#include <tenon/target/peaks.h>
#include <tenon/target/target.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/verbs.h"
#include "target/opencl_api.h"

namespace tenon {
namespace {

/// The OpenCL devices, or why there are none.
void print_devices() {
  try {
    const std::vector<OpenclDevice> devices = probe_opencl();
    for (size_t n = 0; n < devices.size(); ++n)
      fmt::print("{:18} {} ({}, {})\n", n == 0 ? "opencl" : fmt::format("opencl:{}", n),
                 devices[n].name, devices[n].platform, devices[n].version);
  } catch (const DeviceError& e) {
    fmt::print("{:18} {}\n", "opencl", e.what());
  }
}

void print_gpu(const Target& t) {
  const DeviceLimits& l = t.limits;
  fmt::print("{:18} {}\n{:18} {}\n", "target", t.name, "device", t.cpu);
  fmt::print("{:18} {} ({} x {} x {})\n", "threads per block", l.threads_per_block, l.block[0],
             l.block[1], l.block[2]);
  fmt::print("{:18} {} x {} x {}\n", "blocks", l.grid[0], l.grid[1], l.grid[2]);
  fmt::print("{:18} {} KB\n", "shared memory", l.shared_bytes >> 10);
  fmt::print("{:18} {}\n", "features", t.features.empty() ? "none" : join(t.features));
  print_devices();
}

/// What adds up products of bytes and of bf16.
std::string narrow_products(const Target& t) {
  std::vector<std::string> all;
  for (const char* f : {"avx512vnni", "avxvnni", "avx512bf16", "amx-int8", "amx-bf16"})
    if (t.has_feature(f)) all.push_back(f);
  if (all.empty()) return "none";
  const bool dots = t.has_feature("avx512bf16") && t.bf16_dot_cost > 0;
  return join(all) +
         (dots ? fmt::format(" (a bf16 dot takes as long as {} multiply-adds)", t.bf16_dot_cost)
               : "");
}

void print_table(const Target& t, const Peaks& peaks, bool measured) {
  if (t.is_gpu()) return print_gpu(t);
  fmt::print("{:18} {}\n", "target", t.name);
  fmt::print("{:18} {}\n", "cpu", t.cpu);
  fmt::print("{:18} {} bit, {} registers, {} f32 lanes{}{}\n", "vectors", t.vector_bits,
             t.vector_registers, t.lanes(f32), t.has_fma ? ", fma" : "",
             t.has_masks ? ", masks" : "");
  fmt::print("{:18} {}\n", "narrow products", narrow_products(t));
  fmt::print("{:18} {}\n", "cores allowed", t.cores);
  fmt::print("{:18} L1d {} KB, L2 {} KB a core, L3 {} KB\n", "caches", t.l1d_bytes >> 10,
             t.l2_bytes >> 10, t.l3_bytes >> 10);
  print_devices();
  if (!measured) return;
  fmt::print("{:18} {:.1f} GFLOP/s on 1 thread, {:.1f} on {}\n", "f32 fma peak", peaks.fma_gflops_1,
             peaks.fma_gflops_all, peaks.threads);
  for (const ReadPeak& r : peaks.read) {
    fmt::print("{:18} {:.1f} GB/s on 1 thread, {:.1f} on {}\n", "read " + r.level, r.gbps_1,
               r.gbps_all, peaks.threads);
  }
}

}  // namespace

void add_targets(CLI::App& app) {
  auto options = std::make_shared<CommandOptions>();
  CLI::App* verb = app.add_subcommand("targets", "what this machine has, as numbers");
  add_common(*verb, *options);
  verb->callback([options] {
    const Target target = options->parsed_target();
    const bool measured = !target.is_gpu() && target.runs_on(Target::host());
    const Peaks peaks = measured ? load_or_measure_peaks(peaks_directory(), target, 2.0) : Peaks{};
    if (!options->json) return print_table(target, peaks, measured);
    nlohmann::json line = {{"target", nlohmann::json::parse(target.to_json())}};
    if (measured) line["peaks"] = nlohmann::json::parse(peaks.to_json());
    fmt::print("{}\n", line.dump());
  });
}

}  // namespace tenon
