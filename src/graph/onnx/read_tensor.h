#pragma once
#include <tenon/runtime/array.h>

#include <filesystem>
#include <optional>
#include <string>

namespace tenon_onnx {
class TensorProto;
}

namespace tenon {

/// Tenon's type for an ONNX element type number; nothing when it has none.
std::optional<DType> dtype_from_onnx(int onnx_type);

/// The name an ONNX element type number has in the standard ("float8e4m3fn"), or "type 99".
std::string onnx_type_name(int onnx_type);

/// The tensor's elements, whichever encoding it uses. External data is looked up inside `folder`
/// (empty: refused). `where` names the tensor in messages. UserError: a type without counterpart, a
/// shape that does not fit the number of elements stored, an external file that is missing, too
/// short or outside of the folder.
Array array_from_tensor(const tenon_onnx::TensorProto& tensor, const std::string& where,
                        const std::filesystem::path& folder);

}  // namespace tenon
