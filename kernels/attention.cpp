#include "kernels/attention.h"

#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/axes.h"

namespace tenon {
namespace {

using Shape = std::vector<int64_t>;

/// The extents of the operands: m queries, n keys, d elements of each, e of a value.
struct Extent {
  int64_t m = 0, n = 0, d = 0, e = 0;
  Shape batch;
};

Shape leading(const Tensor& t) {
  const Shape shape = t.extents();
  return {shape.begin(), shape.end() - 2};
}

void require_operand(const std::string& name, const Tensor& q, const Tensor& t) {
  require_float(name, t);
  require_same_type(name, q, t);
  if (t.rank() < 2)
    throw UserError(fmt::format("{}: \"{}\" needs at least two dimensions, it has {}", name,
                                t.name(), t.rank()));
}

Extent extents_of(const std::string& name, const Tensor& q, const Tensor& k, const Tensor& v,
                  bool keys_as_columns) {
  for (const Tensor* t : {&q, &k, &v}) require_operand(name, q, *t);
  const auto last = [](const Tensor& t, int n) { return t.extent(t.rank() - n); };
  const int64_t d = last(k, keys_as_columns ? 2 : 1), n = last(k, keys_as_columns ? 1 : 2);
  if (last(q, 1) != d)
    throw UserError(fmt::format(
        "{}: queries of {} elements (\"{}\" is {}) and keys of {} (\"{}\" "
        "is {})",
        name, last(q, 1), q.name(), shape_text(q.extents()), d, k.name(), shape_text(k.extents())));
  if (last(v, 2) != n)
    throw UserError(fmt::format("{}: {} keys (\"{}\" is {}) and {} values (\"{}\" is {})", name, n,
                                k.name(), shape_text(k.extents()), last(v, 2), v.name(),
                                shape_text(v.extents())));
  return {last(q, 2), n, d, last(v, 1),
          broadcast_shape(name, broadcast_shape(name, leading(q), leading(k)), leading(v))};
}

/// The formula's axes and what its stages share.
struct Attention {
  std::string name;
  Tensor q, k, v, mask;
  AttentionOptions options;
  Extent extent;
  DType acc = f32;
  std::vector<Axis> batch;

  std::vector<Axis> axes(const Axis& row) const {
    std::vector<Axis> out = batch;
    out.push_back(row);
    return out;
  }
  std::vector<Axis> axes(const Axis& row, const Axis& column) const {
    std::vector<Axis> out = axes(row);
    out.push_back(column);
    return out;
  }
  std::vector<Expr> at(std::initializer_list<Expr> last) const {
    std::vector<Expr> out = indices_of(batch);
    out.insert(out.end(), last);
    return out;
  }
  /// t[.., row, column], its dimensions of extent 1 stretched to the extents of `shape`.
  Expr read(const Tensor& t, const Expr& row, const Expr& column, Shape shape) const {
    shape.insert(shape.begin(), extent.batch.begin(), extent.batch.end());
    const std::vector<Expr> all = at({row, column});
    const size_t dropped = all.size() - static_cast<size_t>(t.rank());
    std::vector<Expr> indices;
    for (size_t d = dropped; d < all.size(); ++d) {
      const bool stretched = t.extent(static_cast<int>(d - dropped)) != shape[d];
      indices.push_back(stretched ? int_imm(0) : all[d]);
    }
    return as_type(acc, t.at(indices));
  }

  Tensor scores() const;
  Tensor logits(const Tensor& scores) const;
  Tensor exponentials(const Tensor& logits) const;
  Tensor inverse(const Tensor& e) const;
  Tensor weighted(const Tensor& e) const;
  Tensor whole_rows(const Tensor& logits) const;
  Tensor by_tiles(const Tensor& logits, int64_t tile) const;
};

/// Keys at a time where all of them would be too many (register tiles of 4, 6, 8, 10 and 12 divide
/// it), and when they are: scores and exponentials of 32 rows of 2048 keys fill half a megabyte,
/// what a second cache has to spare.
constexpr int64_t kTile = 480, kManyScores = 32 * 2048;

int64_t tile_of(const AttentionOptions& options, const Extent& extent) {
  if (options.tile > 0) return options.tile;
  return std::min<int64_t>(extent.m, 32) * extent.n > kManyScores ? kTile : extent.n;
}

/// (maximum, sum, weighted sum) of two sets of keys. Equal maxima, -inf among them, need no factor.
std::shared_ptr<const Combiner> join_tiles(DType t) {
  const double never = -std::numeric_limits<double>::infinity();
  return tuple_combiner(
      "join_tiles", {imm(never, t), imm(0, t), imm(0, t)},
      [t](const std::vector<Expr>& a, const std::vector<Expr>& b) {
        const Expr top = max(a[0], b[0]);
        const auto factor = [&](const Expr& own) {
          return select(own == top, imm(1, t), exp(own - top));
        };
        const Expr left = factor(a[0]), right = factor(b[0]);
        return std::vector<Expr>{top, a[1] * left + b[1] * right, a[2] * left + b[2] * right};
      },
      Commutes::yes);
}

Tensor Attention::scores() const {
  const Axis row("i", q.extent(q.rank() - 2)), column("c", extent.d);
  const double scale =
      options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(extent.d));
  std::vector<Axis> own = axes_over(leading(q), "b");
  own.insert(own.end(), {row, column});
  const Tensor query =
      compute(name + ".query", own, as_type(acc, q.at(indices_of(own))) * imm(scale, acc));
  const Axis i("i", extent.m), j("j", extent.n), c("c", extent.d);
  const Expr key = options.keys_as_columns ? read(k, c, j, {extent.d, extent.n})
                                           : read(k, j, c, {extent.n, extent.d});
  return compute(name + ".scores", axes(i, j),
                 sum(read(query, i, c, {extent.m, extent.d}) * key, c));
}

Tensor Attention::logits(const Tensor& scores) const {
  if (!mask.defined() && !options.causal) return scores;
  const Axis i("i", extent.m), j("j", extent.n);
  Expr value = scores.at(at({i, j}));
  if (mask.defined()) value = value + read(mask, i, j, {extent.m, extent.n});
  if (options.causal) {
    const double never = -std::numeric_limits<double>::infinity();
    value = select(Expr(j) <= Expr(i) + int_imm(extent.n - extent.m), value, imm(never, acc));
  }
  return compute(name + ".logits", axes(i, j), value);
}

Tensor Attention::exponentials(const Tensor& logits) const {
  const Axis i("i", extent.m), j("j", extent.n), r("j", extent.n), row("i", extent.m);
  const Tensor top = compute(name + ".max", axes(row), reduce_max(logits.at(at({row, r})), {r}));
  return compute(name + ".exp", axes(i, j), exp(logits.at(at({i, j})) - top.at(at({i}))));
}

Tensor Attention::inverse(const Tensor& e) const {
  const Axis row("i", extent.m), i("i", extent.m), j("j", extent.n);
  const Tensor total = compute(name + ".sum", axes(row), sum(e.at(at({row, j})), j));
  return compute(name + ".inverse", axes(i), imm(1, acc) / total.at(at({i})));
}

Tensor Attention::weighted(const Tensor& e) const {
  const Axis i("i", extent.m), j("j", extent.n), c("c", extent.e);
  return compute(name + ".weighted", axes(i, c),
                 sum(e.at(at({i, j})) * read(v, j, c, {extent.n, extent.e}), j));
}

Tensor Attention::whole_rows(const Tensor& logits) const {
  const Tensor e = exponentials(logits), over = inverse(e), products = weighted(e);
  const Axis i("i", extent.m), c("c", extent.e);
  return compute(name, axes(i, c), as_type(q.dtype(), over.at(at({i})) * products.at(at({i, c}))));
}

Tensor Attention::by_tiles(const Tensor& logits, int64_t tile) const {
  const int64_t tiles = (extent.n + tile - 1) / tile;
  const Axis i("i", extent.m), j("j", extent.n), t("t", tiles), r("r", tile), c("c", extent.e);
  const Expr key = Expr(t) * int_imm(tile) + Expr(r);
  const Expr inside = tiles * tile == extent.n ? Expr() : key < int_imm(extent.n);
  const ReduceOptions part{.condition = inside};
  const Tensor top =
      compute(name + ".max", axes(i, t), reduce_max(logits.at(at({i, key})), {r}, part));
  // Where all logits of a tile are -inf, so are their exponentials 0 and not NaN.
  const Expr highest = top.at(at({i, t}));
  const Expr never = imm(-std::numeric_limits<double>::infinity(), acc);
  const Tensor base =
      compute(name + ".base", axes(i, t), select(highest == never, imm(0, acc), highest));
  const Tensor e =
      compute(name + ".exp", axes(i, j),
              exp(logits.at(at({i, j})) - base.at(at({i, floor_div(Expr(j), int_imm(tile))}))));
  const Tensor total = compute(name + ".sum", axes(i, t), sum(e.at(at({i, key})), {r}, part));
  std::vector<Axis> products = axes(i, t);
  products.push_back(c);
  const Tensor weighted =
      compute(name + ".weighted", products,
              sum(e.at(at({i, key})) * read(v, key, c, {extent.n, extent.e}), {r}, part));
  const std::vector<Expr> joined = reduce_tuple(
      join_tiles(acc), {top.at(at({i, t})), total.at(at({i, t})), weighted.at(at({i, t, c}))}, {t});
  const std::vector<Tensor> fold = compute_tuple(name + ".fold", axes(i, c), joined);
  return compute(name, axes(i, c),
                 as_type(q.dtype(), fold[2].at(at({i, c})) / fold[1].at(at({i, c}))));
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                 const AttentionOptions& options, const std::string& name) {
  Attention a{name, q, k, v, mask, options, extents_of(name, q, k, v, options.keys_as_columns)};
  if (options.tile < 0) throw UserError(fmt::format("{}: a tile of {} keys", name, options.tile));
  if (mask.defined()) {
    require_same_type(name, q, mask);
    Shape scores = a.extent.batch;
    scores.insert(scores.end(), {a.extent.m, a.extent.n});
    if (broadcast_shape(name, mask.extents(), scores) != scores)
      throw UserError(fmt::format("{}: mask \"{}\" of shape {} does not broadcast to the scores {}",
                                  name, mask.name(), shape_text(mask.extents()),
                                  shape_text(scores)));
  }
  a.acc = accumulator_type(q.dtype());
  a.batch = axes_over(a.extent.batch, "b");
  const Tensor logits = a.logits(a.scores());
  const int64_t tile = tile_of(options, a.extent);
  return tile < a.extent.n ? a.by_tiles(logits, tile) : a.whole_rows(logits);
}

}  // namespace tenon
