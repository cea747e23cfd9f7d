// libxsmm: one kernel made for exactly this product, called through its pointer; the products of a
// batch are shared out among the threads, a single one runs on one.
#include <libxsmm.h>

#include <algorithm>

#include "server.h"

namespace {

using namespace perf;

constexpr int64_t kMostFlops = int64_t{2} * 256 * 256 * 256;  // one kernel has no cache blocking

std::vector<Variant> matmul(const Case& c) {
  const int64_t m = c.number("m"), n = c.number("n"), k = c.number("k"), batch = c.batch();
  if (!c.word("epilogue").empty()) throw NotThere("libxsmm's small kernels have no such epilogue");
  if (2 * m * n * k > kMostFlops) throw NotThere("too large for one kernel without cache blocking");
  // Column major, so C' = B' A'.
  const libxsmm_blasint rows = static_cast<libxsmm_blasint>(n), columns = static_cast<int>(m),
                        depth = static_cast<int>(k);
  const float one = 1, zero = 0;
  const int flags = LIBXSMM_GEMM_FLAG_NONE;
  const libxsmm_smmfunction f =
      libxsmm_smmdispatch(rows, columns, depth, &rows, &depth, &rows, &one, &zero, &flags, nullptr);
  if (!f) throw NotThere("libxsmm makes no kernel for this shape");
  const float *a = c.inputs[0].as<float>(), *b = c.inputs[1].as<float>();
  float* out = c.output.as<float>();
  const auto one_of = [=](int64_t i) { f(b + i * k * n, a + i * m * k, out + i * m * n); };
  const int threads = static_cast<int>(std::min<int64_t>(c.threads, batch));
  const auto call = [=] {
    if (threads == 1) {
      for (int64_t i = 0; i < batch; ++i) one_of(i);
      return;
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t i = 0; i < batch; ++i) one_of(i);
  };
  return {{"xsmm", {"plain"}, call, {c.inputs[0], c.inputs[1], c.output}}};
}

}  // namespace

int main() { return serve({{{"matmul", matmul}}}); }
