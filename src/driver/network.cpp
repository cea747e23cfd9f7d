#include <tenon/driver/driver.h>
#include <tenon/runtime/timer.h>
#include <tenon/target/peaks.h>

#include <nlohmann/json.hpp>

namespace tenon {
namespace {

constexpr uint64_t kInputSeed = 21;

std::map<std::string, Array> random_inputs(const Network& network) {
  std::map<std::string, Array> inputs;
  for (const NamedShape& in : network.inputs())
    inputs[in.name] = random(in.dtype, in.shape, kInputSeed);
  return inputs;
}

std::string default_log(const Network& network) {
  return "tuning_logs/" + network.name() + ".jsonl";
}

double round_us(Network& network, const std::map<std::string, Array>& inputs, double floor_us) {
  return time_repeatedly([&] { network.run(inputs); }, floor_us, 1).median();
}

std::vector<BenchRow> bench_kernels(const Network& network, const NetworkOptions& options,
                                    const RecordStore& store, const BenchOptions& bench_options) {
  BenchOptions kernel_options = bench_options;
  if (kernel_options.peak_gflops == 0) {
    kernel_options.peak_gflops = measure_fma_gflops(options.target, bench_options.threads, 0.5);
  }
  std::vector<BenchRow> rows;
  size_t done = 0;
  for (const GroupKernel& kernel : network.kernels()) {
    const auto schedules = default_and_best(kernel.task, store, bench_options.threads);
    for (BenchRow row : bench(kernel.task, schedules, kernel_options)) {
      row.kernel = kernel.name;
      row.uses = kernel.uses;
      rows.push_back(std::move(row));
    }
    if (bench_options.progress) bench_options.progress(++done, network.kernels().size());
  }
  return rows;
}

}  // namespace

Network load(const std::filesystem::path& model, const NetworkOptions& options,
             const RecordPlaces& places,
             const std::function<void(size_t done, size_t all)>& progress) {
  Network network = Network::load(model, options);
  network.select(RecordStore(places),
                 check_adapted(options.lent ? options.lent->workers : options.threads));
  network.compile(progress);
  return network;
}

std::vector<TuneReport> tune(Network& network, const TuneOptions& options) {
  TuneOptions with_log = options;
  if (with_log.log.empty()) with_log.log = default_log(network);
  std::vector<WeightedTask> tasks;
  for (const GroupKernel& kernel : network.kernels()) {
    tasks.push_back({kernel.task, static_cast<double>(kernel.uses)});
  }
  std::vector<TuneReport> reports = tune_all(tasks, with_log);
  if (options.stop && options.stop->load()) return reports;
  RecordPlaces places;
  places.log = with_log.log;
  network.select(RecordStore(places), check_adapted(options.threads));
  network.compile();
  return reports;
}

std::string NetworkBench::to_json() const {
  nlohmann::ordered_json line = {
      {"network", network}, {"default_us", default_us}, {"median_us", median_us}};
  if (unscheduled_us > 0) line["unscheduled_us"] = unscheduled_us;
  return line.dump();
}

NetworkBench bench(const std::filesystem::path& model, const NetworkOptions& options,
                   const RecordStore& store, const BenchOptions& bench_options) {
  Network tuned = Network::load(model, options), standard = Network::load(model, options);
  NetworkBench out;
  out.network = tuned.name();

  if (!bench_options.whole_only) out.rows = bench_kernels(tuned, options, store, bench_options);

  tuned.select(store, check_adapted(bench_options.threads));
  tuned.compile();
  standard.select_default();
  standard.compile();
  const std::map<std::string, Array> inputs = random_inputs(tuned);
  Samples default_samples, tuned_samples;
  for (int round = 0; round < bench_options.rounds; ++round) {
    default_samples.us.push_back(round_us(standard, inputs, bench_options.floor_us));
    tuned_samples.us.push_back(round_us(tuned, inputs, bench_options.floor_us));
  }
  out.default_us = default_samples.median();
  out.median_us = tuned_samples.median();
  if (bench_options.unscheduled) {
    Network plain = Network::load(model, options);
    plain.select_unscheduled();
    plain.compile();
    out.unscheduled_us = round_us(plain, inputs, 0);
  }
  return out;
}

}  // namespace tenon
