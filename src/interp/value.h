#pragma once
#include <tenon/ir/expr.h>

#include <cstddef>

namespace tenon {

/// One element at run time. Which member holds it is known from the type: i for integers (u64 keeps
/// its bits) and bool (0 or 1), f for floats; an f is always a value of its type (an f32 is one of
/// the floats).
union Value {
  int64_t i;
  double f;
};

inline Value int_value(int64_t i) {
  Value v;
  v.i = i;
  return v;
}
inline Value float_value(double f) {
  Value v;
  v.f = f;
  return v;
}

/// The nearest value of float type t, ties to even. f16 and bf16 are reached by way of f32.
double round_float(double value, DType t);

/// One element in memory, of byte_size(t) bytes, aligned or not.
Value read_element(const std::byte* at, DType t);
void write_element(std::byte* at, DType t, Value value);

/// Conversion as src/ir/README.md defines it: integers wrap; floats to integers truncate and
/// saturate, NaN is 0; to bool: not equal 0.
Value convert(Value value, DType from, DType to);

/// The bits of `value` read as another type of the same size.
Value reinterpret_bits(Value value, DType from, DType to);

/// `op` on two elements of type t. Division by zero is the caller's to refuse; shifts take their
/// amount modulo the width.
using BinaryFn = Value (*)(Value, Value);
BinaryFn binary_fn(BinaryOp op, DType t);

using UnaryFn = Value (*)(Value);
UnaryFn unary_fn(UnaryOp op, DType t);

/// A mathematical function in f64, rounded to t. Only pow uses b.
Value math_fn(MathFn fn, DType t, Value a, Value b);

}  // namespace tenon
