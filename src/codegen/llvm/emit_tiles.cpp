#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"
#include "ir/tile_nest.h"

namespace tenon {

namespace {

constexpr int kTiles = 8, kTileRows = 16, kTileBytes = 64;

/// Seen in the module alone.
llvm::GlobalVariable* add_global(llvm::Module& module, const char* name, llvm::Constant* start) {
  auto* out = llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(name, start->getType()));
  out->setInitializer(start);
  out->setLinkage(llvm::GlobalValue::InternalLinkage);
  return out;
}

/// Palette 1, every tile 16 rows of 64 bytes (Intel SDM vol. 1, 18.3).
llvm::Constant* tile_config(llvm::Module& module) {
  constexpr const char* kName = "tenon_tile_config";
  if (auto* known = module.getGlobalVariable(kName, true)) return known;
  uint8_t bytes[64] = {1};
  for (int t = 0; t < kTiles; ++t) {
    bytes[16 + 2 * t] = kTileBytes;
    bytes[48 + t] = kTileRows;
  }
  llvm::Constant* data = llvm::ConstantDataArray::get(module.getContext(), llvm::ArrayRef(bytes));
  llvm::GlobalVariable* config = add_global(module, kName, data);
  config->setConstant(true);
  config->setAlignment(llvm::Align(64));
  return config;
}

/// Linux gives a process tile registers when it asks: arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA).
void ask_for_tiles(llvm::Module& module, llvm::IRBuilder<>& builder) {
  constexpr uint64_t kArchPrctl = 158, kRequest = 0x1023, kTileData = 18;
  auto* type = llvm::FunctionType::get(builder.getInt64Ty(), {builder.getInt64Ty()}, true);
  builder.CreateCall(
      module.getOrInsertFunction("syscall", type),
      {builder.getInt64(kArchPrctl), builder.getInt64(kRequest), builder.getInt64(kTileData)});
}

}  // namespace

/// A function of the module that readies this thread's tiles. The process asks for them once;
/// asking twice at the same time does no harm.
llvm::Function* Emitter::tiles_on() {
  constexpr const char* kName = "tenon_tiles_on";
  if (auto* known = module_.getFunction(kName)) return known;
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, kName, module_);
  f->addFnAttr("target-features", feature_text(target_));
  f->addFnAttr(llvm::Attribute::NoInline);
  llvm::GlobalVariable* asked = add_global(module_, "tenon_tiles_asked", builder_.getInt8(0));
  llvm::BasicBlock* entry = llvm::BasicBlock::Create(context_, "entry", f);
  llvm::BasicBlock* ask = llvm::BasicBlock::Create(context_, "ask", f);
  llvm::BasicBlock* ready = llvm::BasicBlock::Create(context_, "ready", f);
  llvm::IRBuilder<> b(entry);
  auto* before = b.CreateLoad(b.getInt8Ty(), asked);
  before->setAtomic(llvm::AtomicOrdering::Monotonic);
  before->setAlignment(llvm::Align(1));
  b.CreateCondBr(b.CreateICmpNE(before, b.getInt8(0)), ready, ask);
  b.SetInsertPoint(ask);
  ask_for_tiles(module_, b);
  auto* mark = b.CreateStore(b.getInt8(1), asked);
  mark->setAtomic(llvm::AtomicOrdering::Monotonic);
  mark->setAlignment(llvm::Align(1));
  b.CreateBr(ready);
  b.SetInsertPoint(ready);
  b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {tile_config(module_)});
  b.CreateRetVoid();
  return f;
}

/// Where a tile starts and how far its rows are apart: base + rows * stride, in elements.
struct Emitter::TileOperand {
  const BufferNode* buffer;
  Linear base;       // of the first tile
  int64_t along[4];  // elements per iteration of rows, lanes, steps, group
};

/// `index` over the four loops of the nest. The loops' variables are bound to marks while it is
/// taken apart.
Emitter::TileOperand Emitter::tile_operand(const TileNest& nest, const BufferNode& buffer,
                                           const Expr& index) {
  const For* loops[] = {nest.rows, nest.lanes, nest.steps, nest.group};
  llvm::Instruction* marks[4];
  llvm::Value* none = llvm::PoisonValue::get(builder_.getInt64Ty());
  memo_.assign(1, {});
  for (size_t n = 0; n < 4; ++n) {
    marks[n] = llvm::cast<llvm::Instruction>(builder_.CreateFreeze(none));
    bind(loops[n]->var, marks[n]);
  }
  TileOperand out{&buffer, linear(index), {}};
  for (size_t n = 0; n < 4; ++n) unbind(loops[n]->var);
  memo_.assign(1, {});
  std::vector<Linear::Term> kept;
  for (const Linear::Term& t : out.base.terms) {
    const auto mark = std::find(std::begin(marks), std::end(marks), t.value);
    if (mark == std::end(marks))
      kept.push_back(t);
    else
      out.along[mark - std::begin(marks)] = t.coefficient;
  }
  out.base.terms = std::move(kept);
  for (size_t n = 0; n < 4; ++n) {
    const auto start = as_int(loops[n]->min);
    TENON_CHECK(marks[n]->use_empty() && start, "\"{}\" is no sum over the loops of its tiles",
                print(index));
    out.base.constant += *start * out.along[n];
    marks[n]->eraseFromParent();
  }
  return out;
}

namespace {

int64_t extent(const For* loop) { return *as_int(loop->extent); }

}  // namespace

void Emitter::tile_call(unsigned id, int tile, const TileOperand& at, const Linear& offset,
                        int64_t row_stride) {
  Linear place = at.base;
  for (const Linear::Term& t : offset.terms) place.terms.push_back(t);
  place.constant += offset.constant;
  builder_.CreateIntrinsic(
      id, {},
      {builder_.getInt8(static_cast<uint8_t>(tile)), pointer(*at.buffer, place),
       builder_.getInt64(row_stride * byte_size(at.buffer->dtype))});
}

/// Sums stay in tiles: rows x lanes of them, then the tiles of A for each row of sums, then as many
/// of B as are left.
void Emitter::emit_tiles(const For& n) {
  const auto nest = find_tile_nest(n);
  TENON_CHECK(nest, "loop \"{}\" holds no product of tiles", n.var.name());
  frame_.uses_tiles = true;
  const IntrinsicParts parts = parts_of(*n.intrinsic);
  const auto operand = [&](const Load& l) { return tile_operand(*nest, *l.buffer, l.indices[0]); };
  TileOperand a = operand(*nest->a), b = operand(*nest->b);
  if (a.along[1] != 0) std::swap(a, b);
  const TileOperand c = tile_operand(*nest, *nest->update->buffer, nest->update->indices[0]);
  const bool fits = a.along[1] == 0 && a.along[2] == parts.group && a.along[3] == 1 &&
                    b.along[0] == 0 && b.along[1] == parts.group && b.along[3] == 1 &&
                    c.along[1] == 1 && c.along[2] == 0 && c.along[3] == 0;
  TENON_CHECK(fits, "the operands of loop \"{}\" do not lie in tiles", n.var.name());
  const int64_t row_tiles = extent(nest->rows) / parts.rows,
                lane_tiles = extent(nest->lanes) / parts.lanes;
  if (row_tiles * lane_tiles + row_tiles + 1 > kTiles)
    throw UserError(fmt::format(
        "code generation: loop \"{}\" needs {} x {} tiles of sums; {} tiles hold those, one for "
        "each row and one more\n  try: 2 x 2",
        n.var.name(), row_tiles, lane_tiles, kTiles));
  const auto number = [](int64_t value) {
    Linear out;
    out.constant = value;
    return out;
  };
  const auto each_sum = [&](llvm::Intrinsic::ID id) {
    for (int64_t r = 0; r < row_tiles; ++r)
      for (int64_t l = 0; l < lane_tiles; ++l)
        tile_call(id, static_cast<int>(r * lane_tiles + l), c,
                  number(r * parts.rows * c.along[0] + l * parts.lanes), c.along[0]);
  };
  if (!nest->init) each_sum(llvm::Intrinsic::x86_tileloadd64);
  for (int64_t t = 0; nest->init && t < row_tiles * lane_tiles; ++t)
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {},
                             {builder_.getInt8(static_cast<uint8_t>(t))});
  emit_tile_steps(n, a, b, row_tiles, lane_tiles, extent(nest->steps) / parts.steps);
  each_sum(llvm::Intrinsic::x86_tilestored64);
}

/// for each whole step: load the tiles of A and B, and add their products.
void Emitter::emit_tile_steps(const For& n, const TileOperand& a, const TileOperand& b,
                              int64_t row_tiles, int64_t lane_tiles, int64_t steps) {
  const IntrinsicParts parts = parts_of(*n.intrinsic);
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* loop = new_block("tiles");
  llvm::BasicBlock* after = new_block("tiles.done");
  builder_.CreateBr(loop);
  builder_.SetInsertPoint(loop);
  llvm::PHINode* at = builder_.CreatePHI(builder_.getInt64Ty(), 2, "step");
  at->addIncoming(builder_.getInt64(0), before);
  frame_.depths[at] = ++frame_.loop_depth;
  const auto place = [&](int64_t start, int64_t per_step) {
    Linear out = linear_value(at);
    for (Linear::Term& t : out.terms) t.coefficient *= per_step;
    out.constant = start;
    return out;
  };
  const int sums = static_cast<int>(row_tiles * lane_tiles),
            first_b = sums + static_cast<int>(row_tiles), spare = kTiles - first_b;
  const llvm::Intrinsic::ID dot =
      llvm::Function::lookupIntrinsicID(n.intrinsic->implementations[0].llvm);
  for (int64_t l = 0; l < lane_tiles; ++l) {
    const int b_tile = first_b + static_cast<int>(l) % spare;
    tile_call(llvm::Intrinsic::x86_tileloadd64, b_tile, b,
              place(l * parts.lanes * b.along[1], parts.steps * b.along[2]), b.along[2]);
    for (int64_t r = 0; r < row_tiles; ++r) {
      const int a_tile = sums + static_cast<int>(r);
      if (l == 0)
        tile_call(llvm::Intrinsic::x86_tileloadd64, a_tile, a,
                  place(r * parts.rows * a.along[0], parts.steps * a.along[2]), a.along[0]);
      builder_.CreateIntrinsic(dot, {},
                               {builder_.getInt8(static_cast<uint8_t>(r * lane_tiles + l)),
                                builder_.getInt8(static_cast<uint8_t>(a_tile)),
                                builder_.getInt8(static_cast<uint8_t>(b_tile))});
    }
  }
  --frame_.loop_depth;
  llvm::Value* next = builder_.CreateAdd(at, builder_.getInt64(1), "", true, true);
  at->addIncoming(next, builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, builder_.getInt64(steps)), loop, after);
  builder_.SetInsertPoint(after);
}

/// Before the function's return: its thread gives the tiles back, having taken them on entry.
void Emitter::finish_tiles() {
  if (!frame_.uses_tiles) return;
  llvm::IRBuilder<>(frame_.entry_end).CreateCall(tiles_on());
  builder_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

}  // namespace tenon
