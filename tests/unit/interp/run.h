#pragma once
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <vector>

#include "interp/interp.h"
#include "interp/value.h"

namespace tenon {

/// Memory of one buffer of constant shape, elements as values of its type.
struct Memory {
  DType dtype = f32;
  std::vector<std::byte> bytes;

  Memory() = default;
  Memory(DType t, size_t count) : dtype(t), bytes(count * static_cast<size_t>(byte_size(t))) {}
  Memory(DType t, const std::vector<double>& values) : Memory(t, values.size()) {
    for (size_t k = 0; k < values.size(); ++k) {
      write_element(
          at(k), t,
          is_float(t) ? float_value(values[k]) : int_value(static_cast<int64_t>(values[k])));
    }
  }
  std::byte* at(size_t k) { return bytes.data() + k * static_cast<size_t>(byte_size(dtype)); }
  double get(size_t k) {
    Value v = read_element(at(k), dtype);
    return is_float(dtype) ? v.f : static_cast<double>(v.i);
  }
  std::vector<double> all() {
    std::vector<double> out;
    for (size_t k = 0; k < bytes.size() / static_cast<size_t>(byte_size(dtype)); ++k)
      out.push_back(get(k));
    return out;
  }
};

inline void run(const Program& p, const std::vector<Memory*>& memory,
                const InterpOptions& options = {}) {
  std::vector<HostBuffer> args;
  for (Memory* m : memory) args.push_back({m->bytes.data()});
  interpret(p, args, options);
}

/// The lanes of an expression without free variables, by a flat program that stores it.
inline std::vector<double> lanes_of(const Expr& e) {
  Buffer out("out", e.dtype(), {Expr(e.lanes())});
  Expr at = e.lanes() == 1 ? Expr(0) : ramp(Expr(0), 1, e.lanes());
  Memory memory(e.dtype(), static_cast<size_t>(e.lanes()));
  run({"value", {{out, ParamRole::output}}, make_stmt(Store{out, {at}, e, {}})}, {&memory});
  return memory.all();
}
inline double value_of(const Expr& e) { return lanes_of(e).at(0); }

/// Something that no builder folds: the value behind a let.
inline Expr opaque(double value, DType t) {
  Var v("v", {t, 1});
  return make_expr({t, 1}, Let{v, imm(value, t), v});
}

inline Stmt loop(const Var& v, Expr extent, Stmt body, LoopMark mark = LoopMark::serial,
                 AxisKind kind = AxisKind::spatial) {
  return make_stmt(For{v, int_imm(0), std::move(extent), kind, mark, {}, std::move(body)});
}

}  // namespace tenon
