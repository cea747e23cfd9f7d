#include <tenon/autotvm/ranker.h>
#include <tenon/compile/compile.h>
#include <tenon/schedule/schedule.h>
#include <tenon/support/files.h>
#include <tenon/support/rng.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "autotvm/model/store_features.h"
#include "drafted.h"
#include "fake_session.h"
#include "spaces.h"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

bool trees_are_missing() {
  if (const auto why = trees_missing()) {
    WARN("SKIPPED: " << *why);
    return true;
  }
  return false;
}

/// C[60,64] = A[60,128] B[128,64], six rows of the whole width in registers, four steps of k
/// written out.
Schedule tiled_product() {
  const Tensor a = input("A", f32, {60, 128}), b = input("B", f32, {128, 64});
  const Axis i("i", 60), j("j", 64), k("k", 128);
  Schedule s(make_program("matmul", {compute("C", {i, j}, sum(a(i, k) * b(k, j), k))}), machine());
  s.split("i", 6);
  s.split("k", 4);
  s.reorder({"i.o", "k.o", "k.i", "i.i", "j"});
  const CacheWriteStages made = s.cache_write("i.o", {.scope = Scope::reg});
  s["C"].vectorize("j").unroll("i.i").unroll("k.i");
  s[made.store].vectorize("j").unroll("i");
  return s;
}

/// The feature of that name, back from its logarithm.
class StoreReader {
 public:
  explicit StoreReader(const Program& scheduled)
      : values_(store_features(flat_program(scheduled, machine()), machine())) {}
  double plain(const std::string& name) const {
    const auto& names = store_feature_names();
    const auto place = std::find(names.begin(), names.end(), name);
    REQUIRE(place != names.end());
    return values_[static_cast<size_t>(place - names.begin())];
  }
  double size(const std::string& name) const { return std::exp2(plain(name)) - 1; }
  /// Of a number that is given per execution of the first store.
  double whole(const std::string& name) const {
    return std::exp2(plain(name) + plain("first.times")) - 1;
  }

 private:
  std::vector<float> values_;
};

/// Programs of one number that matters, the first feature, and one that does not. Times are
/// cycles * 2^(first / 4); `tasks` of so many rows each.
std::vector<RankerRow> synthetic_rows(int tasks, int each, uint64_t seed) {
  Rng rng(seed);
  std::vector<RankerRow> out;
  for (int t = 0; t < tasks; ++t)
    for (int n = 0; n < each; ++n) {
      RankerRow row;
      row.operator_name = "operator" + std::to_string(t);
      row.task = row.operator_name + " x1";
      row.features.values.assign(ranker_feature_names().size(), 0);
      const auto penalty = static_cast<float>(rng.below(8));
      row.features.values[0] = penalty;
      row.features.values[1] = static_cast<float>(rng.below(8));
      row.features.cycles = 1000.0 * (t + 1) * static_cast<double>(1 + rng.below(20));
      row.us = row.features.cycles * 1e-3 * std::exp2(penalty / 4);
      out.push_back(std::move(row));
    }
  return out;
}

std::vector<double> predictions(const Ranker& ranker, const std::vector<RankerRow>& rows) {
  std::vector<const std::vector<float>*> features;
  for (const RankerRow& r : rows) features.push_back(&r.features.values);
  return ranker.predict(features);
}

int64_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("store features of a register tile, by hand") {
  const StoreReader f(tiled_product().program());
  // 10 tiles of 6 rows, 128 steps, 4 vectors of 16: each a multiply-add on an accumulator.
  CHECK(f.size("first.times") == Approx(10 * 6 * 128 * 4));
  CHECK(f.size("first.lanes") == Approx(16));
  CHECK(f.size("first.adds") == Approx(1));
  CHECK(f.size("first.muls") == Approx(1));
  CHECK(f.size("first.loads") == Approx(2));
  CHECK(f.size("first.register_loads") == Approx(1));
  CHECK(f.plain("first.accumulates") == 1);
  CHECK(f.plain("first.registers") == 1);
  CHECK(f.size("first.reduce") == Approx(128));
  CHECK(f.size("first.unroll") == Approx(4 * 6 * 4));
  CHECK(f.size("first.innermost") == Approx(32));
  CHECK(f.size("first.parallel") == Approx(1));
  // B: 128 rows of 256 bytes, read again for each of 6 rows while a row of it and one number of A
  // pass; a step of k.o goes on by 4 rows.
  CHECK(f.plain("first.buffer0.contiguous") == 1);
  CHECK(f.whole("first.buffer0.unique_bytes") == Approx(128 * 64 * 4));
  CHECK(f.whole("first.buffer0.lines") == Approx(512));
  CHECK(f.size("first.buffer0.reuse_count") == Approx(6));
  CHECK(f.whole("first.buffer0.reuse_bytes") == Approx(256 + 64));
  CHECK(f.size("first.buffer0.step_bytes") == Approx(1024));
  // A: one number for all lanes, again for each of 4 vectors.
  CHECK(f.plain("first.buffer1.broadcast") == 1);
  CHECK(f.whole("first.buffer1.unique_bytes") == Approx(60 * 128 * 4));
  CHECK(f.size("first.buffer1.reuse_count") == Approx(4));
  // The second store: accumulators start, or go to C; either way one vector at a time.
  CHECK(f.size("second.times") == Approx(10 * 6 * 4));
  CHECK(f.size("second.adds") == 0);
}

TEST_CASE("ranker features: a name each, equal for equal programs") {
  const RankerFeatures a = ranker_features(tiled_product().program(), machine(), 1);
  CHECK(a.values.size() == ranker_feature_names().size());
  CHECK(a.cycles > 0);
  CHECK(ranker_features(tiled_product().program(), machine(), 1).values == a.values);
}

TEST_CASE("a ranker corrects drafts of operators that it never saw") {
  if (trees_are_missing()) return;
  const std::vector<UnseenQuality> q = leave_one_out(synthetic_rows(4, 100, 1));
  REQUIRE(q.size() == 4);
  for (const UnseenQuality& task : q) {
    INFO(task.task);
    CHECK(task.ranker.rho > 0.95);
    CHECK(task.ranker.rho > task.draft.rho + 0.05);
    CHECK(task.ranker.hits >= task.draft.hits);
  }
  CHECK_THAT(quality_table(q), Contains("operator3 x1") && Contains("mean"));
}

TEST_CASE("the same rows give the same ranker, a file keeps it, no thread is left behind") {
  if (trees_are_missing()) return;
  const std::vector<RankerRow> rows = synthetic_rows(3, 60, 2), others = synthetic_rows(1, 50, 3);
  const int64_t threads = threads_of_this_process();
  const Ranker a = Ranker::fit(rows), b = Ranker::fit(rows);
  REQUIRE(a.knows());
  CHECK(a.to_json() == b.to_json());
  const Ranker loaded = Ranker::from_json(a.to_json());
  CHECK(predictions(loaded, others) == predictions(a, others));
  CHECK(loaded.to_json() == a.to_json());
  CHECK(threads_of_this_process() == threads);  // so that the tuner may fork
}

TEST_CASE("few rows teach nothing: the draft score decides") {
  const std::vector<RankerRow> rows = synthetic_rows(1, 31, 4);
  const Ranker ranker = Ranker::fit(rows);
  CHECK(!ranker.knows());
  CHECK(predictions(ranker, rows) == std::vector<double>(rows.size(), 0));
}

TEST_CASE("a ranker of another version, of other features, or damaged is refused in words") {
  if (trees_are_missing()) return;
  const std::string text = Ranker::fit(synthetic_rows(2, 40, 5)).to_json();
  CHECK_THROWS_WITH(Ranker::from_json(replaced(text, "\"ranker\":", "\"ranker\":99")),
                    Contains("version 99") && Contains("the draft score is used alone"));
  CHECK_THROWS_WITH(Ranker::from_json(replaced(text, "\"draft.balance\"", "\"draft.laps\"")),
                    Contains("it has draft.laps that are not known here") &&
                        Contains("lacks draft.balance") && Contains("tenon log train"));
  const size_t number = text.find("\"split_conditions\":[") + 20;
  std::string damaged = text;
  damaged[number] = damaged[number] == '1' ? '2' : '1';
  CHECK_THROWS_WITH(Ranker::from_json(damaged), Contains("damaged"));
  CHECK_THROWS_WITH(Ranker::from_json("{}"), Contains("no ranker"));
  CHECK_THROWS_WITH(Ranker::from_json("\n\"trees\":{}}"), Contains("no ranker"));
}

TEST_CASE("a ranker's file that cannot be used is a warning, one that is not there is none") {
  if (trees_are_missing()) return;
  const std::string path = (std::filesystem::temp_directory_path() / "tenon-ranker.json").string();
  std::filesystem::remove(path);
  CHECK(load_ranker(path).warning.empty());
  REQUIRE(!write_file(path, "{\"ranker\":0}"));
  const LoadedRanker damaged = load_ranker(path);
  CHECK(!damaged.ranker.knows());
  CHECK_THAT(damaged.warning, Contains(path) && Contains("no ranker"));
  REQUIRE(!write_file(path, Ranker::fit(synthetic_rows(2, 40, 5)).to_json()));
  CHECK(load_ranker(path).ranker.knows());
  std::filesystem::remove(path);
}

TEST_CASE("the quality of an order, by hand") {
  // 40 points: the true best 5% are two. The order has one of them among its first 16, at twice the
  // best's time, because the fastest stands last.
  std::vector<double> us, order;
  for (int n = 0; n < 40; ++n) {
    us.push_back(n == 0 ? 1 : n + 1);
    order.push_back(n == 0 ? 40 : n);
  }
  const RankQuality q = rank_quality(order, us);
  CHECK(q.hits == 1);
  CHECK(q.reached == Approx(0.5));
  // One rank of 40 is wrong by 39, 39 others by one: 1 - 6 * (39^2 + 39) / (40 * (40^2 - 1)).
  CHECK(q.rho == Approx(1 - 6.0 * (39 * 39 + 39) / (40.0 * 1599)));
}

namespace {

/// Learns of the session's trials by the knobs alone, in place of lowered programs.
class KnobModel : public ForecastModel {
 public:
  std::vector<Correction> correct(const std::vector<SpacePoint>& points) override {
    std::vector<std::vector<float>> rows;
    for (const SpacePoint& at : points) rows.push_back(row_of(at));
    std::vector<const std::vector<float>*> features;
    for (const auto& row : rows) features.push_back(&row);
    const std::vector<double> said = session_.predict(features);
    std::vector<Correction> out;
    for (double s : said) out.push_back({0, s});
    return out;
  }
  void fit(const std::vector<TrialRest>& trials) override {
    std::vector<RankerSample> samples;
    for (const TrialRest& t : trials) samples.push_back({row_of(t.at), t.left, t.weight});
    session_ = Ranker::fit_session(samples);
    ++fits;
  }
  int fits = 0;

 private:
  static std::vector<float> row_of(const SpacePoint& at) {
    return {static_cast<float>(std::log2(at.point.number("a"))),
            static_cast<float>(std::log2(at.point.number("b"))),
            static_cast<float>(at.point.tile("t")[0])};
  }
  Ranker session_;
};

double cost(const SpacePoint& at) {
  const auto away = [](double x, double best) { return std::abs(std::log2(x / best)); };
  return 100 * std::exp2(away(static_cast<double>(at.point.number("a")), 32) +
                         away(static_cast<double>(at.point.number("b")), 4)) +
         static_cast<double>(at.point.tile("t")[0]);
}

/// A bad draft: it takes small `a` for fast.
std::vector<Forecast> wrong(const std::vector<SpacePoint>& points) {
  std::vector<Forecast> out;
  for (const SpacePoint& at : points)
    out.push_back({static_cast<double>(at.point.number("a")), ""});
  return out;
}

int trials_to_best(uint64_t seed, const std::shared_ptr<ForecastModel>& model) {
  const auto search = guided_search({sample_space()}, seed, wrong, model);
  for (int trial = 1;; ++trial) {
    const SpacePoint at = search->propose(1).at(0);
    if (cost(at) < 110) return trial;
    search->learn({{at, cost(at)}});
  }
}

}  // namespace

TEST_CASE("guided: a model of the trials mends a bad draft") {
  if (trees_are_missing()) return;
  int wins = 0, with = 0, without = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto model = std::make_shared<KnobModel>();
    const int a = trials_to_best(seed, model), b = trials_to_best(seed, nullptr);
    wins += a < b;
    with += a;
    without += b;
    CHECK(a == trials_to_best(seed, std::make_shared<KnobModel>()));  // deterministic
    CHECK(model->fits <= a / 8);
  }
  INFO(with << " trials with, " << without << " without");
  CHECK(wins >= 15);
  CHECK(with < without);
}

TEST_CASE("guided: what a model says of all points alike changes no order") {
  struct Pessimist : ForecastModel {
    std::vector<Correction> correct(const std::vector<SpacePoint>& points) override {
      asked += points.size();
      return std::vector<Correction>(points.size(), Correction{0.5, 0});
    }
    void fit(const std::vector<TrialRest>&) override {}
    size_t asked = 0;
  };
  const auto model = std::make_shared<Pessimist>();
  const auto with = guided_search({sample_space()}, 5, wrong, model);
  const auto without = guided_search({sample_space()}, 5, wrong);
  CHECK(with->propose(24) == without->propose(24));
  CHECK(model->asked == kRankerHead);
}

TEST_CASE("guided: what a model knew is believed as far as trials bear it out") {
  // To the draft `a` does not matter. One model knows of `a` what is true, the other the contrary.
  struct Knower : ForecastModel {
    explicit Knower(double right) : right(right) {}
    std::vector<Correction> correct(const std::vector<SpacePoint>& points) override {
      std::vector<Correction> out;
      for (const SpacePoint& at : points)
        out.push_back({right * std::log2(static_cast<double>(at.point.number("a"))), 0});
      return out;
    }
    void fit(const std::vector<TrialRest>&) override {}
    double right;
  };
  const auto equal = [](const std::vector<SpacePoint>& points) {
    std::vector<Forecast> out(points.size());
    for (size_t n = 0; n < points.size(); ++n)
      out[n].us = 1000 + static_cast<double>(points[n].point.number("b"));
    return out;
  };
  const auto small_a = [&](double right) {
    const auto search = guided_search({sample_space()}, 5, equal, std::make_shared<Knower>(right));
    const auto us = [](const SpacePoint& at) { return static_cast<double>(at.point.number("a")); };
    const auto learn = [&](const std::vector<SpacePoint>& points) {
      for (const SpacePoint& at : points) search->learn({{at, us(at)}});
    };
    int64_t first = 0;
    const std::vector<SpacePoint> start = search->propose(12);
    for (const SpacePoint& at : start) first += at.point.number("a") <= 4;
    learn(start);
    learn(search->propose(8));
    int64_t later = 0;
    for (const SpacePoint& at : search->propose(12)) later += at.point.number("a") <= 8;
    return std::pair(first, later);
  };
  CHECK(small_a(1).first >= 8);    // believed at once
  CHECK(small_a(-1).first <= 3);   // at first, too
  CHECK(small_a(-1).second >= 8);  // until the trials say otherwise
}

TEST_CASE("the shipped ranker is one of this version and says something") {
  if (trees_are_missing()) return;
  const LoadedRanker shipped = load_ranker(TENON_SOURCE_DIR "/tuning_logs/shipped/ranker.json");
  CHECK(shipped.warning == "");
  REQUIRE(shipped.ranker.knows());
  const RankerFeatures tiled = ranker_features(tiled_product().program(), machine(), 1);
  CHECK(shipped.ranker.predict({&tiled.values}).at(0) != 0);
}

TEST_CASE("tuning: a ranker's file that is named must be there") {
  if (trees_are_missing()) return;
  TuneOptions options;
  options.log = (std::filesystem::temp_directory_path() / "tenon-ranker-log.jsonl").string();
  options.ranker = "no/such/ranker.json";
  CHECK_THROWS_WITH(TuneSession(row_sums(), options, std::make_unique<FakeRunner>()),
                    Contains("there is no ranker no/such/ranker.json"));
}
