#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/emitter.h"
#include "codegen/llvm/machine.h"
#include "ir/tile_nest.h"

namespace tenon {

namespace {

constexpr int kTiles = 8, kTileRows = 16, kTileBytes = 64;
/// The last tiles are for the lanes' operand, whole ones; the others have the nest's rows.
constexpr int kLaneTiles = 2;

/// Seen in the module alone.
llvm::GlobalVariable* add_global(llvm::Module& module, const std::string& name,
                                 llvm::Constant* start) {
  auto* out = llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(name, start->getType()));
  out->setInitializer(start);
  out->setLinkage(llvm::GlobalValue::InternalLinkage);
  return out;
}

/// Palette 1, tiles of so many rows of 64 bytes (Intel SDM vol. 1, 18.3).
llvm::Constant* tile_config(llvm::Module& module, int rows) {
  const std::string name = "tenon_tile_config_" + std::to_string(rows);
  if (auto* known = module.getGlobalVariable(name, true)) return known;
  uint8_t bytes[64] = {1};
  for (int t = 0; t < kTiles; ++t) {
    bytes[16 + 2 * t] = kTileBytes;
    bytes[48 + t] = static_cast<uint8_t>(t < kTiles - kLaneTiles ? rows : kTileRows);
  }
  llvm::Constant* data = llvm::ConstantDataArray::get(module.getContext(), llvm::ArrayRef(bytes));
  llvm::GlobalVariable* config = add_global(module, name, data);
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
llvm::Function* Emitter::tiles_on(int rows) {
  const std::string name = "tenon_tiles_on_" + std::to_string(rows);
  if (auto* known = module_.getFunction(name)) return known;
  auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module_);
  f->addFnAttr("target-features", feature_text(target_));
  f->addFnAttr(llvm::Attribute::NoInline);
  constexpr const char* kAsked = "tenon_tiles_asked";
  llvm::GlobalVariable* asked = module_.getGlobalVariable(kAsked, true);
  if (!asked) asked = add_global(module_, kAsked, builder_.getInt8(0));
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
  b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {tile_config(module_, rows)});
  b.CreateRetVoid();
  return f;
}

/// Where the first tile starts and how far its rows are apart: base + rows * stride, in elements.
struct Emitter::TileOperand {
  const BufferNode* buffer;
  Linear base;
  // elements per iteration of these loops; 0 where there is none
  int64_t tiles = 0, rows = 0, lanes = 0, steps = 0, group = 0;
};

/// The tiles of a nest, and what each is for.
struct Emitter::TileCut {
  IntrinsicParts parts;
  llvm::Intrinsic::ID dot;
  int64_t row_tiles = 1, lane_tiles = 1, rows_each = 1, last_row = 0;  // where the last tile begins
  bool several = false;  // row tiles are iterations of their own loop

  int64_t sum(int64_t r, int64_t l) const { return r * lane_tiles + l; }
  bool holds_rows() const { return row_tiles <= lane_tiles; }
  int64_t row_tile(int64_t r) const {
    const int64_t sums = row_tiles * lane_tiles;
    return sums + r % (holds_rows() ? row_tiles : kTiles - kLaneTiles - sums);
  }
  static int64_t lane_tile(int64_t l) { return kTiles - 1 - l % kLaneTiles; }
  /// Elements from the first tile of rows to this one.
  int64_t row_start(const TileOperand& at, int64_t r) const {
    return several ? r * at.tiles : (r + 1 < row_tiles ? r * rows_each : last_row) * at.rows;
  }
};

/// `index` over the loops of the nest that are inside a tile. Their variables are bound to marks
/// while it is taken apart.
Emitter::TileOperand Emitter::tile_operand(const TileNest& nest, const BufferNode& buffer,
                                           const Expr& index) {
  TileOperand out{&buffer, {}};
  const std::pair<const For*, int64_t*> loops[] = {{nest.tiles, &out.tiles},
                                                   {nest.rows, &out.rows},
                                                   {nest.lanes, &out.lanes},
                                                   {nest.steps, &out.steps},
                                                   {nest.group, &out.group}};
  std::vector<llvm::Instruction*> marks;
  llvm::Value* none = llvm::PoisonValue::get(builder_.getInt64Ty());
  memo_.assign(1, {});
  for (const auto& [loop, along] : loops) {
    marks.push_back(llvm::cast<llvm::Instruction>(builder_.CreateFreeze(none)));
    if (loop) bind(loop->var, marks.back());
  }
  out.base = linear(index);
  for (const auto& [loop, along] : loops)
    if (loop) unbind(loop->var);
  memo_.assign(1, {});
  std::vector<Linear::Term> kept;
  for (const Linear::Term& t : out.base.terms) {
    const auto mark = std::find(marks.begin(), marks.end(), t.value);
    if (mark == marks.end())
      kept.push_back(t);
    else
      *loops[mark - marks.begin()].second = t.coefficient;
  }
  out.base.terms = std::move(kept);
  for (size_t n = 0; n < marks.size(); ++n) {
    const auto start = loops[n].first ? as_int(loops[n].first->min) : 0;
    TENON_CHECK(marks[n]->use_empty() && start, "\"{}\" is no sum over the loops of its tiles",
                print(index));
    out.base.constant += *start * *loops[n].second;
    marks[n]->eraseFromParent();
  }
  return out;
}

namespace {

int64_t extent(const For* loop) { return *as_int(loop->extent); }

Linear number(int64_t value) { return {value, {}}; }

}  // namespace

void Emitter::tile_call(unsigned id, int64_t tile, const TileOperand& at, const Linear& offset,
                        int64_t row_stride) {
  builder_.CreateIntrinsic(
      id, {},
      {builder_.getInt8(static_cast<uint8_t>(tile)), pointer(*at.buffer, sum(at.base, offset)),
       builder_.getInt64(row_stride * byte_size(at.buffer->dtype))});
}

/// Sums stay in tiles until all is added.
void Emitter::emit_tiles(const For& n) {
  const auto nest = find_tile_nest(n);
  TENON_CHECK(nest, "loop \"{}\" holds no product of tiles", n.var.name());
  TileCut cut{parts_of(*n.intrinsic),
              llvm::Function::lookupIntrinsicID(n.intrinsic->implementations[0].llvm)};
  const RowTiles rows = cut_into_tiles(extent(nest->rows), cut.parts.rows);
  cut.several = nest->tiles != nullptr;
  cut.row_tiles = cut.several ? extent(nest->tiles) : rows.count;
  cut.lane_tiles = extent(nest->lanes) / cut.parts.lanes;
  cut.rows_each = rows.each;
  cut.last_row = extent(nest->rows) - rows.each;
  if (!tiles_fit(cut.row_tiles, cut.lane_tiles))
    throw UserError(fmt::format(
        "code generation: loop \"{}\" needs {} x {} tiles of sums; six tiles hold those and what "
        "of the rows' operand stays with them\n  try: 2 x 2",
        n.var.name(), cut.row_tiles, cut.lane_tiles));
  const TileOperand c = tile_operand(*nest, *nest->update->buffer, nest->update->indices[0]);
  TENON_CHECK(c.lanes == 1 && c.steps == 0 && c.group == 0,
              "the sums of loop \"{}\" do not lie in tiles", n.var.name());
  const int own = static_cast<int>(rows.each);
  if (frame_.tile_rows == 0) frame_.tile_rows = own;
  const auto configure = [&](int to) {
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {tile_config(module_, to)});
  };
  if (own != frame_.tile_rows) configure(own);
  const auto each_sum = [&](llvm::Intrinsic::ID id) {
    for (int64_t r = 0; r < cut.row_tiles; ++r)
      for (int64_t l = 0; l < cut.lane_tiles; ++l)
        tile_call(id, cut.sum(r, l), c, number(cut.row_start(c, r) + l * cut.parts.lanes), c.rows);
  };
  if (!nest->init) each_sum(llvm::Intrinsic::x86_tileloadd64);
  for (int64_t t = 0; nest->init && t < cut.row_tiles * cut.lane_tiles; ++t)
    builder_.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {},
                             {builder_.getInt8(static_cast<uint8_t>(t))});
  emit_tile_sums(*nest, 0, cut);
  each_sum(llvm::Intrinsic::x86_tilestored64);
  if (own != frame_.tile_rows) configure(frame_.tile_rows);
}

/// The loops of the sum outside of the steps.
void Emitter::emit_tile_sums(const TileNest& nest, size_t depth, const TileCut& cut) {
  if (depth == nest.sums.size()) return emit_tile_steps(nest, cut);
  const For& loop = *nest.sums[depth];
  if (extent(&loop) == 1) {
    memo_.assign(1, {});
    bind_step(loop, linear(loop.min), 0);
    emit_tile_sums(nest, depth + 1, cut);
    return unbind(loop.var);
  }
  llvm::Value* begin = evaluate(loop.min);
  llvm::Value* end = builder_.CreateAdd(begin, builder_.getInt64(extent(&loop)));
  emit_loop(loop, begin, end, false, [&] { emit_tile_sums(nest, depth + 1, cut); });
}

/// For each whole step: load the tiles of A and B, and add their products.
void Emitter::emit_tile_steps(const TileNest& nest, const TileCut& cut) {
  const auto operand = [&](const Load& l) { return tile_operand(nest, *l.buffer, l.indices[0]); };
  TileOperand a = operand(*nest.a), b = operand(*nest.b);
  if (a.lanes != 0) std::swap(a, b);
  const bool fits = a.lanes == 0 && a.steps == cut.parts.group && a.group == 1 && b.tiles == 0 &&
                    b.rows == 0 && b.lanes == cut.parts.group && b.group == 1;
  TENON_CHECK(fits, "the operands of loop \"{}\" do not lie in tiles", nest.rows->var.name());
  const int64_t steps = extent(nest.steps) / cut.parts.steps;
  if (steps == 1) return emit_tile_step(cut, a, b, builder_.getInt64(0));
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* loop = new_block("tiles");
  llvm::BasicBlock* after = new_block("tiles.done");
  builder_.CreateBr(loop);
  builder_.SetInsertPoint(loop);
  llvm::PHINode* at = builder_.CreatePHI(builder_.getInt64Ty(), 2, "step");
  at->addIncoming(builder_.getInt64(0), before);
  frame_.depths[at] = ++frame_.loop_depth;
  emit_tile_step(cut, a, b, at);
  --frame_.loop_depth;
  llvm::Value* next = builder_.CreateAdd(at, builder_.getInt64(1), "", true, true);
  at->addIncoming(next, builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateICmpSLT(next, builder_.getInt64(steps)), loop, after);
  builder_.SetInsertPoint(after);
}

/// The operand of fewer tiles is loaded with the first tile of the other one and stays.
void Emitter::emit_tile_step(const TileCut& cut, const TileOperand& a, const TileOperand& b,
                             llvm::Value* step) {
  const auto place = [&](int64_t start, int64_t per_step) {
    return sum(number(start), linear_value(step), per_step);
  };
  const auto load_rows = [&](int64_t r) {
    tile_call(llvm::Intrinsic::x86_tileloadd64, cut.row_tile(r), a,
              place(cut.row_start(a, r), cut.parts.steps * a.steps), a.rows);
  };
  const auto load_lanes = [&](int64_t l) {
    tile_call(llvm::Intrinsic::x86_tileloadd64, TileCut::lane_tile(l), b,
              place(l * cut.parts.lanes * b.lanes, cut.parts.steps * b.steps), b.steps);
  };
  const auto add = [&](int64_t r, int64_t l) {
    const auto tile = [&](int64_t t) { return builder_.getInt8(static_cast<uint8_t>(t)); };
    builder_.CreateIntrinsic(
        cut.dot, {}, {tile(cut.sum(r, l)), tile(cut.row_tile(r)), tile(TileCut::lane_tile(l))});
  };
  const int64_t outer = cut.holds_rows() ? cut.lane_tiles : cut.row_tiles,
                inner = cut.holds_rows() ? cut.row_tiles : cut.lane_tiles;
  for (int64_t o = 0; o < outer; ++o) {
    cut.holds_rows() ? load_lanes(o) : load_rows(o);
    for (int64_t i = 0; i < inner; ++i) {
      if (o == 0) cut.holds_rows() ? load_rows(i) : load_lanes(i);
      cut.holds_rows() ? add(i, o) : add(o, i);
    }
  }
}

/// Before the function's return: its thread gives the tiles back, having taken them on entry.
void Emitter::finish_tiles() {
  if (frame_.tile_rows == 0) return;
  llvm::IRBuilder<>(frame_.entry_end).CreateCall(tiles_on(frame_.tile_rows));
  builder_.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

}  // namespace tenon
