#pragma once
#include <tenon/ir/visit.h>

#include <unordered_set>

#include "interp/frame.h"

namespace tenon {

/// Turns expressions into closures over a frame: variables become slots and buffers become numbers,
/// once.
class ExprCompiler {
 public:
  explicit ExprCompiler(Frame& frame) : frame_(frame) {}

  ExprCode compile(const Expr& e);
  ScalarFn scalar(const Expr& e);
  std::vector<ScalarFn> scalars(const std::vector<Expr>& es);

  /// The first slot of a variable (one per lane), given when it is first asked for.
  int slot(const Var& v);
  int new_slots(int count);
  /// A buffer comes into scope: its number in the frame, made on first sight.
  size_t open_buffer(const Buffer& b);
  void close_buffer(const Buffer& b) { open_.erase(b); }
  /// The number of a buffer in scope. InternalError for any other.
  size_t buffer(const Buffer& b) const;
  /// Whether the variable has been bound by a loop, a let, an axis or a symbolic extent.
  void bind(const Var& v) { bound_.insert_or_assign(v, Expr()); }

  /// Loads of this buffer are part of an atomic store and no reads of their own.
  void set_atomic(const Buffer& b) { atomic_ = b; }

 private:
  ExprCode node(const IntImm& n, const Expr& e);
  ExprCode node(const FloatImm& n, const Expr& e);
  ExprCode node(const VarRef& n, const Expr& e);
  ExprCode node(const Binary& n, const Expr& e);
  ExprCode node(const Unary& n, const Expr& e);
  ExprCode node(const Select& n, const Expr& e);
  ExprCode node(const Cast& n, const Expr& e);
  ExprCode node(const Bitcast& n, const Expr& e);
  ExprCode node(const Load& n, const Expr& e);
  ExprCode node(const Call& n, const Expr& e);
  ExprCode node(const Ramp& n, const Expr& e);
  ExprCode node(const Broadcast& n, const Expr& e);
  ExprCode node(const Reduce& n, const Expr& e);
  ExprCode node(const Let& n, const Expr& e);
  ExprCode node(const VectorReduce& n, const Expr& e);
  ExprCode node(const Shuffle& n, const Expr& e);
  ExprCode node(const IntrinsicCall& n, const Expr& e);

  template <class F>
  ExprCode lanewise(Type type, ExprCode a, F f);
  ExprCode masked_load(const Load& n, Type type, size_t buffer, bool atomic);
  ExprCode vector_select(const Expr& e, ExprCode condition, ExprCode yes, ExprCode no);

  Frame& frame_;
  std::unordered_map<Var, int, VarHash, VarEqual> slots_;
  VarMap bound_;
  std::unordered_map<Buffer, size_t, BufferHash> buffers_;
  std::unordered_set<Buffer, BufferHash> open_;
  Buffer atomic_;
};

}  // namespace tenon
