#include <tenon/ir/ops.h>

#include <array>

namespace tenon {

std::string_view name(BinaryOp op) {
  constexpr std::array<std::string_view, 23> kNames = {
      "add",       "sub",       "mul",     "div", "floor_div",   "floor_mod",
      "trunc_div", "trunc_mod", "min",     "max", "eq",          "ne",
      "lt",        "le",        "gt",      "ge",  "logical_and", "logical_or",
      "bit_and",   "bit_or",    "bit_xor", "shl", "shr"};
  return kNames[static_cast<size_t>(op)];
}

std::string_view name(UnaryOp op) {
  constexpr std::array<std::string_view, 10> kNames = {
      "neg", "abs", "logical_not", "bit_not", "sqrt", "floor", "ceil", "trunc", "round", "is_nan"};
  return kNames[static_cast<size_t>(op)];
}

std::string_view name(MathFn fn) {
  constexpr std::array<std::string_view, 18> kNames = {
      "exp",  "log",  "tanh", "erf",  "sigmoid", "pow",   "sin",   "cos",   "tan",
      "asin", "acos", "atan", "sinh", "cosh",    "asinh", "acosh", "atanh", "ldexp"};
  return kNames[static_cast<size_t>(fn)];
}

std::string_view name(Scope scope) {
  constexpr std::array<std::string_view, 4> kNames = {"global", "shared", "local", "register"};
  return kNames[static_cast<size_t>(scope)];
}

std::string_view name(LoopMark mark) {
  constexpr std::array<std::string_view, 11> kNames = {
      "serial",  "parallel", "vectorize", "unroll",   "tensorize", "block_x",
      "block_y", "block_z",  "thread_x",  "thread_y", "thread_z"};
  return kNames[static_cast<size_t>(mark)];
}

}  // namespace tenon
