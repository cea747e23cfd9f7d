#pragma once
#include <tenon/te/te.h>

namespace tenon {

struct AttentionOptions {
  double scale = 0;              // of the scores; 0: 1 / sqrt(d)
  bool causal = false;           // query i sees the keys up to i + (n - m)
  bool keys_as_columns = false;  // k is [..., d, n]
  int64_t tile = 0;              // keys at a time, n: all; 0: all unless rows are very long
};

/// softmax(q k^T * scale + mask) v for q[..., m, d], k[..., n, d], v[..., n, e] -> [..., m, e]. The
/// stages: name.query = q * scale; name.scores, their products with the keys; name.logits, where
/// there is a mask; name.max, name.exp, name.sum of each row; name.weighted, the products of the
/// exponentials with the values; name, those by name.inverse = 1 / name.sum. The leading dimensions
/// broadcast; `mask` (may be undefined) broadcasts to the scores [..., m, n]. A row of logits that
/// are all -inf gives NaN. f16 and bf16 in f32.
///
/// With a tile below n, online softmax (Milakov and Gimelshein, 2018; Dao et al., 2022): maximum,
/// sum and products are those of a tile of keys, and name.fold joins the tiles one by one, each
/// (max, sum, weighted) scaled to the larger maximum,
///   m = max(m1, m2), l = l1 exp(m1 - m) + l2 exp(m2 - m), w = w1 exp(m1 - m) + w2 exp(m2 - m);
/// name = w / l. The factors of a tile multiply to exp(its maximum - the row's), so T tiles add at
/// most (6 T + r) u to the relative error of a sum of exponentials whose logits span r.
///
/// UserError for: ranks below 2, types that differ or are no floats, d or n that differ, shapes
/// that do not broadcast, a tile below 0.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                 const AttentionOptions& options = {}, const std::string& name = "attention");

}  // namespace tenon
