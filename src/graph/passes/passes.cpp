#include "graph/passes/passes.h"

#include <tenon/support/error.h>
#include <tenon/support/log.h>
#include <tenon/support/text.h>

#include <algorithm>

namespace tenon {

namespace {

constexpr GraphPass kPasses[] = {
    {"fold_constants", fold_constants},        // weights transposed, reshaped, cast by the exporter
    {"remove_identities", remove_identities},  // so that chains are not interrupted
    {"fold_affine", fold_affine},              // batch normalisation into convolution weights
    {"lower_affine", lower_affine},            // what is left of it
    {"merge_common_nodes", merge_common_nodes},  // after folding: more nodes are equal
    {"remove_dead_nodes", remove_dead_nodes},
};

}  // namespace

std::span<const GraphPass> graph_passes() { return kPasses; }

Graph simplify_graph(Graph graph, const Evaluator& evaluate, const SimplifyOptions& options) {
  std::vector<std::string> known;
  for (const GraphPass& pass : kPasses) known.push_back(pass.name);
  for (const std::string& name : options.skip)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UserError(
          fmt::format("there is no graph pass \"{}\"; the passes: {}", name, join(known)));
  for (const GraphPass& pass : kPasses) {
    if (std::find(options.skip.begin(), options.skip.end(), pass.name) != options.skip.end())
      continue;
    graph = pass.run(std::move(graph), evaluate);
    if (options.verify) verify_graph(graph);
    log_line(2, std::string("graph/") + pass.name, fmt::format("{} nodes", graph.nodes.size()));
    if (log_level() >= 3) log_line(3, std::string("graph/") + pass.name, text(graph));
  }
  return graph;
}

}  // namespace tenon
