#include <fmt/format.h>
#include <tenon/autotvm/ranker.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace tenon {
namespace {

constexpr size_t kFirst = 16, kLeastPoints = 32;

std::vector<size_t> sorted_by(const std::vector<double>& values) {
  std::vector<size_t> out(values.size());
  std::iota(out.begin(), out.end(), size_t{0});
  std::stable_sort(out.begin(), out.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  return out;
}

/// Equal values share the mean of their ranks.
std::vector<double> ranks(const std::vector<double>& values) {
  const std::vector<size_t> order = sorted_by(values);
  std::vector<double> out(values.size());
  for (size_t n = 0, end = 0; n < order.size(); n = end) {
    while (end < order.size() && values[order[end]] == values[order[n]]) ++end;
    for (size_t k = n; k < end; ++k) out[order[k]] = static_cast<double>(n + end - 1) / 2;
  }
  return out;
}

double spearman(const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<double> a = ranks(x), b = ranks(y);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t n = 0; n < a.size(); ++n) {
    ab += (a[n] - mean) * (b[n] - mean);
    aa += (a[n] - mean) * (a[n] - mean);
    bb += (b[n] - mean) * (b[n] - mean);
  }
  return aa * bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

/// The order that a search begins with: by drafts, the first kRankerHead of them anew by what is
/// believed of `said`. A place for each row.
std::vector<double> with_head_anew(const std::vector<double>& drafted,
                                   const std::vector<double>& said) {
  std::vector<size_t> order = sorted_by(drafted);
  const auto head = static_cast<std::ptrdiff_t>(std::min(kRankerHead, order.size()));
  std::stable_sort(order.begin(), order.begin() + head, [&](size_t a, size_t b) {
    return drafted[a] + kRankerTrust * said[a] < drafted[b] + kRankerTrust * said[b];
  });
  std::vector<double> places(order.size());
  for (size_t n = 0; n < order.size(); ++n) places[order[n]] = static_cast<double>(n);
  return places;
}

UnseenQuality quality_of(const std::string& task, const std::vector<const RankerRow*>& rows,
                         const Ranker& ranker) {
  std::vector<const std::vector<float>*> features;
  for (const RankerRow* r : rows) features.push_back(&r->features.values);
  const std::vector<double> said = ranker.predict(features);
  std::vector<double> drafted, ranked, us;
  for (size_t n = 0; n < rows.size(); ++n) {
    drafted.push_back(std::log(std::max(1.0, rows[n]->features.cycles)));
    ranked.push_back(drafted.back() + said[n]);
    us.push_back(rows[n]->us);
  }
  UnseenQuality out{task, rows.size(), rank_quality(drafted, us),
                    rank_quality(with_head_anew(drafted, said), us)};
  out.ranker.rho = spearman(ranked, us);
  return out;
}

std::string line(const std::string& title, size_t points, const RankQuality& a,
                 const RankQuality& b, double hits_a, double hits_b) {
  return fmt::format("{:56} {:5} {:6.3f} {:6.3f} {:6.4g} {:6.4g} {:6.3f} {:6.3f}\n", title, points,
                     a.rho, b.rho, hits_a, hits_b, a.reached, b.reached);
}

}  // namespace

RankQuality rank_quality(const std::vector<double>& order, const std::vector<double>& us) {
  RankQuality out;
  if (us.empty()) return out;
  std::vector<double> sorted = us;
  std::sort(sorted.begin(), sorted.end());
  const double good = sorted[std::max<size_t>(1, us.size() / 20) - 1];
  const std::vector<size_t> first = sorted_by(order);
  for (size_t n = 0; n < std::min(kFirst, first.size()); ++n) {
    out.hits += us[first[n]] <= good;
    out.reached = std::max(out.reached, sorted[0] / us[first[n]]);
  }
  out.rho = spearman(order, us);
  return out;
}

std::vector<UnseenQuality> leave_one_out(const std::vector<RankerRow>& rows) {
  std::map<std::string, std::map<std::string, std::vector<const RankerRow*>>> operators;
  for (const RankerRow& r : rows) operators[r.operator_name][r.task].push_back(&r);
  std::vector<UnseenQuality> out;
  for (const auto& [name, tasks] : operators) {
    std::vector<RankerRow> others;
    for (const RankerRow& r : rows)
      if (r.operator_name != name) others.push_back(r);
    const Ranker ranker = Ranker::fit(others);
    for (const auto& [task, points] : tasks)
      if (points.size() >= kLeastPoints) out.push_back(quality_of(task, points, ranker));
  }
  return out;
}

std::string quality_table(const std::vector<UnseenQuality>& qualities) {
  std::string out = fmt::format(
      "{:56} {:>5} {:>13} {:>13} {:>13}\n{:62} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}\n",
      "operators never seen: draft alone, draft + ranker", "points", "rho", "top 16 in 5%",
      "best of 16", "", "draft", "ranker", "draft", "ranker", "draft", "ranker");
  RankQuality draft, ranker;
  double hits = 0, ranker_hits = 0;
  const auto count = static_cast<double>(qualities.size());
  for (const UnseenQuality& q : qualities) {
    const auto a = static_cast<double>(q.draft.hits), b = static_cast<double>(q.ranker.hits);
    out += line(q.task, q.points, q.draft, q.ranker, a, b);
    draft.rho += q.draft.rho / count;
    draft.reached += q.draft.reached / count;
    ranker.rho += q.ranker.rho / count;
    ranker.reached += q.ranker.reached / count;
    hits += a / count;
    ranker_hits += b / count;
  }
  if (!qualities.empty()) out += line("mean", qualities.size(), draft, ranker, hits, ranker_hits);
  return out;
}

}  // namespace tenon
