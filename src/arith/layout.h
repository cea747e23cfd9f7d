#pragma once
#include <tenon/ir/expr.h>

#include <vector>

namespace tenon {

/// Extents of a buffer's dimensions as they lie in memory: its shape, or what its layout makes of
/// it.
std::vector<Expr> storage_shape(const BufferNode& b);
/// Logical indices as storage indices.
std::vector<Expr> storage_indices(const BufferNode& b, const std::vector<Expr>& logical);
/// The logical index of each dimension at a place of the storage; of padding it is outside.
std::vector<Expr> logical_indices(const BufferNode& b, const std::vector<Expr>& stored);
/// Elements of memory, with what its aligns add to rows.
Expr storage_size(const BufferNode& b);
/// The number of the element in memory, row-major in the storage dimensions. Not simplified.
Expr flat_index(const BufferNode& b, const std::vector<Expr>& logical);

}  // namespace tenon
