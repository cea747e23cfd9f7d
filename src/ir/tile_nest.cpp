#include "ir/tile_nest.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

namespace tenon {
namespace {

int64_t constant_extent(const For& loop) { return as_int(loop.extent).value_or(0); }

bool whole(const For& loop, int64_t size) {
  const int64_t extent = constant_extent(loop);
  return extent > 0 && extent % size == 0;
}

/// The loops right inside each other from `s` on, while they are of that kind; `s` becomes what is
/// inside.
std::vector<const For*> chain(Stmt& s, AxisKind kind) {
  std::vector<const For*> out;
  for (const For* n = s.as<For>(); n && n->kind == kind; n = s.as<For>()) {
    out.push_back(n);
    s = n->body;
  }
  return out;
}

bool is_zero(const Expr& e) {
  const auto whole = as_int(e);
  const auto number = as_float(e);
  return (whole && *whole == 0) || (number && *number == 0);
}

bool plain(const Store* s) { return s && !s->mask.defined() && !s->atomic; }

/// The loads of C[..] = C[..] + wide(x) * wide(y), in that order; C as it was in neither.
bool read_update(TileNest& nest) {
  const Store& store = *nest.update;
  const Binary* sum = store.value.as<Binary>();
  if (!sum || sum->op != BinaryOp::add) return false;
  const Expr old = load(store.buffer, store.indices);
  const bool first = structural_equal(sum->a, old);
  if (!first && !structural_equal(sum->b, old)) return false;
  const Binary* product = (first ? sum->b : sum->a).as<Binary>();
  const auto factor = [](const Expr& e) -> const Load* {
    const Cast* wide = e.as<Cast>();
    const Load* n = wide ? wide->value.as<Load>() : nullptr;
    return n && !n->mask.defined() ? n : nullptr;
  };
  if (!product || product->op != BinaryOp::mul) return false;
  nest.a = factor(product->a);
  nest.b = factor(product->b);
  return nest.a && nest.b;
}

}  // namespace

RowTiles cut_into_tiles(int64_t rows, int64_t most) {
  const int64_t count = (rows + most - 1) / most;
  return {count, (rows + count - 1) / count};
}

bool tiles_fit(int64_t row_tiles, int64_t lane_tiles) {
  const int64_t sums = row_tiles * lane_tiles;
  return row_tiles <= lane_tiles ? sums + row_tiles <= 6 : lane_tiles <= 2 && sums < 6;
}

std::optional<TileNest> find_tile_nest(const For& loop) {
  const IntrinsicParts parts = parts_of(*loop.intrinsic);
  if (!parts.is_tile() || loop.kind != AxisKind::spatial) return std::nullopt;
  TileNest nest;
  Stmt inner = loop.body;
  std::vector<const For*> spatial = chain(inner, AxisKind::spatial);
  spatial.insert(spatial.begin(), &loop);
  if (const Seq* both = inner.as<Seq>()) {
    if (both->stmts.size() != 2) return std::nullopt;
    nest.init = both->stmts[0].as<Store>();
    if (!plain(nest.init) || !is_zero(nest.init->value)) return std::nullopt;
    inner = both->stmts[1];
  }
  nest.sums = chain(inner, AxisKind::reduce);
  if (spatial.size() < 2 || spatial.size() > 3 || nest.sums.size() < 2) return std::nullopt;
  nest.group = nest.sums.back();
  nest.sums.pop_back();
  nest.steps = nest.sums.back();
  nest.sums.pop_back();
  nest.lanes = spatial.back();
  nest.rows = spatial[spatial.size() - 2];
  if (spatial.size() == 3) nest.tiles = spatial[0];
  for (const For* n : nest.sums)
    if (!whole(*n, 1)) return std::nullopt;
  const bool fits =
      whole(*nest.rows, 1) && whole(*nest.lanes, parts.lanes) && whole(*nest.steps, parts.steps) &&
      constant_extent(*nest.group) == parts.group &&
      (!nest.tiles || (whole(*nest.tiles, 1) && constant_extent(*nest.rows) <= parts.rows));
  nest.update = inner.as<Store>();
  if (!fits || !plain(nest.update) || !read_update(nest)) return std::nullopt;
  const bool same =
      !nest.init || (nest.init->buffer == nest.update->buffer &&
                     structural_equal(nest.init->indices[0], nest.update->indices[0]));
  return same ? std::optional(nest) : std::nullopt;
}

}  // namespace tenon
