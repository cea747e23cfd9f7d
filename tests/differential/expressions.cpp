#include <tenon/ir/ops.h>
#include <tenon/runtime/guard.h>
#include <tenon/runtime/module.h>
#include <tenon/support/error.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "codegen/llvm/codegen.h"
#include "interp/interp.h"

// Random flat expressions: the interpreter and the machine code must give the same bits for
// integers and bools, and for floats where nothing can be contracted.

using namespace tenon;

namespace {

constexpr int64_t kElements = 64;
const DType kTypes[] = {i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64, boolean};

/// Grows expressions over two inputs of every element type, read at [at].
class Grower {
 public:
  Grower(Rng& rng, Expr at) : rng_(rng), at_(std::move(at)) {
    for (DType t : kTypes) {
      for (int k = 0; k < 2; ++k)
        inputs_.push_back(Buffer(fmt::format("{}{}", name(t), k), t, {Expr(kElements)}));
    }
  }

  const std::vector<Buffer>& inputs() const { return inputs_; }

  Expr grow(DType t, int depth) {
    if (depth == 0 || pick(8) == 0) return leaf(t);
    if (pick(6) == 0)
      return select(grow(boolean, depth - 1), grow(t, depth - 1), grow(t, depth - 1));
    if (pick(5) == 0 && !is_bool(t))
      return cast(t, grow(kTypes[pick(std::size(kTypes))], depth - 1));
    if (is_bool(t)) return question(depth);
    return is_float(t) ? float_node(t, depth) : int_node(t, depth);
  }

 private:
  int64_t pick(int64_t n) { return rng_.below(n); }

  Expr leaf(DType t) {
    if (pick(4) == 0) {
      Expr literal = is_float(t) ? float_imm(static_cast<double>(pick(9)) / 2 - 2, t)
                                 : int_imm(wrap_int(pick(7) - 3, t), t);
      return is_bool(t) ? broadcast_like(bool_imm(pick(2) == 0)) : broadcast_like(literal);
    }
    for (const Buffer& b : inputs_) {
      if (b->dtype == t) return load(pick(2) == 0 ? b : inputs_[&b - inputs_.data() + 1], {at_});
    }
    throw InternalError("no input of this type");
  }

  Expr broadcast_like(Expr scalar) { return broadcast(std::move(scalar), at_.lanes()); }

  Expr int_node(DType t, int depth) {
    const BinaryOp ops[] = {BinaryOp::add, BinaryOp::sub,     BinaryOp::mul,    BinaryOp::min,
                            BinaryOp::max, BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor,
                            BinaryOp::shl, BinaryOp::shr};
    const BinaryOp divisions[] = {BinaryOp::floor_div, BinaryOp::floor_mod, BinaryOp::trunc_div,
                                  BinaryOp::trunc_mod};
    const Expr a = grow(t, depth - 1);
    switch (pick(6)) {
      case 0: {  // the divisor is never 0
        const Expr b = grow(t, depth - 1);
        return binary(divisions[pick(4)], a, select(b == 0, broadcast_like(int_imm(3, t)), b));
      }
      case 1:
        return binary(divisions[pick(4)], a, broadcast_like(int_imm(pick(2) == 0 ? 5 : 8, t)));
      case 2:
        return pick(2) == 0 ? -a : (pick(2) == 0 ? abs(a) : unary(UnaryOp::bit_not, a));
      default:
        return binary(ops[pick(std::size(ops))], a, grow(t, depth - 1));
    }
  }

  // No product under a sum: contraction would change bits.
  Expr float_node(DType t, int depth) {
    const BinaryOp ops[] = {BinaryOp::add, BinaryOp::sub, BinaryOp::min, BinaryOp::max,
                            BinaryOp::div};
    const UnaryOp unaries[] = {UnaryOp::neg,  UnaryOp::abs,   UnaryOp::floor,
                               UnaryOp::ceil, UnaryOp::trunc, UnaryOp::round};
    const Expr a = grow(t, depth - 1);
    switch (pick(4)) {
      case 0:
        return unary(unaries[pick(std::size(unaries))], a);
      case 1:
        return max(a * leaf(t), leaf(t));
      default:
        return binary(ops[pick(std::size(ops))], a, grow(t, depth - 1));
    }
  }

  Expr question(int depth) {
    const BinaryOp comparisons[] = {BinaryOp::eq, BinaryOp::ne, BinaryOp::lt,
                                    BinaryOp::le, BinaryOp::gt, BinaryOp::ge};
    switch (pick(4)) {
      case 0:
        return !grow(boolean, depth - 1);
      case 1:
        return binary(pick(2) == 0 ? BinaryOp::logical_and : BinaryOp::logical_or,
                      grow(boolean, depth - 1), grow(boolean, depth - 1));
      default: {
        const DType t = kTypes[pick(std::size(kTypes) - 1)];
        return binary(comparisons[pick(6)], grow(t, depth - 1), grow(t, depth - 1));
      }
    }
  }

  Rng& rng_;
  Expr at_;
  std::vector<Buffer> inputs_;
};

/// Values of a type with the edges among them.
Array edgy(DType t, uint64_t seed) {
  const Array a = random(t, {kElements}, seed);
  if (is_bool(t)) return a;
  std::vector<double> v = a.to_doubles();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> edges =
      is_float(t) ? std::vector<double>{0, -0.0, 1, inf, -inf, NAN, 65504, 1e-7, 2.5, -1.5}
                  : std::vector<double>{0, 1, static_cast<double>(min_int(t)), -1, 127, 7};
  for (size_t k = 0; k < edges.size(); ++k) v[(k * 5 + seed) % kElements] = edges[k];
  return from_doubles(t, {kElements}, v);
}

Stmt over_elements(int lanes, const Var& i, const Buffer& out, const Expr& at, const Expr& value) {
  For n;
  n.var = i;
  n.min = Expr(0);
  n.extent = Expr(kElements / lanes);
  n.body = make_stmt(Store{out, {at}, value, {}});
  return make_stmt(std::move(n));
}

bool same(const Array& a, const Array& b, int64_t k) {
  if (is_float(a.dtype())) {
    const double x = a.view(k, {1}).to_doubles()[0], y = b.view(k, {1}).to_doubles()[0];
    return x == y || (std::isnan(x) && std::isnan(y));
  }
  const int64_t size = byte_size(a.dtype());
  return std::equal(static_cast<char*>(a.raw()) + k * size,
                    static_cast<char*>(a.raw()) + (k + 1) * size,
                    static_cast<char*>(b.raw()) + k * size);
}

void compare_once(uint64_t seed, const Target& target) {
  Rng rng(seed);
  const int lanes_of[] = {1, 4, 16};
  const int lanes = lanes_of[seed % 3];
  const Var i("i");
  const Expr at = lanes == 1 ? Expr(i) : ramp(i * lanes, Expr(1), lanes);
  Grower grower(rng, at);
  const DType t = kTypes[seed % std::size(kTypes)];
  const Buffer out("out", t, {Expr(kElements)});
  Program p;
  p.name = "random";
  for (const Buffer& b : grower.inputs()) p.params.push_back({b, ParamRole::input});
  p.params.push_back({out, ParamRole::output});
  p.body = over_elements(lanes, i, out, at, grower.grow(t, 4));
  verify(p, Form::Flat);

  std::vector<void*> pointers;
  std::vector<HostBuffer> buffers;
  std::vector<Array> keep;
  for (size_t k = 0; k < grower.inputs().size(); ++k) {
    keep.push_back(edgy(grower.inputs()[k]->dtype, seed + k));
    pointers.push_back(keep.back().raw());
    buffers.push_back({keep.back().raw()});
  }
  const Array want = zeros(t, {kElements}), got = guarded_array(t, {kElements}, GuardAt::end);
  buffers.push_back({want.raw()});
  pointers.push_back(got.raw());
  interpret(p, buffers);
  const ObjectCode object = generate_object(p, target);
  const LoadedCode code = load_object(object.bytes, object.symbol);
  reinterpret_cast<tenon_kernel>(code.entry)(pointers.data(), nullptr, nullptr, nullptr, nullptr);
  for (int64_t k = 0; k < kElements; ++k) {
    if (same(want, got, k)) continue;
    INFO("seed " << seed << " on " << target.name << ", element " << k << "\n" << print(p));
    INFO("wanted " << want.view(k, {1}).to_doubles()[0] << " got "
                   << got.view(k, {1}).to_doubles()[0]);
    REQUIRE(same(want, got, k));
  }
}

}  // namespace

TEST_CASE("random expressions: the interpreter and machine code agree") {
  for (const std::string& name : Target::known_names()) {
    const Target target = Target::parse(name);
    if (!target.runs_on(Target::host())) continue;
    for (uint64_t seed = 0; seed < 130; ++seed) compare_once(seed, target);
  }
  SUCCEED();
}
