#pragma once
#include <tenon/ir/ops.h>

#include <string>
#include <vector>

#include "codegen/text/dialect.h"

namespace tenon {

/// The type that values are computed in: float for f16 and bf16, int for bool.
std::string value_type(const Dialect& d, DType t);

/// A constant of type t as source.
std::string int_text(int64_t value, DType t);
std::string float_text(const Dialect& d, double value, DType t);

/// Operations as source. Where C has no operator that means the same (rounding divisions, NaN in
/// min and max, saturation, 16-bit floats) the text is a call of a helper function, which is kept
/// and listed once.
class Helpers {
 public:
  explicit Helpers(const Dialect& d) : d_(d) {}

  std::string binary(BinaryOp op, DType t, const std::string& a, const std::string& b);
  /// The same of signed integers that do not overflow: indices.
  std::string index_op(BinaryOp op, DType t, const std::string& a, const std::string& b);
  /// a // b or a % b rounding down, by a positive constant.
  std::string divide_by(BinaryOp op, DType t, const std::string& a, int64_t b);
  /// The same where a >= 0 is known.
  std::string divide_natural(BinaryOp op, const std::string& a, const std::string& b);
  std::string unary(UnaryOp op, DType t, const std::string& a);
  std::string cast(DType to, DType from, const std::string& a);
  std::string bitcast(DType to, DType from, const std::string& a);
  /// Between what is in memory and the value type.
  std::string from_memory(DType t, const std::string& element);
  std::string to_memory(DType t, const std::string& value);

  /// Definitions of all helpers asked for so far.
  const std::string& definitions() const { return definitions_; }

 private:
  std::string call(const std::string& name, const std::vector<std::string>& args);
  void define(const std::string& name, const std::string& text);
  std::string integer_op(BinaryOp op, DType t, const std::string& a, const std::string& b);
  std::string float_op(BinaryOp op, DType t, const std::string& a, const std::string& b);
  std::string divide(BinaryOp op, DType t, const std::string& a, const std::string& b);
  std::string rounded(DType t, const std::string& a);
  std::string to_integer(DType to, DType from, const std::string& a);
  void define_half();

  const Dialect& d_;
  std::string definitions_;
  std::vector<std::string> defined_;
};

}  // namespace tenon
