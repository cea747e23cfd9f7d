#include <llvm/Analysis/VectorUtils.h>

#include <algorithm>
#include <bit>

#include "codegen/llvm/emitter.h"

// Steps of an unrolled loop that gather vectors from rows which are contiguous along that loop read
// the rows instead and transpose them in registers: first into vectors of 16-byte pieces, then
// within those pieces, which takes log2 rounds of interleaving.
//
//   for i in 0..4  unroll                       rows[r] = x[r*n .. r*n + 3]      r in 0..16
//     y[ramp(i*16, 1, 16)] =              ->    four vectors of four rows each, interleaved twice
//         f(x[ramp(i, n, 16)])                  y[ramp(i*16, 1, 16)] = f(column i)

namespace tenon {

namespace {

constexpr int kPieceBytes = 16;

// lo: a0 b0 a1 b1 ..., hi: the same of the upper halves, within each piece of `step` lanes.
std::vector<int> interleaving(int lanes, int step, bool high) {
  std::vector<int> pick(lanes);
  for (int k = 0; k < lanes; ++k) {
    const int piece = k / step * step, within = k % step;
    pick[k] = piece + within / 2 + (high ? step / 2 : 0) + (within % 2 == 1 ? lanes : 0);
  }
  return pick;
}

int piece_elements(const Load& n) { return kPieceBytes / byte_size(n.buffer->dtype); }

bool has_select(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    found = found || x.as<Select>();
    return true;
  });
  return found;
}

bool reads(const Expr& e, const Buffer& b) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const Load* l = x.as<Load>();
    found = found || (l && l->buffer == b);
    return true;
  });
  return found;
}

int lanes_of(const Store& s) { return std::max(s.value.lanes(), s.indices[0].lanes()); }

}  // namespace

/// A store in the body of an expanded loop, and the loops between, which are expanded too.
struct Emitter::Transposed {
  std::vector<const For*> between;
  const Store* store = nullptr;
};

/// Whether the index is known where the statement starts, and moves by one with each step of the
/// loop, each lane alike. The loop is bound to its first step, before and after.
bool Emitter::steps_by_one(const Expr& index, const For& n, const Linear& min) {
  for (const Var& v : free_vars(index))
    if (!frame_.vars.count(v.get())) return false;
  memo_.assign(1, {});
  const auto here = lane_form(index);
  bool all = here.has_value();
  for (int64_t k = 1; all && k < *as_int(n.extent); ++k) {
    bind_step(n, min, k);
    memo_.assign(1, {});
    const auto next = lane_form(index);
    all = next.has_value();
    if (!all) break;
    const Linear base = sum(next->base, here->base, -1),
                 stride = sum(next->stride, here->stride, -1);
    all = base.is_constant() && base.constant == k && stride.is_constant() && stride.constant == 0;
  }
  bind_step(n, min, 0);
  return all;
}

/// The loads that gather along loop n, bound to its first step, what lies next to each other.
std::vector<Expr> Emitter::transposed_loads(const For& n, const Store& store) {
  std::vector<Expr> found;
  const int lanes = lanes_of(store);
  if (lanes == 1 || !std::has_single_bit(static_cast<unsigned>(lanes)) || has_select(store.value))
    return found;  // a side of a select is read under a condition
  const Linear min = linear(n.min);
  walk(store.value, [&](const Expr& e) {
    const Load* l = e.as<Load>();
    if (!l || e.lanes() != lanes || in_registers(*l->buffer)) return true;
    if (lanes % piece_elements(*l) != 0 || !steps_by_one(l->indices[0], n, min)) return true;
    memo_.assign(1, {});
    const bool known = !l->mask.defined() ||
                       (free_vars(l->mask).empty() && llvm::isa<llvm::Constant>(emit(l->mask)));
    if (known) found.push_back(e);
    return true;
  });
  return found;
}

/// What the load reads in this step of the loop and those after it, as many as a piece has
/// elements.
std::vector<llvm::Value*> Emitter::transposed_columns(const Load& n, int lanes) {
  const BufferNode& b = *n.buffer;
  memo_.assign(1, {});
  const LaneForm form = *lane_form(n.indices[0]);
  const int step = piece_elements(n);
  auto* mask =
      n.mask.defined() ? llvm::cast<llvm::Constant>(lane_mask(emit(n.mask), lanes)) : nullptr;
  auto* nothing = llvm::Constant::getNullValue(wide(memory_type(b.dtype), step));
  std::vector<llvm::Value*> block;
  for (int first = 0; first < step; ++first) {
    std::vector<llvm::Value*> pieces;
    for (int row = first; row < lanes; row += step) {
      const Linear at = sum(form.base, form.stride, row);
      const bool on = !mask || mask->getAggregateElement(row)->isOneValue();
      pieces.push_back(on ? load_contiguous(b, at, step, nullptr, nullptr) : nothing);
    }
    block.push_back(llvm::concatenateVectors(builder_, pieces));
  }
  const auto low = interleaving(lanes, step, false), high = interleaving(lanes, step, true);
  for (int round = 1; round < step; round *= 2) {
    std::vector<llvm::Value*> next;
    for (int k = 0; k < step / 2; ++k) {
      next.push_back(builder_.CreateShuffleVector(block[k], block[k + step / 2], low));
      next.push_back(builder_.CreateShuffleVector(block[k], block[k + step / 2], high));
    }
    block = std::move(next);
  }
  for (llvm::Value*& column : block) column = from_memory(b.dtype, column);
  return block;
}

/// All steps of loop n, for one step of each loop between it and the store.
void Emitter::emit_transposed_steps(const For& n, const Transposed& part, int64_t extent) {
  const int lanes = lanes_of(*part.store);
  const Linear min = linear(n.min);
  bind_step(n, min, 0);
  const std::vector<Expr> loads = transposed_loads(n, *part.store);
  int64_t steps = 1;  // at once
  for (const Expr& l : loads) steps = std::max<int64_t>(steps, piece_elements(*l.as<Load>()));
  for (int64_t first = 0; first < extent; first += steps) {
    if (first + steps > extent) steps = 1;
    std::vector<std::unordered_map<const ExprNode*, llvm::Value*>> given(steps);
    for (const Expr& l : loads) {
      const int64_t own = piece_elements(*l.as<Load>());
      for (int64_t at = 0; at + own <= steps; at += own) {
        bind_step(n, min, first + at);
        const std::vector<llvm::Value*> columns = transposed_columns(*l.as<Load>(), lanes);
        for (int64_t k = 0; k < own; ++k) given[at + k][l.get()] = columns[k];
      }
    }
    for (int64_t k = 0; k < steps; ++k) {
      bind_step(n, min, first + k);
      given_ = std::move(given[k]);
      emit_store(*part.store);
    }
    given_.clear();
  }
}

/// The same for all steps of the loops between.
void Emitter::emit_transposed_nest(const For& n, const Transposed& part, size_t depth,
                                   int64_t extent) {
  if (depth == part.between.size()) return emit_transposed_steps(n, part, extent);
  const For& loop = *part.between[depth];
  const Linear min = linear(loop.min);
  for (int64_t i = 0; i < *as_int(loop.extent); ++i) {
    bind_step(loop, min, i);
    emit_transposed_nest(n, part, depth + 1, extent);
  }
  unbind(loop.var);
}

/// Adds the stores of a body that is nothing but stores and spatial loops to expand.
bool Emitter::collect_transposed(const Stmt& s, std::vector<Transposed>& parts, Transposed part) {
  if (const Seq* n = s.as<Seq>())
    return std::all_of(n->stmts.begin(), n->stmts.end(),
                       [&](const Stmt& each) { return collect_transposed(each, parts, part); });
  if (const For* n = s.as<For>()) {
    const auto count = as_int(n->extent);
    const bool expanded = count && *count > 0 && (*count == 1 || plan_.unrolled.count(n) > 0);
    part.between.push_back(n);
    return expanded && n->kind == AxisKind::spatial && collect_transposed(n->body, parts, part);
  }
  part.store = s.as<Store>();
  if (!part.store || part.store->atomic || in_registers(*part.store->buffer)) return false;
  parts.push_back(std::move(part));
  return true;
}

/// Whether loop n, which is expanded, gathers so; then it has been emitted. Its stores are to other
/// elements each and to buffers that it does not read, so that their order does not matter.
bool Emitter::emit_transposed(const For& n, int64_t extent) {
  std::vector<Transposed> parts;
  if (n.kind != AxisKind::spatial || extent < 2 || !collect_transposed(n.body, parts, {}))
    return false;
  for (const Transposed& a : parts)
    for (const Transposed& b : parts)
      if (reads(a.store->value, b.store->buffer)) return false;
  bool found = false;
  bind_step(n, linear(n.min), 0);
  for (const Transposed& part : parts) {
    for (const For* f : part.between) bind_step(*f, linear(f->min), 0);
    found = found || !transposed_loads(n, *part.store).empty();
    for (const For* f : part.between) unbind(f->var);
  }
  for (const Transposed& part : parts)
    if (found) emit_transposed_nest(n, part, 0, extent);
  unbind(n.var);
  return found;
}

}  // namespace tenon
