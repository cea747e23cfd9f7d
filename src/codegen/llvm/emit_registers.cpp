#include "codegen/llvm/emitter.h"

// Register buffers: each part (one vector, or one scalar) is an alloca of its own, accessed as a
// whole, so that mem2reg turns it into SSA values: one phi per accumulator of a loop.

namespace tenon {

// Unrolled code may name elements outside of the buffer, but only where a guard or a select leaves
// them out: they read as 0 and are not written.
bool Emitter::holds(const Home& h, int64_t element) {
  return element >= 0 && element / h.part_lanes < static_cast<int64_t>(h.parts.size());
}

std::vector<int64_t> Emitter::register_indices(const BufferNode& b, const Expr& index, int lanes) {
  std::vector<int64_t> at(lanes);
  if (const auto form = lane_form(index);
      form && form->base.is_constant() && form->stride.is_constant()) {
    for (int i = 0; i < lanes; ++i) at[i] = form->base.constant + i * form->stride.constant;
    return at;
  }
  auto* constant = llvm::dyn_cast<llvm::Constant>(emit(index));
  for (int i = 0; i < lanes; ++i) {
    auto* number = constant
                       ? llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(i))
                       : nullptr;
    if (!number) {
      throw UserError(
          fmt::format("code generation: register buffer \"{}\" is indexed by {}, which is known "
                      "only at run time; registers "
                      "have no addresses\n  try: unroll the loops in that index, or put the buffer "
                      "in global scope",
                      b.name, print(index)));
    }
    at[i] = number->getSExtValue();
  }
  return at;
}

llvm::Value* Emitter::read_register(const BufferNode& b, const std::vector<int64_t>& at) {
  const Home& h = home(b);
  const int lanes = static_cast<int>(at.size());
  llvm::Type* part_type = value_type({b.dtype, h.part_lanes});
  auto part = [&](int64_t element) -> llvm::Value* {
    if (!holds(h, element)) return llvm::Constant::getNullValue(part_type);
    return builder_.CreateLoad(part_type, h.parts[element / h.part_lanes]);
  };
  bool whole = lanes == h.part_lanes && at[0] % lanes == 0;
  for (int i = 0; whole && i < lanes; ++i) whole = at[i] == at[0] + i;
  if (whole) return part(at[0]);
  auto element = [&](int64_t i) -> llvm::Value* {
    llvm::Value* value = part(i);
    if (h.part_lanes == 1) return value;
    return builder_.CreateExtractElement(value, holds(h, i) ? i % h.part_lanes : 0);
  };
  if (lanes == 1) return element(at[0]);
  llvm::Value* result = llvm::PoisonValue::get(value_type({b.dtype, lanes}));
  for (int i = 0; i < lanes; ++i) result = builder_.CreateInsertElement(result, element(at[i]), i);
  return result;
}

void Emitter::write_register(const BufferNode& b, const std::vector<int64_t>& at,
                             llvm::Value* value) {
  const Home& h = home(b);
  const int lanes = static_cast<int>(at.size());
  bool whole = lanes == h.part_lanes && at[0] % lanes == 0 && holds(h, at[0]);
  for (int i = 0; whole && i < lanes; ++i) whole = at[i] == at[0] + i;
  if (whole) {
    builder_.CreateStore(value, h.parts[at[0] / h.part_lanes]);
    return;
  }
  llvm::Type* part_type = value_type({b.dtype, h.part_lanes});
  for (int i = 0; i < lanes; ++i) {
    if (!holds(h, at[i])) continue;
    llvm::Value* element = lanes == 1 ? value : builder_.CreateExtractElement(value, i);
    llvm::AllocaInst* place = h.parts[at[i] / h.part_lanes];
    if (h.part_lanes > 1) {
      llvm::Value* old = builder_.CreateLoad(part_type, place);
      element = builder_.CreateInsertElement(old, element, at[i] % h.part_lanes);
    }
    builder_.CreateStore(element, place);
  }
}

}  // namespace tenon
