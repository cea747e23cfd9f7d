#include "kernels/templates.h"

#include <tenon/schedule/schedule.h>

#include "kernels/blocked_conv.h"
#include "kernels/blocking.h"
#include "kernels/contraction.h"
#include "kernels/dot_product.h"
#include "kernels/fused_products.h"
#include "kernels/winograd_parts.h"

namespace tenon {
namespace {

/// X is contiguous along what is summed and not along the result: rows, of half a vector at least.
bool reduces_rows(const Contraction& c, const Target& target) {
  return c.alone() && !c.x_contiguous && 2 * c.reduce.back().extent >= target.lanes(c.dtype);
}

/// The templates of a plain product, the best first.
void add_products(std::vector<NamedTemplate>& list, const Program& program, const Contraction& c,
                  const Target& target) {
  Schedule inlined(program, target);
  inline_prologue(inlined);
  if (find_dot_product(inlined.program(), c, target, DotUnit::tiles))
    list.push_back({"matrix_unit", matrix_unit_template});
  const auto dots = find_dot_product(inlined.program(), c, target, DotUnit::lanes);
  const bool first = dots && prefers_dots(c, *dots, target, is_constant(program, c.x_buffer));
  if (first) list.push_back({"dot", dot_template});
  list.push_back({"matmul", matmul_template});
  if (dots && !first) list.push_back({"dot", dot_template});
}

/// The templates of a convolution in blocks of channels.
void add_convs(std::vector<NamedTemplate>& list, const Program& program, const std::string& anchor,
               const Target& target) {
  const auto c = find_blocked_conv(program, anchor, target);
  if (!c) return;
  if (find_conv_dots(program, *c, target, DotUnit::tiles))
    list.push_back({"conv_unit", conv_unit_template});
  const auto dots = find_conv_dots(program, *c, target, DotUnit::lanes);
  const bool first = dots && static_cast<double>(parts_of(**dots).group) > dot_cost(**dots, target);
  if (first) list.push_back({"conv_dot", conv_dot_template});
  list.push_back({"conv", conv_template});
  if (dots && !first) list.push_back({"conv_dot", conv_dot_template});
}

}  // namespace

std::vector<NamedTemplate> templates_for(const Program& program, const Target& target) {
  if (keeps_order(program)) return {{"generic", generic_template}};
  std::vector<NamedTemplate> list;
  if (target.is_gpu()) {
    list.push_back({"generic", generic_template});
    if (has_gpu_tile(program)) list.push_back({"gpu_tile", gpu_tile_template});
    return list;
  }
  // The other templates would inline its transforms.
  if (find_winograd(program, target))
    return {{"winograd", winograd_template}, {"generic", generic_template}};
  const ReductionCount r = count_reductions(program);
  const std::string anchor = roles(program).anchor;
  if (r.count > 0 && !r.chained) add_convs(list, program, anchor, target);
  if (r.chained && find_fused_products(program)) list.push_back({"attention", attention_template});
  if (r.count == 0) list.push_back({"map", map_template});
  const auto product = r.count > 0 && !r.chained ? find_contraction(program, anchor) : std::nullopt;
  // A product of symbolic extents has no tile of this kind, and rows alone are a poor one.
  const bool rows = r.count > 0 && (r.chained || program.symbols.empty());
  const bool along_rows = product && reduces_rows(*product, target);
  if (rows && along_rows) list.push_back({"row", row_template});
  if (product && is_matrix_product(*product)) add_products(list, program, *product, target);
  const auto plain = product && !is_matrix_product(*product)
                         ? find_plain_conv(program, anchor, target)
                         : std::nullopt;
  const bool channels = plain && prefers_channels(*plain, *product, target,
                                                  is_constant(program, plain->parts.w_buffer));
  if (channels) list.push_back({"plain_conv", plain_conv_template});
  if (product) list.push_back({"tile", tile_template});
  if (plain && !channels) list.push_back({"plain_conv", plain_conv_template});
  if (rows && !along_rows) list.push_back({"row", row_template});
  list.push_back({"generic", generic_template});
  return list;
}

}  // namespace tenon
