#include "graph/onnx/read_tensor.h"

#include <tenon/graph/onnx.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <system_error>

#include "graph/onnx/read_model.h"
#include "tenon_onnx.pb.h"

namespace tenon {

namespace {

using tenon_onnx::TensorProto;
namespace fs = std::filesystem;

struct TypeRow {
  int onnx;
  const char* name;
  std::optional<DType> type;
};

const TypeRow kTypes[] = {
    {TensorProto::UNDEFINED, "undefined", {}},
    {TensorProto::FLOAT, "float", f32},
    {TensorProto::UINT8, "uint8", u8},
    {TensorProto::INT8, "int8", i8},
    {TensorProto::UINT16, "uint16", u16},
    {TensorProto::INT16, "int16", i16},
    {TensorProto::INT32, "int32", i32},
    {TensorProto::INT64, "int64", i64},
    {TensorProto::STRING, "string", {}},
    {TensorProto::BOOL, "bool", boolean},
    {TensorProto::FLOAT16, "float16", f16},
    {TensorProto::DOUBLE, "double", f64},
    {TensorProto::UINT32, "uint32", u32},
    {TensorProto::UINT64, "uint64", u64},
    {TensorProto::COMPLEX64, "complex64", {}},
    {TensorProto::COMPLEX128, "complex128", {}},
    {TensorProto::BFLOAT16, "bfloat16", bf16},
    {TensorProto::FLOAT8E4M3FN, "float8e4m3fn", {}},
    {TensorProto::FLOAT8E4M3FNUZ, "float8e4m3fnuz", {}},
    {TensorProto::FLOAT8E5M2, "float8e5m2", {}},
    {TensorProto::FLOAT8E5M2FNUZ, "float8e5m2fnuz", {}},
    {TensorProto::UINT4, "uint4", {}},
    {TensorProto::INT4, "int4", {}},
    {TensorProto::FLOAT4E2M1, "float4e2m1", {}},
    {TensorProto::FLOAT8E8M0, "float8e8m0", {}},
    {TensorProto::UINT2, "uint2", {}},
    {TensorProto::INT2, "int2", {}},
};

[[noreturn]] void fail(const std::string& where, const std::string& rule) {
  throw UserError(fmt::format("model error in {}: {}", where, rule));
}

/// Product of the dimensions; refuses negative ones and totals whose bytes overflow.
int64_t count_elements(const TensorProto& tensor, DType type, const std::string& where) {
  const int64_t limit = std::numeric_limits<int64_t>::max() / byte_size(type);
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : tensor.dims()) {
    if (dim < 0) fail(where, fmt::format("dimension {} is negative", dim));
    if (dim == 0) empty = true;
    if (dim > 0 && count > limit / dim)
      fail(where, fmt::format("shape {} has more elements than memory can hold",
                              shape_text({tensor.dims().begin(), tensor.dims().end()})));
    count *= dim == 0 ? 1 : dim;
  }
  return empty ? 0 : count;
}

[[noreturn]] void fail_size(const TensorProto& tensor, const std::string& where, int64_t needed,
                            int64_t stored, const char* unit) {
  fail(where, fmt::format("shape {} of {} needs {} {}, {} are stored",
                          shape_text({tensor.dims().begin(), tensor.dims().end()}),
                          onnx_type_name(tensor.data_type()), needed, unit, stored));
}

/// Booleans are 0 or 1 in memory whatever byte the file has.
void normalise_booleans(Array& array) {
  if (array.dtype() != boolean) return;
  auto* bytes = array.data<uint8_t>();
  for (int64_t i = 0; i < array.size(); ++i) bytes[i] = bytes[i] != 0;
}

Array array_from_bytes(const TensorProto& tensor, DType type, const std::string& where,
                       const char* bytes, int64_t stored) {
  const int64_t needed = count_elements(tensor, type, where) * byte_size(type);
  if (stored != needed) fail_size(tensor, where, needed, stored, "bytes");
  Array array = Array::empty(type, {tensor.dims().begin(), tensor.dims().end()});
  if (needed > 0) std::memcpy(array.raw(), bytes, static_cast<size_t>(needed));
  normalise_booleans(array);
  return array;
}

/// Copies a typed field whose entries are narrowed to the `Stored` element without loss.
template <class Stored, class Field>
Array array_from_field(const TensorProto& tensor, DType type, const std::string& where,
                       const Field& field) {
  const int64_t count = count_elements(tensor, type, where);
  if (count != field.size()) fail_size(tensor, where, count, field.size(), "elements");
  Array array = Array::empty(type, {tensor.dims().begin(), tensor.dims().end()});
  auto* out = array.data<Stored>();
  for (int i = 0; i < field.size(); ++i) {
    const auto value = static_cast<Stored>(field[i]);
    if constexpr (std::is_integral_v<Stored>)
      if (static_cast<typename Field::value_type>(value) != field[i])
        fail(where, fmt::format("element {} is {}, which is no {}", i, field[i],
                                onnx_type_name(tensor.data_type())));
    out[i] = value;
  }
  normalise_booleans(array);
  return array;
}

Array array_from_typed_field(const TensorProto& t, DType type, const std::string& where) {
  switch (type) {
    case DType::f32:
      return array_from_field<float>(t, type, where, t.float_data());
    case DType::f64:
      return array_from_field<double>(t, type, where, t.double_data());
    case DType::i64:
      return array_from_field<int64_t>(t, type, where, t.int64_data());
    case DType::u64:
      return array_from_field<uint64_t>(t, type, where, t.uint64_data());
    case DType::u32:
      return array_from_field<uint32_t>(t, type, where, t.uint64_data());
    case DType::i32:
      return array_from_field<int32_t>(t, type, where, t.int32_data());
    case DType::i16:
      return array_from_field<int16_t>(t, type, where, t.int32_data());
    case DType::i8:
      return array_from_field<int8_t>(t, type, where, t.int32_data());
    case DType::u8:
    case DType::boolean:
      return array_from_field<uint8_t>(t, type, where, t.int32_data());
    case DType::u16:
    case DType::f16:  // 16-bit floats are stored as their bits
    case DType::bf16:
      return array_from_field<uint16_t>(t, type, where, t.int32_data());
  }
  fail(where, "its element type has no typed field");
}

struct ExternalEntry {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

ExternalEntry external_entry(const TensorProto& tensor, const std::string& where) {
  ExternalEntry entry;
  for (const auto& pair : tensor.external_data()) {
    if (pair.key() == "location") entry.location = pair.value();
    if (pair.key() != "offset" && pair.key() != "length") continue;
    const std::optional<int64_t> number = parse_int(pair.value());
    if (!number || *number < 0)
      fail(where, fmt::format("external data has {} \"{}\"; it must be a count of bytes",
                              pair.key(), pair.value()));
    if (pair.key() == "offset") entry.offset = *number;
    if (pair.key() == "length") entry.length = *number;
  }
  if (entry.location.empty()) fail(where, "external data names no file (key \"location\")");
  return entry;
}

/// The file inside `folder`, with links followed: a model must not read what lies elsewhere.
fs::path external_path(const ExternalEntry& entry, const std::string& where,
                       const fs::path& folder) {
  if (folder.empty())
    fail(where, fmt::format("it refers to the file \"{}\"; a tensor without a folder of its own "
                            "cannot",
                            entry.location));
  std::error_code error;
  const fs::path home = fs::canonical(folder, error);
  const fs::path path = fs::weakly_canonical(home / entry.location, error);
  const fs::path relative = path.lexically_relative(home);
  if (error || fs::path(entry.location).is_absolute() || relative.empty() ||
      *relative.begin() == "..")
    fail(where, fmt::format("external data \"{}\" lies outside of the model's folder \"{}\"",
                            entry.location, folder.string()));
  return path;
}

Array array_from_external(const TensorProto& tensor, DType type, const std::string& where,
                          const fs::path& folder) {
  const ExternalEntry entry = external_entry(tensor, where);
  const fs::path path = external_path(entry, where, folder);
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    fail(where, fmt::format("its external data file \"{}\" does not exist in \"{}\"",
                            entry.location, folder.string()));
  const auto file_bytes = static_cast<int64_t>(fs::file_size(path, error));
  const int64_t needed = count_elements(tensor, type, where) * byte_size(type);
  if (entry.length && *entry.length != needed)
    fail_size(tensor, where, needed, *entry.length, "bytes");
  if (error || entry.offset > file_bytes || needed > file_bytes - entry.offset)
    fail(where, fmt::format("it needs {} bytes at offset {} of \"{}\", which has {}", needed,
                            entry.offset, entry.location, file_bytes));
  Array array = Array::empty(type, {tensor.dims().begin(), tensor.dims().end()});
  std::ifstream file(path, std::ios::binary);
  file.seekg(entry.offset);
  if (!file.read(static_cast<char*>(array.raw()), needed))
    fail(where, fmt::format("reading \"{}\" failed", entry.location));
  normalise_booleans(array);
  return array;
}

}  // namespace

std::optional<DType> dtype_from_onnx(int onnx_type) {
  for (const TypeRow& row : kTypes)
    if (row.onnx == onnx_type) return row.type;
  return std::nullopt;
}

std::string onnx_type_name(int onnx_type) {
  for (const TypeRow& row : kTypes)
    if (row.onnx == onnx_type) return row.name;
  return fmt::format("type {}", onnx_type);
}

Array array_from_tensor(const TensorProto& tensor, const std::string& where,
                        const fs::path& folder) {
  const std::optional<DType> type = dtype_from_onnx(tensor.data_type());
  if (!type)
    fail(where,
         fmt::format("element type {} is not supported", onnx_type_name(tensor.data_type())));
  if (tensor.has_segment()) fail(where, "tensors split in segments are not supported");
  if (tensor.data_location() == TensorProto::EXTERNAL)
    return array_from_external(tensor, *type, where, folder);
  if (tensor.has_raw_data())
    return array_from_bytes(tensor, *type, where, tensor.raw_data().data(),
                            static_cast<int64_t>(tensor.raw_data().size()));
  return array_from_typed_field(tensor, *type, where);
}

Array load_tensor_proto(const fs::path& path) {
  const std::string bytes = read_file_bytes(path, "tensor file");
  TensorProto tensor;
  if (!tensor.ParseFromString(bytes) || !tensor.has_data_type())
    throw UserError(
        fmt::format("\"{}\" is not an ONNX tensor ({} bytes)\n  try: check that the "
                    "file is complete",
                    path.string(), bytes.size()));
  return array_from_tensor(tensor, fmt::format("tensor file \"{}\"", path.string()), {});
}

}  // namespace tenon
