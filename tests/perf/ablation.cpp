// What each idea is worth: one of them left out at a time, measured in turns in one run on one
// thread.
//
//   ninja -C build perf_ablation && build/bin/perf_ablation [MODEL.onnx INPUT=1x3x48x192 [LOG]]
//
// matmul 1024^3: the default schedule; without a register tile (1 x 1 vector); without packing;
// unscheduled. A network: default schedules; without fusion; every kernel unscheduled; with the
// records of LOG.
#include <tenon/driver/driver.h>
#include <tenon/runtime/timer.h>
#include <tenon/support/text.h>


using namespace tenon;

namespace {

constexpr int kRounds = 7;
constexpr double kFloor_us = 50'000;

Target one_core() {
  Target target = Target::host();
  target.cores = 1;
  return target;
}

Trace tile_at(const Task& task, const std::map<std::string, int64_t>& changed) {
  Point point = survey(task.templates[0].fn, task.program, task.target).default_point();
  for (const auto& [name, value] : changed) point.values[name] = value;
  return apply_template(task, task.templates[0].name, point).trace();
}

void matmul() {
  const Task task = operator_task({"matmul", "m=1024", "n=1024", "k=1024"}, one_core());
  const std::vector<NamedTrace> variants = {
      {"default", default_schedule(task).trace()},
      {"no register tile", tile_at(task, {{"rows", 1}, {"vectors", 1}})},
      {"no packing", tile_at(task, {{"pack_x", 0}})},
  };
  BenchOptions options;
  options.rounds = kRounds;
  options.floor_us = kFloor_us;
  options.unscheduled = true;
  fmt::print("{}", bench_table(bench(task, variants, options)));
}

struct Variant {
  std::string name;
  Network network;
  Samples samples;
};

Variant make_variant(const std::string& name, const std::string& model, NetworkOptions options,
                     const std::function<void(Network&)>& select) {
  Variant v{name, Network::load(model, options), {}};
  select(v.network);
  v.network.compile();
  return v;
}

void network(const std::string& model, const std::string& shape, const std::string& log) {
  NetworkOptions options, unfused;
  const size_t equals = shape.find('=');
  std::vector<int64_t> dims;
  for (const std::string& part : split_text(shape.substr(equals + 1), 'x'))
    dims.push_back(parse_int(part).value());
  options.bindings.shapes[shape.substr(0, equals)] = dims;
  options.target = one_core();
  options.threads = 1;
  unfused = options;
  unfused.fuse = false;

  std::vector<Variant> variants;
  variants.push_back(
      make_variant("default schedules", model, options, [](Network& n) { n.select_default(); }));
  variants.push_back(
      make_variant("no fusion", model, unfused, [](Network& n) { n.select_default(); }));
  variants.push_back(
      make_variant("unscheduled", model, options, [](Network& n) { n.select_unscheduled(); }));
  if (!log.empty()) {
    RecordPlaces places;
    places.log = log;
    const RecordStore store(places);
    variants.push_back(make_variant("tuned", model, options, [&](Network& n) { n.select(store); }));
  }
  std::map<std::string, Array> inputs;
  for (const NamedShape& in : variants[0].network.inputs())
    inputs[in.name] = random(in.dtype, in.shape, 3);
  for (int round = 0; round < kRounds; ++round) {
    for (Variant& v : variants) {
      v.samples.us.push_back(
          time_repeatedly([&] { v.network.run(inputs); }, kFloor_us, 1).median());
    }
  }
  for (const Variant& v : variants) {
    fmt::print("{:18} {:10.1f} us  mad {:6.1f}  {} kernels\n", v.name, v.samples.median(),
               v.samples.mad(), v.network.kernels().size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    matmul();
    if (argc > 2) network(argv[1], argv[2], argc > 3 ? argv[3] : "");
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "perf_ablation: {}\n", e.what());
    return 1;
  }
}
