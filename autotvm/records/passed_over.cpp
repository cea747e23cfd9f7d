#include <tenon/records/lookup.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tenon {
namespace {

/// Records that were made for one machine and thread count, with caches alike.
struct Held {
  const LoggedRecord* first = nullptr;
  int64_t count = 0;
};

/// Ordered: target, CPU, threads, cold.
using Key = std::tuple<std::string, std::string, int, bool>;

bool same_features(const Record& r, const RecordQuery& q) {
  return r.target.fingerprint() == q.target.fingerprint();
}

/// Of this program for another machine, thread count or state of the caches, or of its family for
/// other features; not one that could have answered.
bool is_passed_over(const Record& r, const RecordQuery& q) {
  if (!can_be_best(r) || match_of(r, q)) return false;
  return r.program == q.program ||
         (!q.family.empty() && r.family == q.family && !same_features(r, q));
}

/// Nobody asked for what an installation brings along: users of other machines need not hear of it.
bool is_shipped(const LoggedRecord& r, const std::string& folder) {
  return !folder.empty() && r.where.path.rfind(folder, 0) == 0;
}

std::string first_few(const std::vector<std::string>& words) {
  constexpr size_t kShown = 4;
  if (words.size() <= kShown) return join(words);
  return join({words.begin(), words.begin() + kShown}) +
         fmt::format(" and {} more", words.size() - kShown);
}

std::vector<std::string> without(const std::vector<std::string>& a,
                                 const std::vector<std::string>& b) {
  std::vector<std::string> out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(out));
  return out;
}

std::string why_not(const Record& r, const RecordQuery& q) {
  if (same_features(r, q) && r.threads == q.threads)
    return fmt::format("timed with {} caches", r.cold ? "cold" : "warm");
  if (same_features(r, q)) return fmt::format("measured with {} thread(s)", r.threads);
  if (r.target.is_gpu() || q.target.is_gpu()) return "another device";
  const std::vector<std::string> lacking = without(r.target.features, q.target.features),
                                 unused = without(q.target.features, r.target.features);
  if (!lacking.empty()) return "its code needs " + first_few(lacking);
  return "its code does not use " + first_few(unused);
}

std::string line_of(const Held& held, const RecordQuery& q) {
  const Record& r = held.first->record;
  return fmt::format("\n  {}{}: {} ({}), {} thread(s): {}", held.first->where.text(),
                     held.count > 1 ? fmt::format(" and {} more", held.count - 1) : "",
                     r.target.name, r.target.cpu, r.threads, why_not(r, q));
}

}  // namespace

std::string RecordStore::passed_over(const std::vector<RecordQuery>& queries) const {
  std::map<Key, Held> held;
  std::set<int> other_threads;
  size_t unanswered = 0;
  const std::string shipped = RecordPlaces::shipped_folder();
  for (const RecordQuery& q : queries) {
    if (find(q)) continue;
    bool any = false;
    for (const std::vector<LoggedRecord>& place : places_) {
      for (const LoggedRecord& r : place) {
        if (!is_passed_over(r.record, q) || is_shipped(r, shipped)) continue;
        Held& group = held[{r.record.target.fingerprint(), r.record.target.cpu, r.record.threads,
                            r.record.cold}];
        if (!group.first) group.first = &r;
        ++group.count;
        if (same_features(r.record, q) && r.record.threads != q.threads && r.record.cold == q.cold)
          other_threads.insert(r.record.threads);
        any = true;
      }
    }
    if (any) ++unanswered;
  }
  if (unanswered == 0) return "";
  const RecordQuery& asked = queries.front();
  std::string out = fmt::format(
      "no record fits {} of {} kernel(s) on {} ({}) with {} thread(s); "
      "the logs hold others, which are never used here:",
      unanswered, queries.size(), asked.target.name, asked.target.cpu, asked.threads);
  for (const auto& [key, group] : held) out += line_of(group, asked);
  out += "\n  try: tenon tune, with the same words, on this machine";
  for (int threads : other_threads) out += fmt::format("; --threads {}", threads);
  return out;
}

}  // namespace tenon
