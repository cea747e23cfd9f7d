#pragma once
#include <filesystem>
#include <string>

namespace tenon_onnx {
class ModelProto;
}

namespace tenon {

/// The bytes of a regular file. UserError: missing, not a file, unreadable, larger than protobuf's
/// 2 GB.
std::string read_file_bytes(const std::filesystem::path& path, const std::string& what);

/// Decodes a model. `name` stands in messages. UserError when the bytes are no ONNX model.
void decode_model(const std::string& bytes, const std::string& name, tenon_onnx::ModelProto& model);

}  // namespace tenon
