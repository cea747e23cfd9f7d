#pragma once
#include <tenon/graph/graph.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tenon_onnx {
class ModelProto;
}

namespace tenon {

/// What a model asks for, checked against the operator table ahead of everything else.
struct Survey {
  int64_t opset = 0;
  std::vector<Node>
      nodes;  // in file order, attributes with defaults filled in, no inputs and outputs yet
};

/// Throws one UserError that lists all that is not supported, each with its node's name.
Survey survey_model(const tenon_onnx::ModelProto& model, const std::string& name,
                    const std::filesystem::path& folder);

}  // namespace tenon
