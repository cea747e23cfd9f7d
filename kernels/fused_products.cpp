#include "kernels/fused_products.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>
#include <set>

namespace tenon {
namespace {

std::vector<const Load*> loads_in(const Stage& s) {
  std::vector<const Load*> out;
  for (const std::vector<Expr>* list : {&s.values, &s.init})
    for (const Expr& value : *list)
      walk(value, [&](const Expr& e) {
        if (const Load* l = e.as<Load>()) out.push_back(l);
        return true;
      });
  return out;
}

/// Whether the load's first indices are the stage's own first axes.
bool by_rows(const Stage& s, const Load& l, size_t dims) {
  if (l.indices.size() < dims || s.indices.size() < dims) return false;
  for (size_t d = 0; d < dims; ++d) {
    const VarRef* v = l.indices[d].as<VarRef>();
    if (!v || !v->var.same_as(s.axes[d].axis.var)) return false;
  }
  return true;
}

/// A sum of products over one axis with rows.
std::optional<Contraction> product(const Program& program, const Stage& s) {
  const auto c = find_contraction(program, s.name);
  const bool sums = c && s.values[0].as<Binary>() && combiner_op(*s.combiner) == BinaryOp::add;
  if (!sums || !c->rows || c->rows_group != 0 || c->extra || !c->outer.empty()) return std::nullopt;
  return c->reduce.size() == 1 && !c->x_buffer.empty() ? c : std::nullopt;
}

using Buffers = std::set<const BufferNode*>;

/// Whether a map reads an operand as [.., i, j], where neighbours lie along the columns.
bool reads_across(const Stage& s, const FusedProducts& f, const Buffers& made) {
  if (s.combiner || s.indices.size() != f.row_dims + 1) return false;
  const Var &row = s.axes[f.row_dims - 1].axis.var, &column = s.axes[f.row_dims].axis.var;
  const std::vector<const Load*> loads = loads_in(s);
  return std::any_of(loads.begin(), loads.end(), [&](const Load* l) {
    if (made.count(l->buffer.get()) || l->indices.empty()) return false;
    const bool rows = std::any_of(l->indices.begin(), l->indices.end() - 1,
                                  [&](const Expr& index) { return uses_var(index, row); });
    return rows && step_along(l->indices.back(), column) == 1;
  });
}

FusedStage described(const Stage& s, const FusedProducts& f, const Buffers& made) {
  return {s.name, s.outputs[0]->name, s.indices.size() > f.row_dims, s.combiner != nullptr,
          reads_across(s, f, made)};
}

/// Whether the first product reads the buffer as [.., i, c], i being its rows.
bool holds_rows(const Stage& first, const BufferNode* buffer, const FusedProducts& f) {
  bool found = false;
  const Var& row = first.axes[f.row_dims - 1].axis.var;
  for (const Load* l : loads_in(first)) {
    const size_t rank = l->indices.size();
    const VarRef* at = rank == f.row_dims + 1 ? l->indices[rank - 2].as<VarRef>() : nullptr;
    found = found || (l->buffer.get() == buffer && at && at->var.same_as(row));
  }
  return found;
}

/// Reductions whose points a condition chooses, without it: what their loops are for stays the
/// same.
Program without_conditions(const Program& program) {
  Program out = program;
  out.body = rewrite(
      program.body,
      [](const Stmt& s) {
        const Stage* stage = s.as<Stage>();
        const Select* choice =
            stage && stage->values.size() == 1 ? stage->values[0].as<Select>() : nullptr;
        if (!choice || !stage->combiner ||
            !structural_equal(choice->no, stage->combiner->identity[0]))
          return s;
        Stage copy = *stage;
        copy.values[0] = choice->yes;
        return make_stmt(std::move(copy));
      },
      nullptr);
  return out;
}

/// Reads the stages up to the second product; its path's number, or nothing.
std::optional<size_t> read_products(const Program& program, FusedProducts& f, Buffers& made) {
  const std::vector<StagePath> paths = stage_paths(program.body);
  std::vector<const Stage*> ahead;  // of the first product
  for (size_t n = 0; n < paths.size(); ++n) {
    const Stage& s = *paths[n].stage;
    if (s.values.size() != 1 || s.indices.empty()) return std::nullopt;
    const auto c = product(program, s);
    std::vector<const Load*> own;
    for (const Load* l : loads_in(s))
      if (made.count(l->buffer.get())) own.push_back(l);
    if (made.empty() && !s.combiner) {
      ahead.push_back(&s);
      continue;
    }
    if (made.empty()) {
      if (!c) return std::nullopt;
      f.first = *c;
      f.row_dims = s.indices.size() - 1;
      for (const Stage* map : ahead) {
        const bool rows = holds_rows(s, map->outputs[0].get(), f);
        (rows ? f.between : f.ahead).push_back(described(*map, f, made));
        (rows ? f.between : f.ahead).back().before = true;
      }
    }
    const bool rows = std::all_of(own.begin(), own.end(),
                                  [&](const Load* l) { return by_rows(s, *l, f.row_dims); });
    if (!rows || (!made.empty() && own.empty())) return std::nullopt;
    if (c && !made.empty() && s.axes[f.row_dims - 1].axis.var.name() == c->rows->loop) {
      f.second = *c;
      made.insert(s.outputs[0].get());
      return n;
    }
    made.insert(s.outputs[0].get());
    f.between.push_back(described(s, f, made));
  }
  return std::nullopt;
}

/// The reductions behind the second product: none, or one that joins its tiles.
bool read_fold(const Program& program, size_t second, FusedProducts& f, const Buffers& made) {
  const std::vector<StagePath> paths = stage_paths(program.body);
  const Stage& product = *paths[second].stage;
  const bool tiled = product.indices.size() == f.row_dims + 2;
  for (size_t n = second + 1; n < paths.size(); ++n) {
    const Stage& s = *paths[n].stage;
    if (!s.combiner) continue;
    const size_t spatial = s.indices.size();
    if (!tiled || !f.fold.empty() || n != second + 1 || spatial != f.row_dims + 1 ||
        s.axes.size() != spatial + 1)
      return false;
    for (const Load* l : loads_in(s))
      if (!made.count(l->buffer.get()) || !by_rows(s, *l, f.row_dims)) return false;
    f.fold = s.name;
    f.tiles = {paths[n].loops.back()->var.name(), as_int(s.axes.back().axis.extent).value_or(0)};
  }
  const size_t outside = f.row_dims - (tiled ? 0 : 1);
  return f.fold.empty() != tiled && f.second.batch.size() == outside;
}

}  // namespace

std::optional<FusedProducts> find_fused_products(const Program& program) {
  const Program bare = without_conditions(program);
  FusedProducts f;
  Buffers made;  // by the first product and what follows it
  const auto second = read_products(bare, f, made);
  if (!second || !read_fold(bare, *second, f, made)) return std::nullopt;
  return f;
}

}  // namespace tenon
