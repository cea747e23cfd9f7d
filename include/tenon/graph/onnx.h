#pragma once
#include <tenon/graph/graph.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tenon {

/// Reads an ONNX model file. The graph's nodes keep ONNX's operator names and carry the model's
/// operator set in Graph::opset; resolve_operators makes them canonical once input shapes are
/// bound.
///
/// Throws UserError: a file that is missing, not a model or damaged; and, all in one list with node
/// names, whatever the model uses that is not supported (operators, domains, attributes, element
/// types, subgraphs, functions). External tensor data is read from files inside the model's own
/// folder only. Memory is proportional to the size of the files.
Graph load_onnx(const std::filesystem::path& path);

/// The same from bytes; `name` stands in messages, `folder` is where external data may lie (empty:
/// nowhere).
Graph parse_onnx(const std::string& bytes, const std::string& name,
                 const std::filesystem::path& folder = {});

/// Reads a file with one serialised TensorProto (the onnx package's test data). Throws UserError.
Array load_tensor_proto(const std::filesystem::path& path);

}  // namespace tenon
