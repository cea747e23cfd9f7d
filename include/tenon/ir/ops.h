#pragma once
#include <tenon/ir/stmt.h>

namespace tenon {

// Builders: they check types (UserError names both) and fold only constants. A literal operand
// takes the type of the other, inside its range; a scalar is broadcast to the lanes of the other.

Expr int_imm(int64_t value, DType t = DType::i64);  // UserError outside t; u64 takes the bits
Expr float_imm(double value, DType t = DType::f32);
/// `value` in any type t: number, or bool for 0/1.
Expr imm(double value, DType t);
Expr zero(DType t);
Expr bool_imm(bool value);

Expr binary(BinaryOp op, Expr a, Expr b);
Expr unary(UnaryOp op, Expr a);
Expr select(Expr condition, Expr yes, Expr no);
Expr cast(DType t, Expr e);
/// The same bits as another type of the same size (f32 <-> i32/u32, f64 <-> i64/u64):
/// lower/expand_math.
Expr bitcast(DType t, Expr e);
Expr load(const Buffer& buffer, std::vector<Expr> indices, Expr mask = {});
Expr call(MathFn fn, std::vector<Expr> args);
Expr ramp(Expr base, Expr stride, int lanes);
Expr broadcast(Expr value, int lanes);
Expr let(Var var, Expr value, Expr body);
Expr vector_reduce(BinaryOp op, Expr value);
Expr shuffle(Expr value, std::vector<int> lanes);
Expr reduce(std::shared_ptr<const Combiner> combiner, std::vector<Expr> sources,
            std::vector<Axis> axes, std::vector<Expr> init = {}, Expr condition = {},
            int element = 0);

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
/// Floats only; integers say floor_div or trunc_div.
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);
Expr floor_div(Expr a, Expr b);
Expr floor_mod(Expr a, Expr b);
Expr trunc_div(Expr a, Expr b);
Expr trunc_mod(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr operator<(Expr a, Expr b);
Expr operator<=(Expr a, Expr b);
Expr operator>(Expr a, Expr b);
Expr operator>=(Expr a, Expr b);
Expr operator==(Expr a, Expr b);
Expr operator!=(Expr a, Expr b);
Expr operator&&(Expr a, Expr b);
Expr operator||(Expr a, Expr b);
Expr operator!(Expr a);

Expr abs(Expr a);
Expr sqrt(Expr a);
Expr floor(Expr a);
Expr ceil(Expr a);
Expr trunc(Expr a);
Expr round(Expr a);
Expr is_nan(Expr a);
Expr exp(Expr a);
Expr log(Expr a);
Expr tanh(Expr a);
Expr erf(Expr a);
Expr sigmoid(Expr a);
Expr pow(Expr a, Expr b);

/// Both conditions; an undefined one counts as true.
Expr both(const Expr& a, const Expr& b);
/// The conditions joined by && in order; none for an undefined one.
std::vector<Expr> conjuncts(const Expr& condition);
/// Their conjunction; undefined for none.
Expr conjunction(const std::vector<Expr>& parts);

std::optional<int64_t> as_int(const Expr& e);
std::optional<double> as_float(const Expr& e);
bool is_const(const Expr& e, int64_t value);
bool is_true(const Expr& e);
bool is_false(const Expr& e);

/// Constant shape or nothing.
std::optional<std::vector<int64_t>> const_shape(const std::vector<Expr>& shape);

std::string_view name(BinaryOp op);  // "add", "floor_div", ...
std::string_view name(UnaryOp op);
std::string_view name(MathFn fn);
std::string_view name(Scope scope);  // "global", "shared", "local", "register"
std::string_view name(LoopMark mark);

/// Bound to an axis of a GPU's grid or of a block's threads.
constexpr bool is_block(LoopMark m) { return m >= LoopMark::block_x && m <= LoopMark::block_z; }
constexpr bool is_thread(LoopMark m) { return m >= LoopMark::thread_x; }
constexpr bool is_bound(LoopMark m) { return m >= LoopMark::block_x; }
/// Iterations that may run at once: parallel, vectorize and the bound ones.
constexpr bool is_concurrent(LoopMark m) { return m != LoopMark::serial && m != LoopMark::unroll; }

/// Built-in combiners of one element; `pair` ones over (value, index) keep the lowest index on
/// ties. Max/min of floats start at -inf/+inf, of integers at the type's lowest/highest value, and
/// propagate NaN.
std::shared_ptr<const Combiner> sum_combiner(DType t);
std::shared_ptr<const Combiner> prod_combiner(DType t);
std::shared_ptr<const Combiner> max_combiner(DType t);
std::shared_ptr<const Combiner> min_combiner(DType t);
std::shared_ptr<const Combiner> any_combiner();
std::shared_ptr<const Combiner> all_combiner();

/// The combiner applied to two tuples of expressions.
std::vector<Expr> combine(const Combiner& c, const std::vector<Expr>& lhs,
                          const std::vector<Expr>& rhs);

/// The binary operation of a built-in combiner (add, mul, min, max, logical_and, logical_or), for
/// horizontal vector reductions; nothing for others.
std::optional<BinaryOp> combiner_op(const Combiner& c);

}  // namespace tenon
