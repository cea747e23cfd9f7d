#include "codegen/opencl/opencl.h"

#include <fmt/format.h>

#include "codegen/text/text.h"

namespace tenon {
namespace {

std::string type_name(DType t) {
  switch (t) {
    case DType::boolean:
    case DType::u8:
      return "uchar";
    case DType::i8:
      return "char";
    case DType::i16:
      return "short";
    case DType::i32:
      return "int";
    case DType::i64:
      return "long";
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return "ushort";
    case DType::u32:
      return "uint";
    case DType::u64:
      return "ulong";
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
  }
  return "";
}

Dialect make_dialect(bool has_f64) {
  Dialect d;
  d.prelude = "#pragma OPENCL FP_CONTRACT OFF\n";
  if (has_f64) d.prelude += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
  d.kernel = "__kernel void";
  d.function = "static inline ";
  d.global = "__global ";
  d.shared = "__local ";
  d.barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);";
  d.type = type_name;
  d.block_id = [](int axis) { return fmt::format("get_group_id({})", axis); };
  d.thread_id = [](int axis) { return fmt::format("get_local_id({})", axis); };
  d.bits_as = [](DType t) { return "as_" + type_name(t); };
  return d;
}

}  // namespace

std::string generate_opencl(const Program& flat, const Target& target) {
  const DeviceSource source = generate_text(flat, target, make_dialect(target.has_feature("fp64")));
  std::string head = fmt::format("// tenon device {}\n// tenon workspace {}\n", target.cpu,
                                 source.workspace_bytes);
  for (const TextKernel& k : source.kernels)
    head += fmt::format("// tenon launch {} grid {} {} {} block {} {} {}\n", k.name, k.grid[0],
                        k.grid[1], k.grid[2], k.block[0], k.block[1], k.block[2]);
  return head + fmt::format("// {}\n", flat.name) + source.text;
}

}  // namespace tenon
