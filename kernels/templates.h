#pragma once
#include <tenon/schedule/roles.h>

namespace tenon {

/// The templates that fit the program, by the shape of its stages: the first is the default. Never
/// empty; the last is the generic one.
std::vector<NamedTemplate> templates_for(const Program& program, const Target& target);

/// Sum of products (matrix products, convolutions): a register tile of rows x vectors, X packed,
/// the maps after it computed on the tile. Needs find_contraction() of the anchor.
void tile_template(Schedule& s, Knobs& knobs);

/// Convolutions on channels in blocks: a register tile of pixels x channel blocks, the weights
/// packed, borders cut off, the maps after it computed on the tile. Needs find_blocked_conv() of
/// the anchor.
void conv_template(Schedule& s, Knobs& knobs);

/// Convolutions in plain layout by the same tiles, output channels cut into lanes; each vector of
/// the result is scattered, which long sums pay for. Needs find_plain_conv() of the anchor.
void plain_conv_template(Schedule& s, Knobs& knobs);

/// The same on an instruction that adds up groups of narrow products: whole blocks of channels, the
/// weights packed in such groups. Needs find_conv_dots().
void conv_dot_template(Schedule& s, Knobs& knobs);

/// The same on a matrix unit: rows of pixels by lanes of channels, all channels and taps added up
/// in its tiles. Needs find_conv_dots() on tiles.
void conv_unit_template(Schedule& s, Knobs& knobs);

/// Winograd's convolution: blocks of tiles whose transformed input, products and pixels stay in the
/// second cache. Needs find_winograd().
void winograd_template(Schedule& s, Knobs& knobs);

/// (Batched) products of two matrices: blocks of X for the second cache, packed or read in place,
/// tiles of rows x vectors in registers. Needs is_matrix_product() of the anchor.
void matmul_template(Schedule& s, Knobs& knobs);

/// The same on an instruction that adds up groups of narrow products (u8 by i8 in i32, bf16 in
/// f32): X, and W where it needs to be, packed in such groups. Needs find_dot_product().
void dot_template(Schedule& s, Knobs& knobs);

/// The same on a matrix unit: operands padded to whole tiles where they are not, X packed in panels
/// of groups, two by two tiles of sums. Needs find_dot_product() on tiles.
void matrix_unit_template(Schedule& s, Knobs& knobs);

/// Two products with stages between that work row by row (attention): blocks of rows, whose scores
/// stay in the cache, rows in the lanes. Needs find_fused_products().
void attention_template(Schedule& s, Knobs& knobs);

/// Chains of reductions along the same rows (softmax, normalisations, reductions, pools):
/// everything of a row is computed inside its loop.
void row_template(Schedule& s, Knobs& knobs);

/// Maps only: element-wise operators and movers. Everything that can be is inlined; vectors along
/// the last axis.
void map_template(Schedule& s, Knobs& knobs);

}  // namespace tenon
