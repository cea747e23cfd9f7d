#include <algorithm>

#include "codegen/llvm/emitter.h"

namespace tenon {
namespace {

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

void add_term(Linear& l, llvm::Value* value, int64_t coefficient) {
  for (auto it = l.terms.begin(); it != l.terms.end(); ++it) {
    if (it->value != value) continue;
    it->coefficient = wrapping_add(it->coefficient, coefficient);
    if (it->coefficient == 0) l.terms.erase(it);
    return;
  }
  if (coefficient != 0) l.terms.push_back({value, coefficient});
}

Linear scaled(Linear l, int64_t factor) {
  if (factor == 0) return {};
  l.constant = wrapping_mul(l.constant, factor);
  for (Linear::Term& t : l.terms) t.coefficient = wrapping_mul(t.coefficient, factor);
  return l;
}

}  // namespace

Linear sum(Linear a, const Linear& b, int64_t factor) {
  a.constant = wrapping_add(a.constant, wrapping_mul(b.constant, factor));
  for (const Linear::Term& t : b.terms) add_term(a, t.value, wrapping_mul(t.coefficient, factor));
  return a;
}

Linear Emitter::linear_value(llvm::Value* v) {
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(v))
    return {constant->getSExtValue(), {}};
  return {0, {{v, 1}}};
}

/// The scalar i64 `e` as a sum; products distribute over a sum so that each term can leave its own
/// loops.
Linear Emitter::linear(const Expr& e) {
  if (const IntImm* n = e.as<IntImm>()) return {n->value, {}};
  if (const VarRef* n = e.as<VarRef>()) {
    if (auto known = frame_.linear_vars.find(n->var.get()); known != frame_.linear_vars.end())
      return known->second;
  }
  const Binary* n = e.as<Binary>();
  if (!n || n->op > BinaryOp::mul) return linear_value(emit(e));
  const Linear a = linear(n->a);
  const Linear b = linear(n->b);
  if (n->op == BinaryOp::add) return sum(a, b);
  if (n->op == BinaryOp::sub) return sum(a, b, -1);
  if (b.is_constant()) return scaled(a, b.constant);
  if (a.is_constant()) return scaled(b, a.constant);
  const Linear& many = a.terms.size() < b.terms.size() ? b : a;
  llvm::Value* factor = to_value(&many == &a ? b : a);
  Linear product;
  for (const Linear::Term& t : many.terms)
    add_term(product, builder_.CreateMul(t.value, factor), t.coefficient);
  add_term(product, factor, many.constant);
  return product;
}

llvm::Value* Emitter::to_value(const Linear& l) {
  llvm::Value* total = nullptr;
  for (const Linear::Term& t : l.terms) {
    llvm::Value* part = t.coefficient == 1
                            ? t.value
                            : builder_.CreateMul(t.value, builder_.getInt64(t.coefficient));
    total = total ? builder_.CreateAdd(total, part) : part;
  }
  if (!total) return builder_.getInt64(l.constant);
  return l.constant == 0 ? total : builder_.CreateAdd(total, builder_.getInt64(l.constant));
}

std::optional<LaneForm> Emitter::lane_form(const Expr& e) {
  if (e.lanes() == 1) return LaneForm{linear(e), {}};
  if (const Ramp* n = e.as<Ramp>()) return LaneForm{linear(n->base), linear(n->stride)};
  if (const Broadcast* n = e.as<Broadcast>()) return LaneForm{linear(n->value), {}};
  const Binary* n = e.as<Binary>();
  if (!n || n->op > BinaryOp::mul) return std::nullopt;
  const auto a = lane_form(n->a);
  const auto b = lane_form(n->b);
  if (!a || !b) return std::nullopt;
  if (n->op == BinaryOp::add) return LaneForm{sum(a->base, b->base), sum(a->stride, b->stride)};
  if (n->op == BinaryOp::sub)
    return LaneForm{sum(a->base, b->base, -1), sum(a->stride, b->stride, -1)};
  auto is_number = [](const LaneForm& f) {
    return f.base.is_constant() && f.stride.is_constant() && f.stride.constant == 0;
  };
  const LaneForm& other = is_number(*b) ? *a : *b;
  if (!is_number(*a) && !is_number(*b)) return std::nullopt;
  const int64_t factor = is_number(*b) ? b->base.constant : a->base.constant;
  return LaneForm{scaled(other.base, factor), scaled(other.stride, factor)};
}

/// A vector index as an LLVM vector: splat(base) + splat(stride) * <0, 1, ...>.
llvm::Value* Emitter::lane_indices(const Expr& e) {
  const Ramp* ramp = e.as<Ramp>();
  TENON_CHECK(ramp, "lane_indices of {}", print(e));
  const Type t = e.type();
  std::vector<llvm::Constant*> numbers;
  for (int i = 0; i < t.lanes; ++i) numbers.push_back(int_splat(t.element(), i));
  llvm::Value* base = splat(emit(ramp->base), t.lanes);
  llvm::Value* stride = splat(emit(ramp->stride), t.lanes);
  return builder_.CreateAdd(base, builder_.CreateMul(stride, llvm::ConstantVector::get(numbers)));
}

/// The innermost loop that `v` changes in, as far as one can see: arithmetic on loop variables,
/// arguments and constants; anything else counts as changing in the current loop.
int Emitter::depth_of(llvm::Value* v) {
  if (llvm::isa<llvm::Constant>(v) || llvm::isa<llvm::Argument>(v)) return 0;
  if (auto known = frame_.depths.find(v); known != frame_.depths.end()) return known->second;
  int depth = frame_.loop_depth;
  const bool arithmetic = llvm::isa<llvm::BinaryOperator>(v) || llvm::isa<llvm::CastInst>(v) ||
                          llvm::isa<llvm::SelectInst>(v) || llvm::isa<llvm::CmpInst>(v);
  if (arithmetic) {
    depth = 0;
    for (llvm::Value* operand : llvm::cast<llvm::Instruction>(v)->operands())
      depth = std::max(depth, depth_of(operand));
  }
  return frame_.depths[v] = depth;
}

/// base + outermost terms + ... + innermost terms + constant, one address computation per loop
/// depth: LICM then moves each to its loop and accesses that differ by constants share one
/// register.
llvm::Value* Emitter::pointer(const BufferNode& b, const Linear& index) {
  llvm::Value* at = home(b).pointer;
  llvm::Type* element = memory_type(b.dtype);
  std::set<int> depths;
  for (const Linear::Term& t : index.terms) depths.insert(depth_of(t.value));
  for (int depth : depths) {
    Linear part;
    for (const Linear::Term& t : index.terms) {
      if (depth_of(t.value) == depth) part.terms.push_back(t);
    }
    at = builder_.CreateGEP(element, at, to_value(part));
  }
  return index.constant == 0 ? at
                             : builder_.CreateGEP(element, at, builder_.getInt64(index.constant));
}

/// What is known of the address: a caller's array is aligned to its element, the workspace to 64
/// bytes.
llvm::Align Emitter::alignment(const BufferNode& b, const Linear& index) {
  const uint64_t size = byte_size(b.dtype);
  if (!plan_.slots.count(&b)) return llvm::Align(size);
  uint64_t bits = 64 | static_cast<uint64_t>(index.constant) * size;
  for (const Linear::Term& t : index.terms) bits |= static_cast<uint64_t>(t.coefficient) * size;
  return llvm::Align(bits & (~bits + 1));
}

}  // namespace tenon
