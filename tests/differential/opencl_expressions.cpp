#include <fmt/format.h>
#include <tenon/compile/compile.h>
#include <tenon/ir/ops.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "interp/interp.h"
#include "opencl_device.h"

// Arithmetic of every type on an OpenCL device, bit for bit as the interpreter has it: one program
// of many outputs, since drivers take long for each. Cases D36, D38 and D40 to D45 are among them.

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr int64_t kElements = 64;

/// Values of a type with the edges among them.
Array edgy(DType t, uint64_t seed) {
  const Array a = random(t, {kElements}, seed);
  if (is_bool(t)) return a;
  std::vector<double> v = a.to_doubles();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> edges =
      is_float(t) ? std::vector<double>{0,    -0.0, 1,   inf,   -inf,  NAN,  65504, 5.9e-8,
                                        2.5,  -1.5, 1.9, -1.9,  300.7, 3e9,  2048,  1e-40,
                                        2051, -3e9, 0.5, 65520, 1e19,  -1e19}
                  : std::vector<double>{0, 1, static_cast<double>(min_int(t)), -1, 127, 7, 100, 31};
  for (size_t k = 0; k < edges.size(); ++k) v[(k * 7 + seed) % kElements] = edges[k];
  return from_doubles(t, {kElements}, v);
}

/// A map for each operation on the type.
std::vector<Tensor> operations(DType t, const Tensor& x, const Tensor& y) {
  std::vector<Tensor> out;
  const auto map = [&](const std::string& what, const std::function<Expr(Expr, Expr)>& f) {
    const Axis i("i", kElements);
    out.push_back(compute(fmt::format("{}_{}", name(t), what), {i}, f(x(i), y(i))));
  };
  const auto op = [&](BinaryOp b) {
    map(std::string(name(b)), [b](Expr a, Expr c) { return binary(b, a, c); });
  };
  for (BinaryOp b : {BinaryOp::eq, BinaryOp::lt, BinaryOp::le}) op(b);
  if (is_bool(t)) {
    op(BinaryOp::logical_and);
    op(BinaryOp::logical_or);
    map("not", [](Expr a, Expr) { return !a; });
    return out;
  }
  for (BinaryOp b : {BinaryOp::add, BinaryOp::sub, BinaryOp::mul, BinaryOp::min, BinaryOp::max})
    op(b);
  map("neg", [](Expr a, Expr) { return -a; });
  map("abs", [](Expr a, Expr) { return abs(a); });
  if (is_float(t)) {
    op(BinaryOp::div);
    map("sqrt", [](Expr a, Expr) { return sqrt(abs(a)); });
    map("round", [](Expr a, Expr) { return round(a); });
    map("floor", [](Expr a, Expr) { return floor(a); });
    for (DType to : {i8, u8, i32, u32, i64, u64, f16, bf16, f32, boolean})
      if (to != t) map(fmt::format("to_{}", name(to)), [to](Expr a, Expr) { return cast(to, a); });
    return out;
  }
  for (BinaryOp b : {BinaryOp::bit_and, BinaryOp::bit_xor, BinaryOp::shl, BinaryOp::shr}) op(b);
  for (BinaryOp b :
       {BinaryOp::floor_div, BinaryOp::floor_mod, BinaryOp::trunc_div, BinaryOp::trunc_mod})
    map(std::string(name(b)),
        [b, t](Expr a, Expr c) { return binary(b, a, select(c == imm(0, t), imm(3, t), c)); });
  for (DType to : {i8, u16, i64, f16, f32})
    if (to != t) map(fmt::format("to_{}", name(to)), [to](Expr a, Expr) { return cast(to, a); });
  return out;
}

bool same(const Array& a, const Array& b, int64_t k) {
  if (is_float(a.dtype())) {
    const double x = a.view(k, {1}).to_doubles()[0], y = b.view(k, {1}).to_doubles()[0];
    return x == y || (std::isnan(x) && std::isnan(y));
  }
  const int64_t size = byte_size(a.dtype());
  return std::memcmp(static_cast<char*>(a.raw()) + k * size, static_cast<char*>(b.raw()) + k * size,
                     static_cast<size_t>(size)) == 0;
}

void compare(DType t, const Target& target, bool vectors) {
  const Tensor x = input("X", t, {kElements}), y = input("Y", t, {kElements});
  const std::vector<Tensor> outputs = operations(t, x, y);
  const Program plain = make_program("all", outputs);
  // One kernel for all: drivers compile kernel by kernel.
  Schedule s(plain, target);
  if (vectors)
    for (const std::string& stage : s.stages()) s.try_apply(Vectorize{stage, "i", Tail::mask});
  const Kernel kernel = compile(s.program(), target);
  std::vector<Array> want, got;
  std::vector<HostBuffer> buffers;
  for (const Param& p : plain.params) {
    const bool is_output = p.role == ParamRole::output;
    const Array a =
        is_output ? zeros(p.buffer->dtype, {kElements}) : edgy(t, p.buffer->name == "X" ? 3 : 5);
    want.push_back(a);
    got.push_back(is_output ? a.copy() : a);
  }
  for (const Array& a : want) buffers.push_back({a.raw()});
  interpret(plain, buffers);
  kernel.run(got, default_pool());
  for (size_t p = 0; p < want.size(); ++p)
    for (int64_t k = 0; k < kElements; ++k) {
      if (same(want[p], got[p], k)) continue;
      FAIL_CHECK(plain.params[p].buffer->name << " at " << want[0].view(k, {1}).to_doubles()[0]
                                              << ", " << want[1].view(k, {1}).to_doubles()[0]
                                              << ": " << got[p].view(k, {1}).to_doubles()[0]
                                              << " and not "
                                              << want[p].view(k, {1}).to_doubles()[0]);
      break;
    }
}

}  // namespace

TEST_CASE("D36 D38 D40 D41 D42 D44 D45 on OpenCL: arithmetic of every type, scalars") {
  const auto target = opencl_device();
  if (!target) return;
  for (DType t : {i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64, boolean}) {
    if (t == f64 && !target->has_feature("fp64")) continue;
    DYNAMIC_SECTION(name(t)) { compare(t, *target, false); }
  }
}

TEST_CASE("D36 D38 D40 D42 on OpenCL: arithmetic in vectors") {
  const auto target = opencl_device();
  if (!target) return;
  for (DType t : {i8, i32, u64, f16, f32}) DYNAMIC_SECTION(name(t)) {
      compare(t, *target, true);
    }
}
