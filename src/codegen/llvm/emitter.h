#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <functional>
#include <memory>
#include <set>

#include "codegen/llvm/plan.h"

namespace tenon {

struct TileNest;

/// An i64 as constant + sum of value * coefficient: addresses keep this form so that loop-invariant
/// parts stand alone and constants end up in the displacement of an access.
struct Linear {
  struct Term {
    llvm::Value* value;
    int64_t coefficient;
  };
  int64_t constant = 0;
  std::vector<Term> terms;

  bool is_constant() const { return terms.empty(); }
};

/// a + b * factor
Linear sum(Linear a, const Linear& b, int64_t factor = 1);

/// The lanes of a vector index as base + lane * stride.
struct LaneForm {
  Linear base, stride;
};

/// Translates one flat program into an LLVM module: an entry function of type tenon_kernel and one
/// internal function per parallel loop.
///
/// Values: bool is i1; f16 and bf16 are floats that are rounded after each operation (24 bits hold
/// any such operation exactly enough to round once more); all else is what it says. Memory: bool is
/// a byte.
class Emitter {
 public:
  Emitter(const Program& program, const Target& target, const CodePlan& plan, llvm::Module& module,
          const CodegenOptions& options);

  /// Emits everything. Every register buffer has become SSA values.
  void run();

 private:
  /// A buffer in memory or in registers.
  struct Home {
    llvm::Value* pointer = nullptr;        // memory
    std::vector<llvm::AllocaInst*> parts;  // registers: one per vector
    int part_lanes = 0;
  };

  /// What belongs to the LLVM function being written.
  struct Frame {
    llvm::Function* function = nullptr;
    llvm::Instruction* entry_end = nullptr;  // allocas and bases go before it
    llvm::Value* workspace = nullptr;        // base of the shared part
    llvm::Value* worker_base = nullptr;      // base of this worker's part, inside a parallel loop
    llvm::Value* parallel_for = nullptr;
    llvm::Value* pool = nullptr;
    int loop_depth = 0;
    std::unordered_map<const VarNode*, llvm::Value*> vars;
    std::unordered_map<const VarNode*, Linear> linear_vars;  // i64 lets
    std::unordered_set<const VarNode*> non_negative;         // loops and lets over indices
    std::unordered_map<const BufferNode*, Home> homes;
    std::unordered_map<const llvm::Value*, int> depths;
    std::vector<llvm::AllocaInst*> register_parts;
    int tile_rows = 0;  // of the tiles that this thread has taken; 0: none
  };

  // types (emit_ops.cpp)
  llvm::Type* element_type(DType t);
  llvm::Type* value_type(Type t);
  llvm::Type* memory_type(DType t);
  llvm::Type* wide(llvm::Type* t, int lanes);
  llvm::Constant* int_splat(Type t, int64_t value);
  llvm::Constant* float_splat(Type t, double value);

  // arithmetic on values (emit_ops.cpp, emit_integer.cpp)
  llvm::Value* round_to(DType t, llvm::Value* v);
  llvm::Value* from_memory(DType t, llvm::Value* v);
  llvm::Value* to_memory(DType t, llvm::Value* v);
  llvm::Value* known_bits(llvm::Value* v);
  llvm::Value* binary_op(BinaryOp op, Type t, llvm::Value* a, llvm::Value* b);
  llvm::Value* float_op(BinaryOp op, llvm::Value* a, llvm::Value* b);
  llvm::Value* integer_op(BinaryOp op, Type t, llvm::Value* a, llvm::Value* b);
  llvm::Value* compare(BinaryOp op, DType t, llvm::Value* a, llvm::Value* b);
  llvm::Value* float_min_max(bool is_max, llvm::Value* a, llvm::Value* b);
  llvm::Value* divide(BinaryOp op, Type t, llvm::Value* a, llvm::Value* b);
  llvm::Value* divide_non_negative(BinaryOp op, llvm::Value* a, llvm::Value* b);
  bool non_negative(const Expr& e);
  llvm::Value* unary_op(UnaryOp op, Type t, llvm::Value* a);
  llvm::Value* convert(Type from, DType to, llvm::Value* v);
  llvm::Value* splat(llvm::Value* v, int lanes);

  // expressions (emit_expr.cpp)
  llvm::Value* evaluate(const Expr& e);  // at the start of a statement: forgets shared values
  llvm::Value* emit(const Expr& e);
  llvm::Value* emit_node(const Expr& e);
  llvm::Value* emit_binary(const Expr& e, const Binary& n);
  llvm::Value* emit_select(const Select& n);
  llvm::Value* emit_call(const Expr& e, const Call& n);
  llvm::Value* scale_by_power(llvm::Value* x, llvm::Value* n);
  llvm::Value* emit_let(const Let& n);
  llvm::Value* emit_vector_reduce(const VectorReduce& n);
  llvm::Value* emit_shuffle(const Shuffle& n, int lanes);
  llvm::Value* shuffled(llvm::Value* value, const Shuffle& n, int lanes);
  llvm::Value* emit_intrinsic(const IntrinsicCall& n, Type t);  // emit_intrinsic.cpp
  llvm::Value* under_predicate(llvm::Value* condition, const Expr& e);
  bool has_load(const Expr& e);

  // memory (emit_memory.cpp, emit_registers.cpp, emit_linear.cpp)
  Linear linear(const Expr& e);
  Linear linear_value(llvm::Value* v);
  llvm::Value* to_value(const Linear& l);
  std::optional<LaneForm> lane_form(const Expr& e);
  llvm::Value* lane_indices(const Expr& e);
  int depth_of(llvm::Value* v);
  llvm::Value* pointer(const BufferNode& b, const Linear& index);
  llvm::Align alignment(const BufferNode& b, const Linear& index);
  llvm::Value* emit_load(const Load& n, int lanes);
  llvm::Value* load_scalar(const BufferNode& b, const Expr& index, llvm::Value* mask);
  llvm::Value* load_vector(const BufferNode& b, const Expr& index, int lanes, llvm::Value* mask);
  llvm::Value* load_every_second(const BufferNode& b, const Linear& base, int lanes,
                                 llvm::Value* mask);
  llvm::Value* load_contiguous(const BufferNode& b, const Linear& base, int lanes,
                               llvm::Value* mask, llvm::Value* condition);
  llvm::Value* gather(const BufferNode& b, llvm::Value* pointers, int lanes, llvm::Value* mask);
  llvm::Value* lane_pointers(const BufferNode& b, const Expr& index, int lanes);
  llvm::Value* guarded_pointer(llvm::Value* pointer, llvm::Value* condition);
  llvm::Value* lane_mask(llvm::Value* mask, int lanes);
  llvm::Value* scalar_condition(llvm::Value* mask);
  void emit_store(const Store& n);
  void store_vector(const BufferNode& b, const Expr& index, llvm::Value* value, llvm::Value* mask,
                    int lanes);
  bool interleaves(std::optional<int64_t> stride, int bytes, int lanes) const;
  void store_interleaved(const BufferNode& b, const Linear& base, int64_t stride,
                         llvm::Value* value, llvm::Value* mask);
  void store_scalar(const BufferNode& b, const Expr& index, llvm::Value* value, llvm::Value* mask);
  void store_atomic(const Store& n);
  void emit_prefetch(const PrefetchLine& n);
  void update_atomically(DType t, BinaryOp op, llvm::Value* pointer, llvm::Value* operand);
  void note_alias(llvm::Instruction* access, const BufferNode& b);
  static bool holds(const Home& h, int64_t element);
  std::vector<int64_t> register_indices(const BufferNode& b, const Expr& index, int lanes);
  llvm::Value* read_register(const BufferNode& b, const std::vector<int64_t>& at);
  void write_register(const BufferNode& b, const std::vector<int64_t>& at, llvm::Value* value);
  const Home& home(const BufferNode& b);

  // statements (emit_stmt.cpp, emit_parallel.cpp)
  void emit(const Stmt& s);
  void emit_for(const For& n);
  void emit_unrolled(const For& n, int64_t extent);
  void bind_step(const For& n, const Linear& min, int64_t i);
  bool registers_are_short() const;
  void keep_loads_apart();
  void emit_loop(const For& n, llvm::Value* begin, llvm::Value* end, bool may_be_empty,
                 const std::function<void()>& body = {});  // its own body where none is given
  void emit_if(const If& n);

  // stores past the caches (emit_stream.cpp)
  std::set<const BufferNode*> streamed_buffers(const For& n) const;
  void emit_noted_loop(const For& n, llvm::Value* begin, llvm::Value* end, bool may_be_empty);
  void emit_stream_fence();
  void stream_store(llvm::StoreInst* store, const BufferNode& b, const Linear& at, int lanes);

  // rows transposed in registers in place of gathers (emit_transpose.cpp)
  struct Transposed;
  bool emit_transposed(const For& n, int64_t extent);
  bool collect_transposed(const Stmt& s, std::vector<Transposed>& parts, Transposed part);
  void emit_transposed_nest(const For& n, const Transposed& part, size_t depth, int64_t extent);
  void emit_transposed_steps(const For& n, const Transposed& part, int64_t extent);
  bool steps_by_one(const Expr& index, const For& n, const Linear& min);
  std::vector<Expr> transposed_loads(const For& n, const Store& store);
  std::vector<llvm::Value*> transposed_columns(const Load& n, int lanes);

  void emit_allocate(const Allocate& n);
  void emit_let(const LetStmt& n);
  void emit_parallel(const For& n);
  llvm::Function* emit_task(const For& n, const std::vector<Var>& vars,
                            const std::vector<const BufferNode*>& buffers,
                            llvm::StructType* context_type);
  void bind(const Var& v, llvm::Value* value);
  void unbind(const Var& v);

  // products of tiles (emit_tiles.cpp)
  struct TileOperand;
  struct TileCut;
  void emit_tiles(const For& n);
  void emit_tile_sums(const TileNest& nest, size_t depth, const TileCut& cut);
  void emit_tile_steps(const TileNest& nest, const TileCut& cut);
  void emit_tile_step(const TileCut& cut, const TileOperand& a, const TileOperand& b,
                      llvm::Value* step);
  TileOperand tile_operand(const TileNest& nest, const BufferNode& buffer, const Expr& index);
  void tile_call(unsigned id, int64_t tile, const TileOperand& at, const Linear& offset,
                 int64_t row_stride);
  llvm::Function* tiles_on(int rows);
  void finish_tiles();

  // functions (emit_function.cpp)
  llvm::Function* begin_function(const std::string& name, llvm::FunctionType* type, bool is_entry);
  void finish_function();
  void emit_entry();
  void bind_dims(llvm::Value* dims);
  void emit_workspace();
  llvm::Value* evaluate_at_entry(const Expr& e);
  void make_alias_scopes();
  llvm::BasicBlock* new_block(const char* name);

  const Program& program_;
  const Target& target_;
  const CodePlan& plan_;
  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const std::string symbol_;
  const std::vector<std::pair<size_t, size_t>> in_place_;
  const bool poison_;
  llvm::IRBuilder<> builder_;
  Frame frame_;
  bool in_task_ = false;
  int tasks_ = 0;
  std::set<const BufferNode*> streamed_;  // stored past the caches here; asked for membership only
  int streaming_stores_ = 0;
  llvm::Value* predicate_ =
      nullptr;  // where the value being computed will be used; null: everywhere
  std::vector<std::unordered_map<const ExprNode*, llvm::Value*>> memo_{1};
  std::unordered_map<const ExprNode*, llvm::Value*> given_;  // made ahead, for one statement
  std::unordered_map<const ExprNode*, bool> has_load_;
  std::unordered_map<const llvm::Value*, llvm::Value*> bits_;  // the bf16 that a float came from
  std::unordered_map<const BufferNode*, llvm::MDNode*> scopes_, others_;
};

}  // namespace tenon
