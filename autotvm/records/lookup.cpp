#include <dlfcn.h>
#include <tenon/records/lookup.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace tenon {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

bool same_version(const Record& r, const RecordQuery& q) {
  return (q.tenon.empty() || r.tenon == q.tenon) && (q.llvm.empty() || r.llvm == q.llvm);
}

/// Measured with the sample sizes of symbolic extents that the query names; a query that names none
/// takes any.
bool same_samples(const Record& record, const RecordQuery& query) {
  const auto sizes = [](const std::string& args) {
    const Json j = Json::parse(args, nullptr, false);
    return j.is_object() ? j.value("sample_sizes", Json()) : Json();
  };
  const Json wanted = sizes(query.args);
  return wanted.is_null() || wanted == sizes(record.args);
}

/// Of records of one program on one machine: the last measurement of each trace, in order of first
/// appearance, with that place in the order.
std::vector<const LoggedRecord*> latest_of_each_trace(
    const std::vector<const LoggedRecord*>& records) {
  std::map<std::string, size_t> place;
  std::vector<const LoggedRecord*> out;
  for (const LoggedRecord* r : records) {
    auto [it, fresh] = place.emplace(r->record.trace, out.size());
    if (fresh) {
      out.push_back(r);
    } else {
      out[it->second] = r;
    }
  }
  return out;
}

/// For each record that was timed in turns the number of the last record of its turn, 1 for the
/// first of all; trials by themselves have none. Logs that were merged may use a number twice: the
/// default ends a turn, and no trace has two lines of one. A default alone is no turn.
std::map<const LoggedRecord*, size_t> turns_of(const std::vector<const LoggedRecord*>& records) {
  using Turn = std::map<std::string, size_t>;  // number of the record by trace
  std::map<const LoggedRecord*, size_t> out;
  std::map<int64_t, Turn> open;  // by Record::comparison
  const auto close = [&](Turn& turn) {
    size_t last = 0;
    for (const auto& [trace, number] : turn) last = std::max(last, number);
    for (const auto& [trace, number] : turn) {
      const LoggedRecord* r = records[number - 1];
      if (turn.size() > 1 || r->record.trial != 0) out[r] = last;
    }
    turn.clear();
  };
  for (size_t k = 0; k < records.size(); ++k) {
    const Record& r = records[k]->record;
    if (r.comparison == 0) continue;
    Turn& turn = open[r.comparison];
    if (turn.count(r.trace)) close(turn);
    turn[r.trace] = k + 1;
    if (r.trial == 0) close(turn);
  }
  for (auto& [number, turn] : open) close(turn);
  return out;
}

/// Those left after the rule on ties; null for none.
const LoggedRecord* best_of(const std::vector<const LoggedRecord*>& candidates) {
  std::vector<const LoggedRecord*> latest = latest_of_each_trace(candidates);
  latest.erase(std::remove_if(latest.begin(), latest.end(),
                              [](const LoggedRecord* r) { return !can_be_best(r->record); }),
               latest.end());
  std::map<const LoggedRecord*, size_t> turns = turns_of(candidates);
  size_t turn = 0;
  for (const LoggedRecord* r : latest) turn = std::max(turn, turns[r]);
  latest.erase(std::remove_if(latest.begin(), latest.end(),
                              [&](const LoggedRecord* r) { return turns[r] < turn; }),
               latest.end());
  const LoggedRecord* fastest = nullptr;
  for (const LoggedRecord* r : latest) {
    if (!fastest || median_us(r->record) < median_us(fastest->record)) fastest = r;
  }
  if (!fastest) return nullptr;
  const double limit = median_us(fastest->record) + noise_us(fastest->record);
  for (const LoggedRecord* r : latest) {
    if (median_us(r->record) <= limit) return r;
  }
  return fastest;
}

void collect_numbers(const Json& j, const std::string& path, std::map<std::string, double>& out) {
  if (j.is_number()) out[path] = j.get<double>();
  if (!j.is_structured()) return;
  for (const auto& [key, value] : j.items()) collect_numbers(value, path + "/" + key, out);
}

std::map<std::string, double> numbers_of(const std::string& args) {
  std::map<std::string, double> out;
  collect_numbers(Json::parse(args, nullptr, false), "", out);
  return out;
}

double distance(const std::map<std::string, double>& a, const std::map<std::string, double>& b) {
  double sum = 0;
  for (const auto& [name, value] : a) {
    auto other = b.find(name);
    if (other == b.end()) {
      sum += 1;
    } else if (value > 0 && other->second > 0) {
      sum += std::abs(std::log(value / other->second));
    } else if (value != other->second) {
      sum += 1;
    }
  }
  return sum;
}

std::vector<std::string> logs_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, problem)) {
    if (entry.path().extension() == ".jsonl" && entry.is_regular_file(problem))
      out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::optional<Match> match_of(const Record& r, const RecordQuery& q) {
  const bool same_program = r.program == q.program;
  const bool same_family = !q.family.empty() && r.family == q.family;
  if (!same_program && !same_family) return std::nullopt;
  if (r.threads != q.threads || r.cold != q.cold ||
      r.target.fingerprint() != q.target.fingerprint())
    return std::nullopt;
  const bool same_cpu = r.target.cpu == q.target.cpu;
  if (!same_program) return same_cpu ? Match::family : Match::family_other_cpu;
  if (!same_cpu) return Match::other_cpu;
  return same_version(r, q) && same_samples(r, q) ? Match::exact : Match::other_version;
}

std::optional<LoggedRecord> best_record(const std::vector<LoggedRecord>& records,
                                        const RecordQuery& query) {
  std::vector<const LoggedRecord*> exact;
  for (const LoggedRecord& r : records) {
    if (match_of(r.record, query) == Match::exact) exact.push_back(&r);
  }
  const LoggedRecord* best = best_of(exact);
  return best ? std::optional(*best) : std::nullopt;
}

std::optional<LoggedRecord> nearest_record(const std::vector<LoggedRecord>& records,
                                           const RecordQuery& query) {
  // Times of different programs or CPUs do not compare: the best of each by itself.
  std::map<std::tuple<Match, std::string, std::string>, std::vector<const LoggedRecord*>> members;
  for (const LoggedRecord& r : records) {
    if (const auto match = match_of(r.record, query))
      members[{*match, r.record.program, r.record.target.cpu}].push_back(&r);
  }
  const std::map<std::string, double> wanted = numbers_of(query.args);
  const LoggedRecord* nearest = nullptr;
  std::tuple<Match, double, double, std::ptrdiff_t> nearest_key;
  for (const auto& [member, candidates] : members) {
    const LoggedRecord* best = best_of(candidates);
    if (!best) continue;
    const double away =
        best->record.program == query.program ? 0 : distance(wanted, numbers_of(best->record.args));
    const std::tuple key(std::get<0>(member), away, median_us(best->record), best - records.data());
    if (!nearest || key < nearest_key) {
      nearest = best;
      nearest_key = key;
    }
  }
  return nearest ? std::optional(*nearest) : std::nullopt;
}

std::string RecordPlaces::shipped_folder() {
  if (const char* chosen = std::getenv("TENON_SHIPPED_LOGS")) return chosen;
  Dl_info self{};
  if (::dladdr(reinterpret_cast<const void*>(&to_json_line), &self) == 0 || !self.dli_fname)
    return "";
  std::error_code problem;
  fs::path module = self.dli_fname;
  if (!module.is_absolute()) module = fs::read_symlink("/proc/self/exe", problem);
  const fs::path folder = module.parent_path();
  for (const char* place : {"../share/tenon/tuning_logs", "../../tuning_logs/shipped"}) {
    const fs::path logs = fs::weakly_canonical(folder / place, problem);
    if (fs::is_directory(logs, problem)) return logs.string();
  }
  return "";
}

RecordStore::RecordStore(const RecordPlaces& places) {
  auto add = [this](LoadedLog log) {
    std::vector<LoggedRecord>& place = places_.back();
    std::move(log.records.begin(), log.records.end(), std::back_inserter(place));
    std::move(log.warnings.begin(), log.warnings.end(), std::back_inserter(warnings_));
  };
  if (!places.log.empty()) {
    places_.emplace_back();
    add(load_log(places.log));
  }
  for (const std::string& folder : {places.local, places.shipped}) {
    if (folder.empty()) continue;
    places_.emplace_back();
    for (const std::string& path : logs_in(folder)) {
      try {
        add(load_log(path));
      } catch (const UserError& e) {  // nobody asked for this file by name
        warnings_.push_back(e.what());
      }
    }
  }
}

RecordStore::RecordStore(std::vector<LoggedRecord> records) {
  places_.push_back(std::move(records));
}

std::optional<FoundRecord> RecordStore::find(const RecordQuery& query) const {
  for (const std::vector<LoggedRecord>& place : places_) {
    if (auto best = best_record(place, query)) return FoundRecord{std::move(*best), Match::exact};
  }
  std::optional<FoundRecord> found;
  for (const std::vector<LoggedRecord>& place : places_) {
    std::optional<LoggedRecord> near = nearest_record(place, query);
    if (!near) continue;
    const Match match = *match_of(near->record, query);
    if (!found || match < found->match) found = FoundRecord{std::move(*near), match};
  }
  return found;
}

}  // namespace tenon
