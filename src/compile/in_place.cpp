#include "compile/in_place.h"

#include <tenon/ir/visit.h>

#include <algorithm>

#include "schedule/dependence.h"

namespace tenon {
namespace {

bool same_memory(const BufferNode& a, const BufferNode& b) {
  return a.dtype == b.dtype && a.layout.empty() && b.layout.empty() &&
         std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(),
                    structural_equal);
}

/// The stage reads the buffer, if at all, at the element that it writes.
bool reads_only_its_element(const Stage& stage, const Buffer& buffer) {
  bool good = true;
  for (const Expr& value : stage.values)
    walk(value, [&](const Expr& e) {
      const Load* l = e.as<Load>();
      if (l && l->buffer == buffer)
        good = good && std::equal(l->indices.begin(), l->indices.end(), stage.indices.begin(),
                                  stage.indices.end(), structural_equal);
      return good;
    });
  for (const Expr& index : stage.indices)
    walk(index, [&](const Expr& e) {
      const Load* l = e.as<Load>();
      good = good && !(l && l->buffer == buffer);
      return good;
    });
  return good;
}

/// Each element is written by one iteration only.
bool writes_once(const StagePath& path, const Buffer& output) {
  for (size_t at = 0; at < path.loops.size(); ++at)
    if (conflict_on_buffer(path, at, output)) return false;
  return true;
}

bool may_share(const std::vector<StagePath>& stages, const Buffer& input, const Buffer& output) {
  const StagePath* writer = nullptr;
  for (const StagePath& path : stages) {
    const Stage& stage = *path.stage;
    if (reads(stage, output)) return false;
    if (!writes(stage, output)) {
      if (reads(stage, input)) return false;
      continue;
    }
    if (writer || stage.combiner || stage.outputs.size() != 1) return false;
    writer = &path;
  }
  return writer && reads_only_its_element(*writer->stage, input) && writes_once(*writer, output);
}

}  // namespace

std::vector<InPlacePair> in_place_pairs(const Program& loop_tree) {
  const std::vector<StagePath> stages = stage_paths(loop_tree.body);
  std::vector<InPlacePair> pairs;
  for (size_t out = 0; out < loop_tree.params.size(); ++out) {
    const Param& output = loop_tree.params[out];
    if (output.role != ParamRole::output) continue;
    for (size_t in = 0; in < loop_tree.params.size(); ++in) {
      const Param& input = loop_tree.params[in];
      if (input.role != ParamRole::input || !same_memory(*input.buffer, *output.buffer)) continue;
      if (may_share(stages, input.buffer, output.buffer)) pairs.push_back({in, out});
    }
  }
  return pairs;
}

}  // namespace tenon
