#include "autotvm/model/boosted_trees.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <tenon/support/error.h>
#include <xgboost/c_api.h>

#include <cstdint>

namespace tenon {
namespace {

/// Its functions, by the names of xgboost/c_api.h.
struct Library {
  std::string missing;  // why it could not be opened
  decltype(&XGBGetLastError) last_error = nullptr;
  decltype(&XGDMatrixCreateFromDense) matrix = nullptr;
  decltype(&XGDMatrixSetFloatInfo) set_floats = nullptr;
  decltype(&XGDMatrixFree) free_matrix = nullptr;
  decltype(&XGBoosterCreate) create = nullptr;
  decltype(&XGBoosterSetParam) set = nullptr;
  decltype(&XGBoosterUpdateOneIter) update = nullptr;
  decltype(&XGBoosterPredict) predict = nullptr;
  decltype(&XGBoosterSaveModelToBuffer) save = nullptr;
  decltype(&XGBoosterLoadModelFromBuffer) load = nullptr;
  decltype(&XGBoosterGetNumFeature) columns = nullptr;
  decltype(&XGBoosterFree) free = nullptr;
  // OpenMP's, of the calling thread; null where the library does without it.
  int (*threads)() = nullptr;
  void (*set_threads)(int) = nullptr;
};

template <class F>
void find(void* handle, const char* name, F& function, std::string& missing) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  if (!function && missing.empty())
    missing = fmt::format("libxgboost has no {}: it is older than 1.7", name);
}

Library open_library() {
  Library l;
  void* handle = nullptr;
  for (const char* name : {"libxgboost.so.0", "libxgboost.so"})
    if (!handle) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    l.missing = "libxgboost is not installed\n  try: apt install libxgboost0";
    return l;
  }
  find(handle, "XGBGetLastError", l.last_error, l.missing);
  find(handle, "XGDMatrixCreateFromDense", l.matrix, l.missing);
  find(handle, "XGDMatrixSetFloatInfo", l.set_floats, l.missing);
  find(handle, "XGDMatrixFree", l.free_matrix, l.missing);
  find(handle, "XGBoosterCreate", l.create, l.missing);
  find(handle, "XGBoosterSetParam", l.set, l.missing);
  find(handle, "XGBoosterUpdateOneIter", l.update, l.missing);
  find(handle, "XGBoosterPredict", l.predict, l.missing);
  find(handle, "XGBoosterSaveModelToBuffer", l.save, l.missing);
  find(handle, "XGBoosterLoadModelFromBuffer", l.load, l.missing);
  find(handle, "XGBoosterGetNumFeature", l.columns, l.missing);
  find(handle, "XGBoosterFree", l.free, l.missing);
  std::string without;
  find(handle, "omp_get_max_threads", l.threads, without);
  find(handle, "omp_set_num_threads", l.set_threads, without);
  return l;
}

const Library& opened() {
  static const Library kLibrary = open_library();
  return kLibrary;
}

const Library& library() {
  if (!opened().missing.empty()) throw UserError(opened().missing);
  return opened();
}

/// The first line of what XGBoost says went wrong: a stack follows.
std::string last_error() {
  const std::string text = library().last_error();
  return text.substr(0, text.find('\n'));
}

void check(int rc) {
  if (rc != 0) throw InternalError("internal error: XGBoost: " + last_error());
}

/// While it lives XGBoost starts no threads, also where it does not heed `nthread` (reading a
/// model): a process that has some must not fork, and the tuner forks compilers.
class OneThread {
 public:
  OneThread() : threads_(library().threads ? library().threads() : 0) { set(1); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { set(threads_); }

 private:
  static void set(int threads) {
    if (library().set_threads && threads > 0) library().set_threads(threads);
  }
  int threads_;
};

/// Rows as XGBoost keeps them.
class Matrix {
 public:
  explicit Matrix(const TreeRows& rows) {
    const std::string array =
        fmt::format(R"({{"data":[{},true],"shape":[{},{}],"typestr":"<f4","version":3}})",
                    reinterpret_cast<uintptr_t>(rows.values.data()), rows.count(), rows.columns);
    check(library().matrix(array.c_str(), R"({"missing":NaN,"nthread":1})", &handle_));
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  ~Matrix() { library().free_matrix(handle_); }

  void set(const char* field, const std::vector<float>& values) {
    check(library().set_floats(handle_, field, values.data(), values.size()));
  }
  DMatrixHandle handle() const { return handle_; }

 private:
  DMatrixHandle handle_ = nullptr;
};

}  // namespace

void TreeRows::add(const std::vector<float>& row) {
  if (values.empty()) columns = row.size();
  TENON_CHECK(row.size() == columns && columns > 0, "a row of {} numbers among those of {}",
              row.size(), columns);
  values.insert(values.end(), row.begin(), row.end());
}

struct BoostedTrees::Booster {
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  Booster() {
    check(library().create(nullptr, 0, &handle));
    set("nthread", "1");
    set("verbosity", "0");
  }
  ~Booster() { library().free(handle); }
  void set(const char* name, const std::string& value) {
    check(library().set(handle, name, value.c_str()));
  }

  BoosterHandle handle = nullptr;
};

std::optional<std::string> BoostedTrees::missing() {
  if (opened().missing.empty()) return std::nullopt;
  return opened().missing;
}

BoostedTrees BoostedTrees::fit(const TreeRows& rows, const std::vector<float>& labels,
                               const std::vector<float>& weights, const TreeOptions& options) {
  TENON_CHECK(rows.count() > 0 && labels.size() == rows.count() && weights.size() == rows.count(),
              "{} rows with {} labels and {} weights", rows.count(), labels.size(), weights.size());
  const OneThread one;
  Matrix matrix(rows);
  matrix.set("label", labels);
  matrix.set("weight", weights);
  const auto booster = std::make_shared<Booster>();
  booster->set("num_feature", fmt::format("{}", rows.columns));
  booster->set("objective", "reg:squarederror");
  booster->set("base_score", "0");
  booster->set("tree_method", "hist");
  booster->set("max_bin", "64");
  booster->set("max_depth", fmt::format("{}", options.depth));
  booster->set("eta", fmt::format("{}", options.rate));
  booster->set("min_child_weight", fmt::format("{}", options.least_weight));
  booster->set("colsample_bynode", fmt::format("{}", options.columns));
  booster->set("seed", "1");
  for (int round = 0; round < options.rounds; ++round)
    check(library().update(booster->handle, round, matrix.handle()));
  return BoostedTrees(booster);
}

BoostedTrees BoostedTrees::from_json(const std::string& text, size_t columns) {
  const OneThread one;
  const auto booster = std::make_shared<Booster>();
  if (library().load(booster->handle, text.data(), text.size()) != 0)
    throw UserError("no trees of XGBoost: " + last_error());
  bst_ulong found = 0;
  check(library().columns(booster->handle, &found));
  if (found != columns)
    throw UserError(fmt::format("trees over {} columns, not {}", found, columns));
  booster->set("nthread", "1");
  return BoostedTrees(booster);
}

std::string BoostedTrees::to_json() const {
  const OneThread one;
  bst_ulong size = 0;
  const char* text = nullptr;
  check(library().save(booster_->handle, R"({"format":"json"})", &size, &text));
  return std::string(text, size);
}

std::vector<float> BoostedTrees::predict(const TreeRows& rows) const {
  if (rows.count() == 0) return {};
  const OneThread one;
  const Matrix matrix(rows);
  bst_ulong size = 0;
  const float* values = nullptr;
  check(library().predict(booster_->handle, matrix.handle(), 0, 0, 0, &size, &values));
  return std::vector<float>(values, values + size);
}

}  // namespace tenon
