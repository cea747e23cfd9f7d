#include "graph/onnx/read_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <tenon/support/error.h>

#include <fstream>
#include <limits>
#include <system_error>

#include "tenon_onnx.pb.h"

namespace tenon {

namespace {

constexpr uintmax_t kMaxFileBytes = std::numeric_limits<int32_t>::max();  // protobuf's own limit
constexpr int kMaxNesting = 32;  // a model without subgraphs nests its messages 7 deep

}  // namespace

std::string read_file_bytes(const std::filesystem::path& path, const std::string& what) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    throw UserError(fmt::format("cannot read {} \"{}\": no such file", what, path.string()));
  if (!std::filesystem::is_regular_file(status))
    throw UserError(fmt::format("cannot read {} \"{}\": not a regular file", what, path.string()));
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error)
    throw UserError(fmt::format("cannot read {} \"{}\": {}", what, path.string(), error.message()));
  if (size > kMaxFileBytes)
    throw UserError(fmt::format(
        "cannot read {} \"{}\": it has {} bytes, one protobuf message holds at most {}\n"
        "  try: save the model with its weights as external data",
        what, path.string(), size, kMaxFileBytes));
  std::string bytes(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(size)))
    throw UserError(fmt::format("cannot read {} \"{}\": reading failed after {} of {} bytes", what,
                                path.string(), file.gcount(), size));
  return bytes;
}

void decode_model(const std::string& bytes, const std::string& name,
                  tenon_onnx::ModelProto& model) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(kMaxNesting);
  const bool decoded = model.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  if (!decoded || !model.has_graph() || !model.has_ir_version())
    throw UserError(fmt::format(
        "\"{}\" is not an ONNX model: {} ({} bytes)\n  try: check that the file is complete", name,
        decoded ? "it has no graph or no ir_version"
                : "its protobuf encoding is damaged or cut off",
        bytes.size()));
}

}  // namespace tenon
