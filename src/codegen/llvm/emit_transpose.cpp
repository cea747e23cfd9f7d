#include <algorithm>
#include <optional>

#include "codegen/llvm/emitter.h"

namespace tenon {
namespace {

/// The stores of a body that is nothing else.
bool collect_stores(const Stmt& s, std::vector<const Store*>& out) {
  if (!s.defined()) return true;
  if (const Store* store = s.as<Store>()) {
    out.push_back(store);
    return true;
  }
  const Seq* parts = s.as<Seq>();
  return parts && std::all_of(parts->stmts.begin(), parts->stmts.end(),
                              [&](const Stmt& part) { return collect_stores(part, out); });
}

/// Lanes that are on, for a mask of numbers alone: `ramp(0, 1, 16) < 8`.
std::optional<std::vector<bool>> constant_lanes(llvm::Value* mask, int lanes) {
  std::vector<bool> on(static_cast<size_t>(lanes), true);
  if (!mask) return on;
  const auto* numbers = llvm::dyn_cast<llvm::Constant>(mask);
  if (!numbers || !mask->getType()->isVectorTy()) return std::nullopt;
  for (int i = 0; i < lanes; ++i) {
    const llvm::Constant* lane = numbers->getAggregateElement(static_cast<unsigned>(i));
    if (!lane || !llvm::isa<llvm::ConstantInt>(lane)) return std::nullopt;
    on[static_cast<size_t>(i)] = lane->isOneValue();
  }
  return on;
}

bool same_terms(const Linear& a, const Linear& b) {
  if (a.terms.size() != b.terms.size()) return false;
  for (size_t n = 0; n < a.terms.size(); ++n)
    if (a.terms[n].value != b.terms[n].value || a.terms[n].coefficient != b.terms[n].coefficient)
      return false;
  return true;
}

/// Rows to columns, in log2(n) rounds of shuffles of two vectors each:
///   a = a0 a1 a2 a3, b = b0 b1 b2 b3, two apart   ->   a0 a1 b0 b1, a2 a3 b2 b3
void transpose(llvm::IRBuilder<>& builder, std::vector<llvm::Value*>& rows) {
  const int n = static_cast<int>(rows.size());
  std::vector<int> low(rows.size()), high(rows.size());
  for (int apart = n / 2; apart > 0; apart /= 2) {
    for (int k = 0; k < n; ++k) {
      const bool second = (k & apart) != 0;
      low[static_cast<size_t>(k)] = second ? n + k - apart : k;
      high[static_cast<size_t>(k)] = second ? n + k : k + apart;
    }
    for (int k = 0; k < n; ++k) {
      if (k & apart) continue;
      llvm::Value *&a = rows[static_cast<size_t>(k)], *&b = rows[static_cast<size_t>(k + apart)];
      llvm::Value* first = builder.CreateShuffleVector(a, b, low);
      b = builder.CreateShuffleVector(a, b, high);
      a = first;
    }
  }
}

}  // namespace

/// Loads of an unrolled loop whose lanes lie apart, while its iterations lie next to each other:
/// a square is read by rows and transposed in registers, once for all iterations.
///
///     for r in 0..16  unroll                      v0 = X[0..16], v1 = X[64..80], ..
///       Y[ramp(r*32, 1, 16)] =            ->      t0, t1, .. = columns of v0, v1, ..
///         X[ramp(r, 64, 16)]                      Y[0..16] = t0, Y[32..48] = t1, ..
void Emitter::transpose_loads(const For& n, int64_t extent) {
  std::vector<const Store*> stores;
  if (extent < 2 || !collect_stores(n.body, stores)) return;
  for (const Store* store : stores)
    walk(store->value, [&](const Expr& e) {
      if (e.as<Select>()) return false;  // a side of it is read under a condition
      const Load* load = e.as<Load>();
      const bool written = load && std::any_of(stores.begin(), stores.end(), [&](const Store* s) {
                             return s->buffer == load->buffer;
                           });
      if (load && !written) transpose_load(n, *load, e.lanes(), extent);
      return true;
    });
}

void Emitter::transpose_load(const For& n, const Load& load, int lanes, int64_t extent) {
  const BufferNode& b = *load.buffer;
  const bool square = (lanes == 4 || lanes == 8 || lanes == 16) && extent * 2 > lanes;
  if (!square || extent > lanes || in_registers(b) || byte_size(b.dtype) != 4) return;
  if (frame_.transposed.count(&load)) return;
  const Linear min = linear(n.min);
  const auto at = [&](int64_t step) {
    Linear value = min;
    value.constant += step;
    bind(n.var, to_value(value));
    frame_.linear_vars[n.var.get()] = value;
    return lane_form(load.indices[0]);
  };
  memo_.assign(1, {});
  const auto second = at(1);
  memo_.assign(1, {});
  const auto first = at(0);
  llvm::Value* mask = load.mask.defined() ? lane_mask(emit(load.mask), lanes) : nullptr;
  const auto on = constant_lanes(mask, lanes);
  memo_.assign(1, {});
  if (!first || !second || !on || !first->stride.is_constant()) return;
  const int64_t stride = first->stride.constant;
  const bool columns = same_terms(first->base, second->base) && second->stride.is_constant() &&
                       second->base.constant == first->base.constant + 1;
  if (!columns || stride * stride <= 1) return;
  std::vector<int> widened(static_cast<size_t>(lanes));
  for (int i = 0; i < lanes; ++i)
    widened[static_cast<size_t>(i)] = std::min<int>(i, static_cast<int>(extent));
  std::vector<llvm::Value*> rows;
  for (int i = 0; i < lanes; ++i) {
    llvm::Type* part = wide(memory_type(b.dtype), static_cast<int>(extent));
    llvm::Value* row = llvm::Constant::getNullValue(part);
    Linear place = first->base;
    place.constant += i * stride;
    if ((*on)[static_cast<size_t>(i)])
      row = load_contiguous(b, place, static_cast<int>(extent), nullptr, nullptr);
    if (extent < lanes)
      row = builder_.CreateShuffleVector(row, llvm::Constant::getNullValue(part), widened);
    rows.push_back(row);
  }
  transpose(builder_, rows);
  for (llvm::Value*& row : rows) row = from_memory(b.dtype, row);
  frame_.transposed[&load] = std::move(rows);
}

}  // namespace tenon
