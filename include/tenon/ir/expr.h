#pragma once
// Length: every kind of expression node stands on one page, as the variant lists them.
#include <tenon/ir/node_pool.h>
#include <tenon/support/dtype.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tenon {

// Expressions: immutable, shared, typed. What each node means is on the page src/ir/README.md.

/// Element type and vector width of an expression. Only flat code has lanes > 1.
struct Type {
  DType dtype = DType::i64;
  int lanes = 1;

  Type with_lanes(int n) const { return {dtype, n}; }
  Type element() const { return {dtype, 1}; }
  bool operator==(const Type&) const = default;
};

struct ExprNode;

/// A shared handle on an immutable node; default-constructed it is *undefined* ("no guard", "no
/// mask").
class Expr {
 public:
  Expr() = default;
  /// Literals: an integer is an i64, a double an f64; the builders in ops.h adapt a literal to the
  /// type of the other operand.
  Expr(int value);
  Expr(int64_t value);
  Expr(double value);
  explicit Expr(std::shared_ptr<const ExprNode> node) : node_(std::move(node)) {}

  bool defined() const { return node_ != nullptr; }
  const ExprNode& node() const;
  const ExprNode* get() const { return node_.get(); }
  Type type() const;
  DType dtype() const { return type().dtype; }
  int lanes() const { return type().lanes; }
  /// Identity of the node, not structure (that is structural_equal).
  bool same_as(const Expr& other) const { return node_ == other.node_; }
  /// The alternative T of this node or null.
  template <class T>
  const T* as() const;

 private:
  std::shared_ptr<const ExprNode> node_;
};

/// Values that a symbolic extent may have at a call, both ends included.
struct SymbolRange {
  int64_t low = 0, high = int64_t{1} << 20;
  bool operator==(const SymbolRange&) const = default;
};

/// A scalar variable: a loop, an axis, a Let, a symbolic extent. The object is the identity; the
/// name is for printing.
struct VarNode {
  std::string name;
  Type type;
  std::optional<SymbolRange> range;  // of a symbolic extent only
};

class Var {
 public:
  Var() = default;
  explicit Var(std::string name, Type type = {});
  /// A symbolic extent: an i64 that gets its value at the call (te's symbol() checks the range).
  static Var symbol(std::string name, SymbolRange range);
  const std::string& name() const { return node_->name; }
  Type type() const { return node_->type; }
  const std::optional<SymbolRange>& range() const { return node_->range; }
  bool is_symbol() const { return node_->range.has_value(); }
  bool defined() const { return node_ != nullptr; }
  const VarNode* get() const { return node_.get(); }
  bool same_as(const Var& other) const { return node_ == other.node_; }
  operator Expr() const;

 private:
  std::shared_ptr<const VarNode> node_;
};

/// spatial: one iteration per output element; reduce: iterations combine; sequential: must run in
/// order.
enum class AxisKind : uint8_t { spatial, reduce, sequential };

/// An axis of a formula: its variable runs over [0, extent). Its kind is decided by where it is
/// used.
class Axis {
 public:
  Axis() = default;
  Axis(std::string name, Expr extent) : var(std::move(name)), extent(std::move(extent)) {}
  Axis(Var var, Expr extent) : var(std::move(var)), extent(std::move(extent)) {}
  operator Expr() const { return var; }

  Var var;
  Expr extent;
};

enum class Scope : uint8_t { global, shared, local, reg };

/// One dimension of a storage layout: (logical[dim] / divide) % modulo; modulo 0 means none.
struct LayoutDim {
  int dim = 0;
  int64_t divide = 1;
  int64_t modulo = 0;
  bool operator==(const LayoutDim&) const = default;
};

/// The stride of storage dimension `dim` (of the layout where there is one) is padded until
/// stride % factor == offset.
struct StrideAlign {
  int dim = 0;
  int64_t factor = 1, offset = 0;
  bool operator==(const StrideAlign&) const = default;
};

/// A tensor in memory. Identity is the object. In a loop tree the shape is the *logical* shape,
/// also for buffers that lowering shrinks to the box in use; flat code has one-dimensional buffers
/// only.
struct Formula;  // te's definition of a computed tensor

struct BufferNode {
  std::string name;
  DType dtype = DType::f32;
  std::vector<Expr> shape;  // i64 each
  Scope scope = Scope::global;
  std::vector<LayoutDim> layout;    // empty: row-major; else the order and blocking of storage dims
  std::vector<StrideAlign> aligns;  // padding of rows; changes no meaning
  std::shared_ptr<const Formula> origin;  // what computes it, while it is part of a formula
};

class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(BufferNode node) : node_(std::make_shared<const BufferNode>(std::move(node))) {}
  explicit Buffer(std::shared_ptr<const BufferNode> node) : node_(std::move(node)) {}
  Buffer(std::string name, DType dtype, std::vector<Expr> shape, Scope scope = Scope::global);
  const BufferNode* operator->() const { return node_.get(); }
  const BufferNode& operator*() const { return *node_; }
  const BufferNode* get() const { return node_.get(); }
  std::weak_ptr<const BufferNode> weak() const { return node_; }
  bool defined() const { return node_ != nullptr; }
  bool same_as(const Buffer& other) const { return node_ == other.node_; }
  bool operator==(const Buffer& other) const { return node_ == other.node_; }

 private:
  std::shared_ptr<const BufferNode> node_;
};

struct Combiner;

struct IntImm {  // any integer type or bool; u64 keeps its bits
  int64_t value;
};
struct FloatImm {
  double value;
};
struct VarRef {
  Var var;
};

// add .. max: both operands and result of one type. Comparisons and logical ops give bool.
// div: floats only. floor_*: round to minus infinity; trunc_*: to zero. min/max propagate NaN.
enum class BinaryOp : uint8_t {
  add,
  sub,
  mul,
  div,
  floor_div,
  floor_mod,
  trunc_div,
  trunc_mod,
  min,
  max,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  bit_and,
  bit_or,
  bit_xor,
  shl,
  shr
};
struct Binary {
  BinaryOp op;
  Expr a, b;
};

// sqrt, floor, ceil, trunc, round (half to even), is_nan: floats.
enum class UnaryOp : uint8_t {
  neg,
  abs,
  logical_not,
  bit_not,
  sqrt,
  floor,
  ceil,
  trunc,
  round,
  is_nan
};
struct Unary {
  UnaryOp op;
  Expr a;
};

/// The value of `yes` where `condition` holds, else of `no`. Only the chosen side's loads count as
/// reads.
struct Select {
  Expr condition, yes, no;
};
struct Cast {  // to the node's type; float to integer saturates and NaN gives 0
  Expr value;
};
struct Bitcast {  // the bits of a number read as the node's type of the same size
  Expr value;
};
/// Element(s) of a buffer. With a mask (bool, same lanes) lanes that are off read nothing and give
/// 0.
struct Load {
  Buffer buffer;
  std::vector<Expr> indices;  // one i64 per dimension; in flat code one index, maybe a vector
  Expr mask;
};

/// Mathematical functions of one or two floats; lower/expand_math writes them as arithmetic.
/// ldexp(x, n): x * 2^n, rounded once, for a whole float n in [-250, 250].
enum class MathFn : uint8_t {
  exp,
  log,
  tanh,
  erf,
  sigmoid,
  pow,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  ldexp
};
struct Call {
  MathFn fn;
  std::vector<Expr> args;
};
struct Ramp {  // base, base+stride, ...
  Expr base, stride;
  int lanes;
};
struct Broadcast {
  Expr value;  // scalar
  int lanes;
};
/// Notation only: combines `sources` over all points of `axes`; the node's value is tuple element
/// `element`.
struct Reduce {
  std::shared_ptr<const Combiner> combiner;
  std::vector<Expr> sources;
  std::vector<Axis> axes;
  std::vector<Expr> init;  // start values; empty: the combiner's identities
  Expr condition;          // undefined: all points count
  int element = 0;
};
struct Let {
  Var var;
  Expr value, body;
};
/// Flat code: all lanes of a vector combined into a scalar; op is add, mul, min, max,
/// logical_and/or.
struct VectorReduce {
  BinaryOp op;
  Expr value;
};
/// Flat code: lanes of `value` picked by number.
struct Shuffle {
  Expr value;
  std::vector<int> lanes;
};

struct Intrinsic;  // intrinsic.h
/// Flat code: what the intrinsic's formula gives on the lanes at hand. The arguments are the old
/// value where the formula is a reduction, then the operands in the order of the formula's inputs;
/// the elements that one lane combines stand next to each other.
struct IntrinsicCall {
  std::shared_ptr<const Intrinsic> intrinsic;
  int implementation = 0;  // its number in the intrinsic
  std::vector<Expr> args;
};

struct ExprNode {
  Type type;
  std::variant<IntImm, FloatImm, VarRef, Binary, Unary, Select, Cast, Bitcast, Load, Call, Ramp,
               Broadcast, Reduce, Let, VectorReduce, Shuffle, IntrinsicCall>
      v;
};

/// How two partial results join: result[i] over the variables lhs and rhs. ops.h makes the built-in
/// ones.
struct Combiner {
  std::string name;  // "sum", "max", ...
  std::vector<Var> lhs, rhs;
  std::vector<Expr> result, identity;
  bool commutative = true;
};

template <class T>
const T* Expr::as() const {
  return node_ ? std::get_if<T>(&node_->v) : nullptr;
}

/// Makes a node without any check; use the builders in ops.h.
template <class T>
Expr make_expr(Type type, T alternative) {
  return Expr(
      std::allocate_shared<ExprNode>(NodeAllocator<ExprNode>(), type, std::move(alternative)));
}

}  // namespace tenon
