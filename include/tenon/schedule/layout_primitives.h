#pragma once
#include <tenon/schedule/fields.h>

namespace tenon {

/// When a packed buffer gets its layout. run_time: in each call; ahead: once, before the first
/// call, for contents that the task knows (ParamRole::constant).
enum class PackWhen : uint8_t { run_time, ahead };

struct Pack {
  std::string buffer;
  std::vector<LayoutDim> layout;
  PackWhen when = PackWhen::run_time;

  static constexpr std::string_view kName = "pack";
  static constexpr std::string_view kRule =
      "The layout stores each dimension exactly once and has at most 16 times the elements. A "
      "buffer allocated inside the program is stored in it from now on. An input is copied to "
      "BUFFER.packed before everything else, and all stages read the copy, or (ahead, for inputs "
      "that the task marks constant) the kernel takes the packed array, which Kernel::prepack "
      "makes. Padding of a copy holds zeros. Outputs, registers, aligned buffers and symbolic "
      "extents are not packed.";
  static constexpr std::string_view kBefore = "for i, j, k: C(i, j) += A(i, k) * B(k, j)";
  static constexpr std::string_view kAfter =
      "pack(\"B\", {{1, 16, 0}, {0, 1, 0}, {1, 1, 16}}):\n"
      "allocate B.packed  layout(d1//16, d0, d1%16)\nfor k, j: B.packed(k, j) = B(k, j)\n"
      "for i, j, k: C(i, j) += A(i, k) * B.packed(k, j)";
  static constexpr auto fields() {
    return std::tuple(field("buffer", &Pack::buffer, "buffer to store otherwise"),
                      field("layout", &Pack::layout,
                            "storage dimensions as {dim, divide, modulo}: (index / divide) % "
                            "modulo, outermost first"),
                      option("when", &Pack::when, "run_time or ahead"));
  }
  Program apply(const Program& program, const Target& target) const;
};

}  // namespace tenon
