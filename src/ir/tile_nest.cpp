#include "ir/tile_nest.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

namespace tenon {
namespace {

const For* whole_loop(const Stmt& s, int64_t size) {
  const For* n = s.as<For>();
  const auto extent = n ? as_int(n->extent) : std::nullopt;
  return extent && *extent > 0 && *extent % size == 0 ? n : nullptr;
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

std::optional<TileNest> find_tile_nest(const For& loop) {
  const IntrinsicParts parts = parts_of(*loop.intrinsic);
  const auto rows = as_int(loop.extent);
  if (!parts.is_tile() || !rows || *rows <= 0 || *rows % parts.rows != 0) return std::nullopt;
  TileNest nest;
  nest.rows = &loop;
  nest.lanes = whole_loop(loop.body, parts.lanes);
  if (!nest.lanes) return std::nullopt;
  Stmt inner = nest.lanes->body;
  if (const Seq* both = inner.as<Seq>()) {
    if (both->stmts.size() != 2) return std::nullopt;
    nest.init = both->stmts[0].as<Store>();
    if (!plain(nest.init) || !is_zero(nest.init->value)) return std::nullopt;
    inner = both->stmts[1];
  }
  nest.steps = whole_loop(inner, parts.steps);
  nest.group = nest.steps ? whole_loop(nest.steps->body, parts.group) : nullptr;
  if (!nest.group || as_int(nest.group->extent) != parts.group) return std::nullopt;
  nest.update = nest.group->body.as<Store>();
  if (!plain(nest.update) || !read_update(nest)) return std::nullopt;
  const bool same =
      !nest.init || (nest.init->buffer == nest.update->buffer &&
                     structural_equal(nest.init->indices[0], nest.update->indices[0]));
  return same ? std::optional(nest) : std::nullopt;
}

}  // namespace tenon
