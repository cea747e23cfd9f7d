#include "kernels/contraction.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>

#include "schedule/composites/cost.h"

namespace tenon {
namespace {

/// The value as X * W, X moving with `vector`; W is 1 where it is no such product. Nothing when X
/// does not move.
std::optional<std::pair<Expr, Expr>> factors(const Stage& s, const Var& vector) {
  const Expr value = without_casts(s.values[0]);
  const Binary* product = value.as<Binary>();
  if (product && product->op == BinaryOp::mul && combiner_op(*s.combiner) == BinaryOp::add) {
    const Expr a = without_casts(product->a), b = without_casts(product->b);
    if (uses_var(a, vector) && !uses_var(b, vector)) return std::pair(a, b);
    if (uses_var(b, vector) && !uses_var(a, vector)) return std::pair(b, a);
  }
  if (!uses_var(value, vector)) return std::nullopt;
  return std::pair(value, Expr(1));
}

/// How many neighbours along v share the elements of x: 0 all (x does not use v), g when x uses v
/// only as v // g.
int64_t shared_along(const Expr& x, const Var& v) {
  int64_t group = 0;
  std::function<void(const Expr&)> look = [&](const Expr& e) {
    if (const VarRef* r = e.as<VarRef>(); r && r->var.same_as(v)) group = 1;
    const Binary* b = e.as<Binary>();
    const VarRef* divided = b && b->op == BinaryOp::floor_div ? b->a.as<VarRef>() : nullptr;
    const auto by = divided && divided->var.same_as(v) ? as_int(b->b) : std::nullopt;
    if (by) {
      group = group == 0 || group == *by ? *by : 1;
      return;
    }
    map_children(e, [&](const Expr& child) {
      look(child);
      return child;
    });
  };
  look(x);
  return group;
}

/// Whether every element of a buffer that moves with v is a neighbour along it, or every second.
bool contiguous_along(const Expr& x, const Var& v) {
  bool all = true;
  walk(x, [&](const Expr& e) {
    const Load* l = e.as<Load>();
    for (size_t d = 0; l && d < l->indices.size(); ++d) {
      const int64_t step = step_along(l->indices[d], v);
      const bool neighbours = d + 1 == l->indices.size() && (step == 1 || step == 2);
      all = all && (neighbours || !uses_var(l->indices[d], v));
    }
    return true;
  });
  return all;
}

void describe_x(Contraction& c, const Expr& x, const Var& vector) {
  c.x_contiguous = contiguous_along(x, vector);
  const Load* l = x.as<Load>();
  if (!l) return;
  c.x_buffer = l->buffer->name;
  int last = -1;
  for (size_t d = 0; d < l->indices.size(); ++d) {
    if (uses_var(l->indices[d], vector))
      last = static_cast<int>(d);
    else
      c.x_order.push_back(static_cast<int>(d));
  }
  int users = 0;
  for (const Expr& index : l->indices) users += uses_var(index, vector);
  if (users != 1) {
    c.x_buffer.clear();
    return;
  }
  c.x_order.push_back(last);
}

/// The reduction that moves a dimension of x together with axis `extra`, of all `vars`.
std::optional<Windows> find_windows(const Expr& x, const std::vector<Var>& vars, size_t spatial,
                                    size_t extra) {
  const Load* l = x.as<Load>();
  for (size_t d = 0; l && d + 1 < l->indices.size(); ++d)
    for (size_t k = spatial; k < vars.size(); ++k) {
      const Expr& index = l->indices[d];
      const Windows w{k - spatial, step_along(index, vars[extra]), step_along(index, vars[k]),
                      step_along(l->indices.back(), vars[spatial - 1])};
      if (w.step > 0 && w.dilation > 0 && w.vector_step > 0) return w;
    }
  return std::nullopt;
}

/// Decides the part of each spatial axis but the last.
void assign_parts(Contraction& c, const std::vector<Var>& vars,
                  const std::vector<LoopExtent>& loops, size_t spatial, const Expr& x,
                  const Expr& w) {
  size_t rows = spatial;
  for (size_t n = 0; n + 1 < spatial; ++n) {
    const int64_t group = shared_along(x, vars[n]);
    if (!uses_var(w, vars[n]) || group == 1) continue;
    if (rows != spatial && loops[n].extent <= loops[rows].extent) continue;
    rows = n;
    c.rows_group = group;
  }
  for (size_t n = 0; n + 1 < spatial; ++n) {
    const bool in_w = uses_var(w, vars[n]);
    if (n == rows)
      c.rows = loops[n];
    else if (n + 2 == spatial && !in_w && uses_var(x, vars[n]))
      c.extra = loops[n];
    else
      (in_w ? c.batch : c.outer).push_back(loops[n]);
  }
}

std::optional<Contraction> read_contraction(const StagePath& path) {
  const Stage& s = *path.stage;
  if (!s.combiner || s.values.size() != 1 || !combiner_op(*s.combiner)) return std::nullopt;
  if (s.indices.empty()) return std::nullopt;
  Contraction c;
  c.stage = s.name;
  c.output = s.outputs[0]->name;
  c.dtype = s.outputs[0]->dtype;
  const size_t spatial = s.indices.size();
  const auto nest = constant_nest(path);
  if (!nest) return std::nullopt;
  const auto& [vars, loops] = *nest;
  const auto product = factors(s, vars[spatial - 1]);
  if (!product) return std::nullopt;
  c.vector = loops[spatial - 1];
  describe_x(c, product->first, vars[spatial - 1]);
  assign_parts(c, vars, loops, spatial, product->first, product->second);
  if (c.extra && !c.rows && !c.batch.empty())
    c.windows = find_windows(product->first, vars, spatial, spatial - 2);
  c.reduce.assign(loops.begin() + static_cast<std::ptrdiff_t>(spatial), loops.end());
  return c;
}

/// Rows of W that may be read side by side: more streams than this outrun the prefetchers, and rows
/// that lie whole pages apart fall into the same set of the first cache.
int64_t most_streams(const Contraction& c) {
  int64_t row_bytes = byte_size(c.dtype);
  for (const LoopExtent& k : c.reduce) row_bytes *= k.extent;
  return row_bytes % 4096 == 0 ? 8 : 14;
}

}  // namespace

std::optional<Contraction> find_contraction(const Program& program, const std::string& name) {
  for (const StagePath& path : stage_paths(program.body))
    if (path.stage->name == name) return read_contraction(path);
  return std::nullopt;
}

int64_t points_in(const std::vector<LoopExtent>& loops) {
  int64_t count = 1;
  for (const LoopExtent& l : loops) count *= l.extent;
  return count;
}

int64_t registers_used(const RegisterTile& t) {
  return t.rows * t.extra * t.vectors + t.extra * t.vectors + 1;
}

double tile_cycles(const Contraction& c, const RegisterTile& tile, const Target& target) {
  const int64_t lanes = target.lanes(c.dtype);
  const auto points = static_cast<double>(points_in(c.reduce));
  const double near_bytes = memory_rates(target).near;
  double total = 0;
  each_tile(extent_of(c.rows), tile.rows, [&](double row_tiles, int64_t rows) {
    each_tile(extent_of(c.extra), tile.extra, [&](double extra_tiles, int64_t extra) {
      each_tile(c.vector.extent, tile.vectors * lanes, [&](double tiles, int64_t width) {
        const int64_t vectors = ceil_div(width, lanes);
        const double fma = static_cast<double>(rows * extra * vectors) / 2;
        const double loads = static_cast<double>(rows + extra * vectors) / 2;
        // Beyond half of the first cache, X comes from the second one.
        const double x_bytes = static_cast<double>(extra * vectors * target.vector_bits / 8);
        const bool far = points * x_bytes > static_cast<double>(target.l1d_bytes) / 2;
        const double stream = far ? x_bytes / near_bytes : 0;
        // Start and store of the accumulators, spread over the steps.
        const double ends = (static_cast<double>(rows * extra * vectors) * 2 + 12) / points;
        total += row_tiles * extra_tiles * tiles *
                 (std::max({fma, loads, stream, 4.0}) + 0.2 * loads + ends);
      });
    });
  });
  return total;
}

RegisterTile best_tile(const Contraction& c, const Target& target) {
  const int64_t lanes = target.lanes(c.dtype),
                most_vectors = std::min<int64_t>(ceil_div(c.vector.extent, lanes), 16);
  const int64_t row_limit =
      c.rows ? (c.rows_group > 0 ? std::min(c.rows_group, c.rows->extent) : c.rows->extent) : 1;
  RegisterTile best;
  double least = tile_cycles(c, best, target);
  for (int64_t rows = 1; rows <= std::min(row_limit, most_streams(c)); ++rows) {
    if (c.rows_group > 0 && c.rows_group % rows != 0) continue;
    for (int64_t extra = 1; extra <= (c.extra ? std::min<int64_t>(c.extra->extent, 8) : 1); ++extra)
      for (int64_t vectors = 1; vectors <= most_vectors; ++vectors) {
        const RegisterTile tile{rows, extra, vectors};
        if (registers_used(tile) > registers_free(target)) break;
        const double cycles = tile_cycles(c, tile, target);
        if (cycles < least * 0.999) {
          least = cycles;
          best = tile;
        }
      }
  }
  return best;
}

}  // namespace tenon
