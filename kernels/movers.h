#pragma once
#include <tenon/te/te.h>

namespace tenon {

// Kernels that only move elements; every dtype. Pads are in pad.h.

/// The same elements in row-major order under another shape (as many elements; no -1 here).
Tensor reshape(const Tensor& x, const std::vector<int64_t>& shape,
               const std::string& name = "reshape");
/// Dimension d of the result is dimension perm[d] of x; an empty perm reverses them.
Tensor transpose(const Tensor& x, const std::vector<int64_t>& perm,
                 const std::string& name = "transpose");
/// One after the other along `axis`; the other extents agree.
Tensor concat(const std::vector<Tensor>& parts, int64_t axis, const std::string& name = "concat");
/// Elements starts[d], starts[d]+steps[d], ... of every dimension, extents[d] of them. All must
/// exist.
Tensor slice(const Tensor& x, const std::vector<int64_t>& starts, const std::vector<int64_t>& steps,
             const std::vector<int64_t>& extents, const std::string& name = "slice");
/// result[..., i..., ...] = x[..., indices[i...], ...]; negative indices count from the end;
/// indices outside are clamped, so that no memory but x's is read.
Tensor gather(const Tensor& x, const Tensor& indices, int64_t axis,
              const std::string& name = "gather");
/// result[i...] = x[i... with dimension `axis` replaced by indices[i...]]
Tensor gather_elements(const Tensor& x, const Tensor& indices, int64_t axis,
                       const std::string& name = "gather_elements");
/// The last dimension of `indices` holds positions in the first dimensions of x behind `batch`
/// common ones.
Tensor gather_nd(const Tensor& x, const Tensor& indices, int64_t batch,
                 const std::string& name = "gather_nd");
/// Broadcast to `shape` (numpy's rules, in both directions as ONNX Expand).
Tensor expand(const Tensor& x, const std::vector<int64_t>& shape,
              const std::string& name = "expand");
Tensor tile(const Tensor& x, const std::vector<int64_t>& repeats, const std::string& name = "tile");
/// Every element `value` (of the type t).
Tensor filled(DType t, const std::vector<int64_t>& shape, double value,
              const std::string& name = "filled");
/// ONNX DepthToSpace (dcr or crd order of the channels) and SpaceToDepth of x[n, c, h, w].
Tensor depth_to_space(const Tensor& x, int64_t block, bool depth_first,
                      const std::string& name = "depth_to_space");
Tensor space_to_depth(const Tensor& x, int64_t block, const std::string& name = "space_to_depth");
/// The upper (or lower) triangle of the last two dimensions from diagonal k on; zero elsewhere.
Tensor triangle(const Tensor& x, int64_t k, bool upper, const std::string& name = "triangle");

/// x[n, c, h, w] or x[n, c, w] with its channels in blocks, [n, ceil(c/block), h, w, block] or
/// [n, ceil(c/block), w, block]: lanes past c are 0. UserError for another rank or a block below 1.
Tensor block_channels(const Tensor& x, int64_t block, const std::string& name = "block_channels");
/// And back, the first `channels` of them. UserError when there are none so many.
Tensor unblock_channels(const Tensor& x, int64_t channels,
                        const std::string& name = "unblock_channels");

}  // namespace tenon
