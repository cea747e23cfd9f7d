#include <tenon/ir/visit.h>

#include "kernels/nests.h"
#include "kernels/templates.h"

namespace tenon {

/// a = f(x); b = g(a)   ->   b = g(f(x)) in vectors along the last axis, the outer loops in
/// parallel
void map_template(Schedule& s, Knobs& knobs) {
  const int64_t vectors = knobs.pick("vectors", {1, 2, 4, 8}, 2);
  const std::vector<std::string> all = s.stages();
  for (const std::string& stage : all)
    if (stage != all.back()) s.try_apply(ComputeInline{stage});
  for (const std::string& stage : s.stages()) schedule_root_map(s, stage, vectors);
}

}  // namespace tenon
