#include <tenon/runtime/lent_pool.h>

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <climits>

#include <tenon/runtime/thread_pool.h>
#include <tenon/support/error.h>

namespace tenon {
namespace {

constexpr int kMostPieces = 1024, kNone = INT_MIN;

/// What a lent pool has run of one loop.
struct Progress {
  int pieces = 0;
  std::array<std::atomic<uint64_t>, kMostPieces / 64> begun = {};
  std::atomic<int> ended{0};
  std::atomic<int> wrong{kNone};  ///< a piece asked for that is none or had begun

  bool begin(int k) {
    if (k >= 0 && k < pieces) {
      const uint64_t bit = uint64_t{1} << (k % 64);
      if (!(begun[static_cast<size_t>(k / 64)].fetch_or(bit, std::memory_order_relaxed) & bit))
        return true;
    }
    wrong.store(k, std::memory_order_relaxed);
    return false;
  }
};

std::exception_ptr failure_of(const Progress& progress, const std::string& thrown) {
  const int wrong = progress.wrong.load(), ended = progress.ended.load();
  std::string what;
  if (!thrown.empty())
    what = "its function threw: " + thrown;
  else if (wrong >= 0 && wrong < progress.pieces)
    what = fmt::format("piece {} was run twice", wrong);
  else if (ended < progress.pieces)
    what = fmt::format("it returned when {} of {} pieces had ended", ended, progress.pieces);
  else if (wrong != kNone)
    what = fmt::format("piece {} was run, of {}", wrong, progress.pieces);
  else
    return nullptr;
  return std::make_exception_ptr(
      UserError("lent pool: " + what + "\n  it must call task(k) once for each k in [0, n) and " +
                "return when all have ended; the results of this call are not complete"));
}

}  // namespace

std::exception_ptr ThreadPool::run_lent(const Job& job) noexcept {
  struct Piece {
    ThreadPool& pool;
    const Job& job;
    Progress progress;
  } piece{*this, job, {}};
  piece.progress.pieces = static_cast<int>(std::min<int64_t>(job.count, workers_));
  const LentTask task = {[](void* argument, int k) {
                           Piece& p = *static_cast<Piece*>(argument);
                           if (!p.progress.begin(k)) return;
                           const uint32_t own = _mm_getcsr();
                           _mm_setcsr(p.job.mxcsr);
                           p.pool.run_range(p.job, k);
                           _mm_setcsr(own);
                           p.progress.ended.fetch_add(1, std::memory_order_release);
                         },
                         &piece};
  try {
    lent_->run(lent_->context, piece.progress.pieces, task);
  } catch (const std::exception& e) {
    return failure_of(piece.progress, e.what());
  } catch (...) {
    return failure_of(piece.progress, "no std::exception");
  }
  return failure_of(piece.progress, "");
}

}  // namespace tenon
