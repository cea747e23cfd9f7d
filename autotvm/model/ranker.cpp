#include <fmt/format.h>
#include <tenon/autotvm/ranker.h>
#include <tenon/compile/compile.h>
#include <tenon/records/lookup.h>
#include <tenon/support/error.h>
#include <tenon/support/files.h>
#include <tenon/support/hash.h>
#include <tenon/support/stats.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "autotvm/model/boosted_trees.h"
#include "autotvm/model/draft.h"
#include "autotvm/model/store_features.h"

namespace tenon {
namespace {

/// Of what features mean and what labels are: a file of another version is not used. To be raised
/// with each change of the draft score or of the store features.
constexpr int kVersion = 3;
constexpr size_t kLeastRows = 32, kLeastSamples = 8;
/// Of what other operators say of a program beside its draft. Without it (1.0) fewer of the first
/// 16 are good ones, on operators left out, than by the draft alone; perf_ranker measures it.
constexpr double kCarriesOver = 0.6;
constexpr TreeOptions kOfAll{100, 6, 0.1, 5, 0.3};
constexpr TreeOptions kOfSession{40, 3, 0.1, 1, 0.3};

struct Share {
  const char* name;
  double DraftFeatures::*cycles;
};
constexpr Share kShares[] = {{"compute_share", &DraftFeatures::compute_cycles},
                             {"end_share", &DraftFeatures::end_cycles},
                             {"copy_share", &DraftFeatures::copy_cycles},
                             {"near_share", &DraftFeatures::near_cycles},
                             {"far_share", &DraftFeatures::far_cycles},
                             {"memory_share", &DraftFeatures::memory_cycles},
                             {"turn_share", &DraftFeatures::turn_cycles},
                             {"fork_share", &DraftFeatures::fork_cycles},
                             {"serial_share", &DraftFeatures::serial_cycles}};

constexpr Share kPerInstruction[] = {{"near_bytes", &DraftFeatures::near_bytes},
                                     {"far_bytes", &DraftFeatures::far_bytes},
                                     {"memory_bytes", &DraftFeatures::memory_bytes}};

// What grows with the operator is left out: it tells operators apart, and trees would learn these
// operators by heart.
constexpr std::string_view kGrows[] = {
    "instructions",  "compute_cycles", "end_cycles",    "copy_cycles",
    "near_cycles",   "far_cycles",     "memory_cycles", "turn_cycles",
    "near_bytes",    "far_bytes",      "memory_bytes",  "fork_cycles",
    "serial_cycles", "steps",          "pieces",        "workspace_bytes"};

bool grows(std::string_view name) {
  if (std::find(std::begin(kGrows), std::end(kGrows), name) != std::end(kGrows)) return true;
  return name.ends_with(".times") || name.ends_with(".bytes");
}

/// Places in a list of names of what does not grow.
template <class Names>
std::vector<size_t> kept_places(const Names& names) {
  std::vector<size_t> out;
  for (size_t n = 0; n < names.size(); ++n)
    if (!grows(names[n])) out.push_back(n);
  return out;
}

std::vector<std::string> all_names() {
  std::vector<std::string> out;
  const auto draft = DraftFeatures::names();
  for (size_t n : kept_places(draft)) out.push_back("draft." + std::string(draft[n]));
  for (const Share& s : kShares) out.push_back(fmt::format("draft.{}", s.name));
  for (const Share& s : kPerInstruction)
    out.push_back(fmt::format("draft.{}_per_instruction", s.name));
  out.push_back("draft.instructions_per_cycle");
  const auto& stores = store_feature_names();
  for (size_t n : kept_places(stores)) out.push_back(stores[n]);
  return out;
}

float size_ratio(double a, double b) { return static_cast<float>(std::log2((1 + a) / (1 + b))); }

void add_draft(const Draft& d, std::vector<float>& out) {
  static const std::vector<size_t> kKept = kept_places(DraftFeatures::names());
  const DraftFeatures& f = d.features;
  const std::vector<float> all = f.vector();
  for (size_t n : kKept) out.push_back(all[n]);
  for (const Share& s : kShares)
    out.push_back(static_cast<float>(d.cycles > 0 ? f.*s.cycles / d.cycles : 0));
  for (const Share& s : kPerInstruction) out.push_back(size_ratio(f.*s.cycles, f.instructions));
  out.push_back(size_ratio(f.instructions, d.cycles));
}

/// Labels without their task's median, and less than they are, as far as they carry over; weights
/// by how near to the task's best, tasks alike.
std::vector<RankerSample> samples_of(const std::vector<RankerRow>& rows) {
  struct Times {
    std::vector<double> labels;
    double best = INFINITY;
  };
  std::map<std::string, Times> tasks;
  const auto label = [](const RankerRow& r) {
    return std::log(r.us / std::max(1.0, r.features.cycles));
  };
  for (const RankerRow& r : rows) {
    Times& t = tasks[r.task];
    t.labels.push_back(label(r));
    t.best = std::min(t.best, r.us);
  }
  std::map<std::string, double> middles;
  for (const auto& [name, times] : tasks) middles[name] = median(times.labels);
  std::vector<RankerSample> out;
  for (const RankerRow& r : rows) {
    const Times& t = tasks.at(r.task);
    const double near = t.best / r.us, many = static_cast<double>(t.labels.size());
    out.push_back({r.features.values, kCarriesOver * (label(r) - middles.at(r.task)),
                   std::sqrt(near) * 200 / many});
  }
  return out;
}

BoostedTrees trees_of(const std::vector<RankerSample>& samples, const TreeOptions& options) {
  TreeRows rows;
  std::vector<float> labels, weights;
  for (const RankerSample& s : samples) {
    rows.add(s.features);
    labels.push_back(static_cast<float>(s.label));
    weights.push_back(static_cast<float>(s.weight));
  }
  return BoostedTrees::fit(rows, labels, weights, options);
}

/// The names that one list has and the other lacks, shortened for a message.
std::string difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> out;
  for (const std::string& name : a)
    if (std::find(b.begin(), b.end(), name) == b.end()) out.push_back(name);
  if (out.size() > 3) out.resize(3);
  return out.empty() ? "nothing" : join(out);
}

constexpr const char* kAgain =
    "\n  the draft score is used alone\n  try: tenon log train LOG.. -o ranker.json";

void check_names(const nlohmann::ordered_json& head) {
  const int version = head.at("ranker").get<int>();
  if (version != kVersion) {
    throw UserError(
        fmt::format("a ranker of version {}, this is version {}{}", version, kVersion, kAgain));
  }
  const auto names = head.at("features").get<std::vector<std::string>>();
  if (names == ranker_feature_names()) return;
  throw UserError(
      fmt::format("a ranker of other features: it has {} that are not known here, and lacks {}{}",
                  difference(names, ranker_feature_names()),
                  difference(ranker_feature_names(), names), kAgain));
}

}  // namespace

const std::vector<std::string>& ranker_feature_names() {
  static const std::vector<std::string> kNames = all_names();
  return kNames;
}

RankerFeatures ranker_features(const Program& scheduled, const Target& target, int threads,
                               const std::map<std::string, int64_t>& sizes) {
  RankerFeatures out;
  const Draft d = draft(scheduled, target, threads, sizes);
  out.cycles = d.cycles;
  add_draft(d, out.values);
  static const std::vector<size_t> kKept = kept_places(store_feature_names());
  const std::vector<float> stores = store_features(flat_program(scheduled, target), target, sizes);
  for (size_t n : kKept) out.values.push_back(stores[n]);
  return out;
}

struct Ranker::State {
  BoostedTrees trees;
};

Ranker Ranker::fit(const std::vector<RankerRow>& rows) {
  Ranker out;
  if (rows.size() >= kLeastRows && !BoostedTrees::missing())
    out.state_ = std::make_shared<State>(State{trees_of(samples_of(rows), kOfAll)});
  return out;
}

Ranker Ranker::fit_session(const std::vector<RankerSample>& samples) {
  Ranker out;
  if (samples.size() >= kLeastSamples && !BoostedTrees::missing())
    out.state_ = std::make_shared<State>(State{trees_of(samples, kOfSession)});
  return out;
}

std::vector<double> Ranker::predict(const std::vector<const std::vector<float>*>& rows) const {
  if (!knows()) return std::vector<double>(rows.size(), 0);
  TreeRows all;
  for (const std::vector<float>* row : rows) all.add(*row);
  const std::vector<float> out = state_->trees.predict(all);
  return {out.begin(), out.end()};
}

// The trees' text stands last, as XGBoost wrote it.
std::string Ranker::to_json() const {
  TENON_CHECK(knows(), "a ranker that knows nothing is not kept");
  const std::string trees = state_->trees.to_json();
  const nlohmann::ordered_json names = ranker_feature_names();
  return fmt::format("{{\"ranker\":{},\n\"features\":{},\n\"check\":\"{}\",\n\"trees\":{}}}\n",
                     kVersion, names.dump(), hex64(hash_text(trees)), trees);
}

Ranker Ranker::from_json(const std::string& text) {
  constexpr std::string_view kTrees = "\n\"trees\":";
  const size_t split = text.find(kTrees), end = text.rfind('}');
  if (split == std::string::npos || end == std::string::npos || end < split)
    throw UserError(fmt::format("no ranker: it has no trees{}", kAgain));
  const size_t begin = split + kTrees.size();
  const std::string trees = text.substr(begin, end - begin);
  try {
    const auto head = nlohmann::ordered_json::parse(text.substr(0, text.rfind(',', split)) + "}");
    check_names(head);
    if (head.at("check").get<std::string>() != hex64(hash_text(trees)))
      throw UserError(
          fmt::format("a damaged ranker: its trees are not those that were written{}", kAgain));
  } catch (const nlohmann::json::exception& e) {
    throw UserError(fmt::format("no ranker: {}{}", e.what(), kAgain));
  }
  Ranker out;
  out.state_ =
      std::make_shared<State>(State{BoostedTrees::from_json(trees, ranker_feature_names().size())});
  return out;
}

LoadedRanker load_ranker(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) return {};
  const Result<std::string> text = read_file(path);
  if (!text) return {{}, fmt::format("{}: {}", path, text.error())};
  try {
    return {Ranker::from_json(text.value()), ""};
  } catch (const UserError& e) {
    return {{}, fmt::format("{}: {}", path, e.what())};
  }
}

std::optional<std::string> trees_missing() { return BoostedTrees::missing(); }

std::string shipped_ranker() {
  const std::string folder = RecordPlaces::shipped_folder();
  return folder.empty() ? "" : folder + "/ranker.json";
}

}  // namespace tenon
