#include <tenon/target/peaks.h>
#include <tenon/target/target.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/verbs.h"

namespace tenon {
namespace {

void print_table(const Target& t, const Peaks& peaks, bool measured) {
  fmt::print("{:18} {}\n", "target", t.name);
  fmt::print("{:18} {}\n", "cpu", t.cpu);
  fmt::print("{:18} {} bit, {} registers, {} f32 lanes{}{}\n", "vectors", t.vector_bits,
             t.vector_registers, t.lanes(f32), t.has_fma ? ", fma" : "",
             t.has_masks ? ", masks" : "");
  fmt::print("{:18} {}\n", "cores allowed", t.cores);
  fmt::print("{:18} L1d {} KB, L2 {} KB a core, L3 {} KB\n", "caches", t.l1d_bytes >> 10,
             t.l2_bytes >> 10, t.l3_bytes >> 10);
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
    const bool measured = target.runs_on(Target::host());
    const Peaks peaks = measured ? load_or_measure_peaks(peaks_directory(), target, 2.0) : Peaks{};
    if (!options->json) return print_table(target, peaks, measured);
    nlohmann::json line = {{"target", nlohmann::json::parse(target.to_json())}};
    if (measured) line["peaks"] = nlohmann::json::parse(peaks.to_json());
    fmt::print("{}\n", line.dump());
  });
}

}  // namespace tenon
