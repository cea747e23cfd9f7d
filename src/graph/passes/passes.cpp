#include "graph/passes/passes.h"

#include <tenon/support/error.h>
#include <tenon/support/log.h>
#include <tenon/support/text.h>

#include <algorithm>

namespace tenon {

namespace {

constexpr const char *kBlockChannels = "block_channels", *kUseWinograd = "use_winograd";

constexpr GraphPass kPasses[] = {
    {"fold_constants", fold_constants},        // weights transposed, reshaped, cast by the exporter
    {"remove_identities", remove_identities},  // so that chains are not interrupted
    {"fold_affine", fold_affine},              // batch normalisation into convolution weights
    {"lower_affine", lower_affine},            // what is left of it
    {"merge_common_nodes", merge_common_nodes},  // after folding: more nodes are equal
    {"remove_dead_nodes", remove_dead_nodes},
    {"fuse_operators", fuse_operators},  // last: a dead reader would hold a chain apart
};

}  // namespace

std::span<const GraphPass> graph_passes() { return kPasses; }

Graph simplify_graph(Graph graph, const Evaluator& evaluate, const SimplifyOptions& options) {
  std::vector<std::string> known;
  for (const GraphPass& pass : kPasses) known.push_back(pass.name);
  known.insert(known.end(), {kBlockChannels, kUseWinograd});
  for (const std::string& name : options.skip)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UserError(
          fmt::format("there is no graph pass \"{}\"; the passes: {}", name, join(known)));
  const auto skipped = [&](const std::string& name) {
    return std::find(options.skip.begin(), options.skip.end(), name) != options.skip.end();
  };
  const auto finish = [&](const std::string& name) {
    if (options.verify) verify_graph(graph);
    log_line(2, "graph/" + name, fmt::format("{} nodes", graph.nodes.size()));
    if (log_level() >= 3) log_line(3, "graph/" + name, text(graph));
  };
  for (const GraphPass& pass : kPasses) {
    if (skipped(pass.name)) continue;
    graph = pass.run(std::move(graph), evaluate);
    finish(pass.name);
  }
  if (options.block < 2 || skipped(kBlockChannels)) return graph;
  // Constants in blocks, and transformed weights, are computed now.
  const auto fold = [&](Graph changed) {
    return remove_dead_nodes(fold_constants(std::move(changed), evaluate), evaluate);
  };
  graph = fold(block_channels(std::move(graph), options.block));
  finish(kBlockChannels);
  if (!options.allow_winograd || skipped(kUseWinograd)) return graph;
  graph = fold(use_winograd(std::move(graph)));
  finish(kUseWinograd);
  return graph;
}

}  // namespace tenon
