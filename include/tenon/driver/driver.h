#pragma once
#include <tenon/autotvm/tune.h>
#include <tenon/graph/network.h>

#include <filesystem>

namespace tenon {

/// Imports a network: passes, groups and tasks, kernels on the best records found (else their default schedule),
/// compiled and ready to run. UserError as load_onnx and bind_shapes.
Network load(const std::filesystem::path& model, const NetworkOptions& options = {});

/// Tunes the network's kernels, most important first, within one budget, then compiles the winners. What stands in
/// the log already counts: nothing is measured twice.
void tune(Network& network, const TuneOptions& options);

/// Parses "matmul m=64 n=64" or "model.onnx".
bool is_model_file(const std::string& word);

}  // namespace tenon
