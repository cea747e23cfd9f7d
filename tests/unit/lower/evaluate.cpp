#include "evaluate.h"

#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <bit>
#include <cmath>

namespace tenon {
namespace {

double rounded(double value, DType t) {
  return t == DType::f32 ? static_cast<float>(value) : value;
}

double float_op(BinaryOp op, double a, double b, DType t) {
  if (t == DType::f32) {
    const float x = static_cast<float>(a), y = static_cast<float>(b);
    switch (op) {
      case BinaryOp::add:
        return x + y;
      case BinaryOp::sub:
        return x - y;
      case BinaryOp::mul:
        return x * y;
      case BinaryOp::div:
        return x / y;
      default:
        break;
    }
  }
  switch (op) {
    case BinaryOp::add:
      return a + b;
    case BinaryOp::sub:
      return a - b;
    case BinaryOp::mul:
      return a * b;
    case BinaryOp::div:
      return a / b;
    default:
      throw InternalError("evaluate: a float operation it does not know");
  }
}

template <class T>
bool compare(BinaryOp op, T a, T b) {
  switch (op) {
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::lt:
      return a < b;
    case BinaryOp::le:
      return a <= b;
    case BinaryOp::gt:
      return a > b;
    case BinaryOp::ge:
      return a >= b;
    default:
      throw InternalError("evaluate: not a comparison");
  }
}

int64_t int_op(BinaryOp op, int64_t a, int64_t b, DType t) {
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::add:
      return wrap_int(static_cast<int64_t>(x + y), t);
    case BinaryOp::sub:
      return wrap_int(static_cast<int64_t>(x - y), t);
    case BinaryOp::logical_and:
    case BinaryOp::bit_and:
      return a & b;
    case BinaryOp::logical_or:
    case BinaryOp::bit_or:
      return a | b;
    case BinaryOp::shl:
      return wrap_int(static_cast<int64_t>(x << y), t);
    case BinaryOp::shr:
      return a >> b;
    default:
      return compare(op, a, b);
  }
}

double unary_op(UnaryOp op, double a) {
  switch (op) {
    case UnaryOp::neg:
      return -a;
    case UnaryOp::abs:
      return std::fabs(a);
    case UnaryOp::floor:
      return std::floor(a);
    case UnaryOp::round:
      return std::nearbyint(a);
    default:
      throw InternalError("evaluate: a unary operation it does not know");
  }
}

struct Evaluator {
  Columns& columns;
  size_t n;

  Column fill(auto f, bool floats) {
    Column out;
    if (floats) {
      out.f.resize(n);
      for (size_t k = 0; k < n; ++k) out.f[k] = static_cast<double>(f(k));
    } else {
      out.i.resize(n);
      for (size_t k = 0; k < n; ++k) out.i[k] = static_cast<int64_t>(f(k));
    }
    return out;
  }

  Column operator()(const Expr& e) {
    const DType t = e.dtype();
    const bool floats = is_float(t);
    if (const auto* x = e.as<IntImm>()) return fill([&](size_t) { return x->value; }, false);
    if (const auto* x = e.as<FloatImm>()) return fill([&](size_t) { return x->value; }, true);
    if (const auto* x = e.as<VarRef>()) return columns.at(x->var.get());
    if (const auto* x = e.as<Let>()) {
      columns[x->var.get()] = (*this)(x->value);
      return (*this)(x->body);
    }
    if (const auto* x = e.as<Binary>()) return binary_column(*x, t);
    if (const auto* x = e.as<Unary>()) {
      const Column a = (*this)(x->a);
      if (x->op == UnaryOp::logical_not) return fill([&](size_t k) { return !a.i[k]; }, false);
      return fill([&](size_t k) { return unary_op(x->op, a.f[k]); }, true);
    }
    if (const auto* x = e.as<Select>()) {
      const Column c = (*this)(x->condition), y = (*this)(x->yes), z = (*this)(x->no);
      if (floats) return fill([&](size_t k) { return c.i[k] ? y.f[k] : z.f[k]; }, true);
      return fill([&](size_t k) { return c.i[k] ? y.i[k] : z.i[k]; }, false);
    }
    if (const auto* x = e.as<Cast>()) {
      const Column a = (*this)(x->value);
      if (a.f.empty()) return fill([&](size_t k) { return rounded(double(a.i[k]), t); }, true);
      return fill([&](size_t k) { return rounded(a.f[k], t); }, true);
    }
    if (const auto* x = e.as<Bitcast>()) return bitcast_column(*x, t);
    if (const auto* x = e.as<Call>(); x && x->fn == MathFn::ldexp) {
      const Column a = (*this)(x->args[0]), n = (*this)(x->args[1]);
      return fill(
          [&](size_t k) {
            return rounded(std::abs(n.f[k]) < 2000 ? std::ldexp(a.f[k], static_cast<int>(n.f[k]))
                                                   : a.f[k] * n.f[k],
                           t);
          },
          true);
    }
    throw InternalError("evaluate: an expression it does not know");
  }

  Column binary_column(const Binary& x, DType t) {
    const Column a = (*this)(x.a), b = (*this)(x.b);
    if (a.f.empty()) {
      return fill([&](size_t k) { return int_op(x.op, a.i[k], b.i[k], t); }, false);
    }
    if (is_bool(t)) return fill([&](size_t k) { return compare(x.op, a.f[k], b.f[k]); }, false);
    return fill([&](size_t k) { return float_op(x.op, a.f[k], b.f[k], t); }, true);
  }

  Column bitcast_column(const Bitcast& x, DType t) {
    const Column a = (*this)(x.value);
    switch (t) {
      case DType::f32:
        return fill([&](size_t k) { return std::bit_cast<float>(static_cast<int32_t>(a.i[k])); },
                    true);
      case DType::f64:
        return fill([&](size_t k) { return std::bit_cast<double>(a.i[k]); }, true);
      case DType::i32:
        return fill([&](size_t k) { return std::bit_cast<int32_t>(static_cast<float>(a.f[k])); },
                    false);
      default:
        return fill([&](size_t k) { return std::bit_cast<int64_t>(a.f[k]); }, false);
    }
  }
};

}  // namespace

Column evaluate(const Expr& e, Columns& columns, size_t count) {
  return Evaluator{columns, count}(e);
}

}  // namespace tenon
