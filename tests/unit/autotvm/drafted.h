#pragma once
#include <tenon/ir/ops.h>
#include <tenon/schedule/schedule.h>
#include <tenon/support/text.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "autotvm/model/draft.h"
#include "autotvm/model/forms.h"
#include "autotvm/model/steps.h"
#include "autotvm/model/traffic.h"

namespace tenon {

// What the tests of the draft share.

constexpr int64_t kMiB = 1 << 20;

/// 32 vector registers of 16 floats; caches of 32 KiB, 512 KiB and 64 MiB.
inline Target machine() {
  Target t;
  t.name = "x86-64/avx512";
  t.vector_bits = 512;
  t.vector_registers = 32;
  t.has_fma = t.has_masks = true;
  t.l1d_bytes = 32 << 10;
  t.l2_bytes = 512 << 10;
  t.l3_bytes = 64 * kMiB;
  return t;
}

inline Program product(int64_t m, int64_t n, int64_t k) {
  const Tensor a = input("A", f32, {m, k}), b = input("B", f32, {k, n});
  const Axis i("i", m), j("j", n), r("k", k);
  return make_program("matmul", {compute("C", {i, j}, sum(a(i, r) * b(r, j), r))});
}

/// for j.o, i.o: a tile of rows x columns in registers, `steps` of k written out.
inline Schedule tiled(const Program& p, int64_t rows, int64_t columns, int64_t steps,
                      bool pack = false) {
  Schedule s(p, machine());
  s.split("i", rows);
  s.split("j", columns);
  s.split("k", steps);
  s.reorder({"j.o", "i.o", "k.o", "k.i", "i.i", "j.i"});
  const CacheWriteStages made = s.cache_write("i.o", {.scope = Scope::reg});
  if (pack) {
    const std::string copy =
        s.pack("B", {{1, columns, 0}, {0, 1, 0}, {1, 1, columns}}, {.when = PackWhen::run_time});
    s[copy].vectorize(s[copy].loops().back(), {.tail = Tail::mask});
  }
  s["C"].vectorize("j.i", {.tail = Tail::mask}).unroll("i.i").unroll("k.i");
  s[made.store].vectorize("j", {.tail = Tail::mask}).unroll("i");
  return s;
}

inline Draft draft_of(const Schedule& s, int threads = 1) {
  return draft(s.program(), machine(), threads);
}

inline const NestStage& stage_of(const NestTree& tree, const std::string& name) {
  for (const NestStage& s : tree.stages)
    if (s.stage->name == name) return s;
  FAIL("no stage " << name);
  throw;
}

inline StageWork work_of(const NestTree& tree, const std::string& stage) {
  const NestStage& s = stage_of(tree, stage);
  return work_of(tree, s, sharing_of(tree, s, 1), machine());
}

inline double beyond(const NestTree& tree, const std::string& stage, const std::string& buffer,
                     size_t keeper) {
  Traffic traffic(tree, machine(), 1);
  double bytes = 0;
  for (const NestStage& s : tree.stages)
    for (const NestAccess& a : s.accesses) {
      const Moved moved = traffic.beyond(s, a, keeper);
      if (s.stage->name == stage &&
          tree.buffers[static_cast<size_t>(a.buffer)].node->name == buffer)
        bytes += moved.bytes;
    }
  return bytes;
}

}  // namespace tenon
