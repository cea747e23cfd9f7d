#include <tenon/ir/ops.h>
#include <tenon/runtime/guard.h>
#include <tenon/runtime/module.h>
#include <tenon/support/error.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "arith/simplify.h"
#include "codegen/llvm/codegen.h"
#include "interp/interp.h"

// Every operation and cast on the edges of every type: the builders and the simplifier on
// constants, the interpreter, scalar and vector machine code give one result.

using namespace tenon;

namespace {

constexpr DType kTypes[] = {i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64, boolean};
constexpr int kLanes = 16;

/// An operation on two operands (unary ones take the first), with the name for messages.
struct Operation {
  std::string name;
  std::function<Expr(const Expr&, const Expr&)> make;
};

std::vector<Operation> operations(DType t) {
  std::vector<Operation> out;
  auto binaries = [&](std::initializer_list<BinaryOp> ops) {
    for (BinaryOp op : ops)
      out.push_back(
          {std::string(name(op)), [op](const Expr& a, const Expr& b) { return binary(op, a, b); }});
  };
  auto unaries = [&](std::initializer_list<UnaryOp> ops) {
    for (UnaryOp op : ops)
      out.push_back(
          {std::string(name(op)), [op](const Expr& a, const Expr&) { return unary(op, a); }});
  };
  binaries({BinaryOp::eq, BinaryOp::ne, BinaryOp::lt, BinaryOp::le, BinaryOp::gt, BinaryOp::ge,
            BinaryOp::min, BinaryOp::max});
  if (is_bool(t)) {
    binaries({BinaryOp::logical_and, BinaryOp::logical_or, BinaryOp::bit_and, BinaryOp::bit_or,
              BinaryOp::bit_xor});
    unaries({UnaryOp::logical_not});
    return out;
  }
  binaries({BinaryOp::add, BinaryOp::sub, BinaryOp::mul});
  unaries({UnaryOp::neg, UnaryOp::abs});
  if (is_float(t)) {
    binaries({BinaryOp::div});
    unaries({UnaryOp::floor, UnaryOp::ceil, UnaryOp::trunc, UnaryOp::round, UnaryOp::is_nan});
    return out;
  }
  binaries({BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor, BinaryOp::shl, BinaryOp::shr});
  unaries({UnaryOp::bit_not});
  for (BinaryOp op :
       {BinaryOp::floor_div, BinaryOp::floor_mod, BinaryOp::trunc_div, BinaryOp::trunc_mod})
    out.push_back({std::string(name(op)), [op, t](const Expr& a, const Expr& b) {
                     return binary(op, a, select(b == zero(t), imm(3, t), b));
                   }});
  return out;
}

/// A literal of each of the edges of a type.
std::vector<Expr> edges(DType t) {
  std::vector<Expr> out;
  if (is_bool(t)) return {bool_imm(false), bool_imm(true)};
  if (is_float(t)) {
    const double inf = std::numeric_limits<double>::infinity();
    for (double v : {0.0, -0.0, 1.0, -1.5, 1.9, -1.9, 2.5, 300.75, 2048.0, 65504.0, -40000.0, 3e9,
                     5.9604644775390625e-8, inf, -inf, std::nan("")})
      out.push_back(float_imm(t == f16 && v == 3e9 ? 3.0 : v, t));
    return out;
  }
  std::vector<int64_t> values = {min_int(t), min_int(t) + 1, 0,         1, 2, 3, 5,
                                 7,          max_int(t) - 1, max_int(t)};
  if (is_signed_int(t)) values.insert(values.end(), {-1, -2, -7});
  if (t == u64) values.insert(values.end(), {-1, -2});  // the bits of the highest ones
  for (int64_t v : values) out.push_back(int_imm(v, t));
  return out;
}

double number(const Expr& literal) {
  return as_int(literal) ? static_cast<double>(*as_int(literal)) : *as_float(literal);
}

void put(const Array& a, int64_t at, const Expr& literal) {
  if (!is_float(a.dtype())) {
    const int64_t v = *as_int(literal);
    std::memcpy(static_cast<char*>(a.raw()) + at * byte_size(a.dtype()), &v,
                static_cast<size_t>(byte_size(a.dtype())));
    return;
  }
  const Array one = from_doubles(a.dtype(), {1}, {number(literal)});
  std::memcpy(static_cast<char*>(a.raw()) + at * byte_size(a.dtype()), one.raw(),
              static_cast<size_t>(byte_size(a.dtype())));
}

bool same(const Array& a, const Array& b, int64_t k) {
  const auto size = static_cast<size_t>(byte_size(a.dtype()));
  if (is_float(a.dtype())) {
    const double x = a.view(k, {1}).to_doubles()[0], y = b.view(k, {1}).to_doubles()[0];
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    return x == y;
  }
  return std::memcmp(static_cast<char*>(a.raw()) + k * static_cast<int64_t>(size),
                     static_cast<char*>(b.raw()) + k * static_cast<int64_t>(size), size) == 0;
}

/// All pairs of edges of one type, filled up to whole vectors.
struct Pairs {
  DType type;
  std::vector<std::pair<Expr, Expr>> all;
  int64_t size() const { return static_cast<int64_t>(all.size()); }

  explicit Pairs(DType t) : type(t) {
    for (const Expr& a : edges(t))
      for (const Expr& b : edges(t)) all.emplace_back(a, b);
    while (all.size() % kLanes != 0) all.push_back(all[0]);
  }
};

/// out[k] = f(A[k], B[k]) for each f, in vectors of `lanes`.
Program program_of(const std::vector<Operation>& operations, const Pairs& pairs, int lanes) {
  const Buffer a("A", pairs.type, {Expr(pairs.size())}), b("B", pairs.type, {Expr(pairs.size())});
  Program p;
  p.name = "edges";
  p.params = {{a, ParamRole::input}, {b, ParamRole::input}};
  std::vector<Stmt> stores;
  For n;
  n.var = Var("i");
  n.min = Expr(0);
  n.extent = Expr(pairs.size() / lanes);
  const Expr at = lanes == 1 ? Expr(n.var) : ramp(Expr(n.var) * lanes, Expr(1), lanes);
  for (const Operation& f : operations) {
    const Expr value = f.make(load(a, {at}), load(b, {at}));
    const Buffer out(f.name, value.dtype(), {Expr(pairs.size())});
    p.params.push_back({out, ParamRole::output});
    stores.push_back(make_stmt(Store{out, {at}, value, {}}));
  }
  n.body = seq(std::move(stores));
  p.body = make_stmt(std::move(n));
  verify(p, Form::Flat);
  return p;
}

std::vector<Array> arguments(const Program& p, const Pairs& pairs) {
  std::vector<Array> out;
  for (const Param& param : p.params)
    out.push_back(guarded_array(param.buffer->dtype, {pairs.size()}, GuardAt::end));
  for (int64_t k = 0; k < pairs.size(); ++k) {
    put(out[0], k, pairs.all[static_cast<size_t>(k)].first);
    put(out[1], k, pairs.all[static_cast<size_t>(k)].second);
  }
  return out;
}

void run_code(const Program& p, const std::vector<Array>& arrays) {
  std::vector<void*> pointers;
  for (const Array& a : arrays) pointers.push_back(a.raw());
  const ObjectCode object = generate_object(p, Target::host());
  const LoadedCode code = load_object(object.bytes, object.symbol);
  reinterpret_cast<tenon_kernel>(code.entry)(pointers.data(), nullptr, nullptr, nullptr, nullptr);
}

/// The interpreter's results, which machine code must equal.
std::vector<Array> checked_results(const std::vector<Operation>& operations, const Pairs& pairs) {
  std::vector<Array> want;
  for (int lanes : {1, kLanes}) {
    const Program p = program_of(operations, pairs, lanes);
    const std::vector<Array> interpreted = arguments(p, pairs), run = arguments(p, pairs);
    std::vector<HostBuffer> buffers;
    for (const Array& a : interpreted) buffers.push_back({a.raw()});
    interpret(p, buffers);
    run_code(p, run);
    if (want.empty()) want = interpreted;
    for (size_t o = 2; o < want.size(); ++o)
      for (int64_t k = 0; k < pairs.size(); ++k) {
        INFO(name(pairs.type) << " " << operations[o - 2].name << " of "
                              << print(pairs.all[static_cast<size_t>(k)].first) << ", "
                              << print(pairs.all[static_cast<size_t>(k)].second) << " in " << lanes
                              << " lanes");
        REQUIRE(same(want[o], interpreted[o], k));
        REQUIRE(same(want[o], run[o], k));
      }
  }
  return want;
}

/// Whether `e` is a literal other than element k of the results.
bool is_another(const Expr& e, const Array& results, int64_t k) {
  if (!as_int(e) && !as_float(e)) return false;
  const Array own = zeros(results.dtype(), {1});
  put(own, 0, e);
  return !same(own, results.view(k, {1}), 0);
}

void check_folding(const std::vector<Operation>& operations, const Pairs& pairs,
                   const std::vector<Array>& want) {
  for (size_t o = 0; o < operations.size(); ++o)
    for (int64_t k = 0; k < pairs.size(); ++k) {
      const auto& [a, b] = pairs.all[static_cast<size_t>(k)];
      const Expr e = operations[o].make(a, b);
      INFO(operations[o].name << " of " << print(a) << ", " << print(b) << " folds to " << print(e)
                              << ", simplifies to " << print(simplify(e)));
      REQUIRE_FALSE(is_another(e, want[o + 2], k));
      REQUIRE_FALSE(is_another(simplify(e), want[o + 2], k));
    }
}

}  // namespace

TEST_CASE("edges of every type: constants, interpreter, scalar and vector code give one result") {
  for (DType t : kTypes) {
    const std::vector<Operation> all = operations(t);
    const Pairs pairs(t);
    check_folding(all, pairs, checked_results(all, pairs));
  }
}

TEST_CASE("casts of the edges of every type to every type give one result") {
  for (DType t : kTypes) {
    std::vector<Operation> all;
    for (DType to : kTypes)
      if (to != t)
        all.push_back({fmt::format("to_{}", name(to)),
                       [to](const Expr& a, const Expr&) { return cast(to, a); }});
    const Pairs pairs(t);
    check_folding(all, pairs, checked_results(all, pairs));
  }
}

TEST_CASE("what is not known of floats is not folded") {
  const Buffer x("x", f32, {Expr(4)});
  const Expr v = load(x, {Expr(0)}), none = float_imm(0);
  for (const Expr& e : {v - v, v * none, v / v, v + none, Expr(v == v), min(v, v + none)})
    CHECK_FALSE((as_float(simplify(e)) || as_int(simplify(e))));
  CHECK(structural_equal(simplify(v + none), v + none));
  CHECK(structural_equal(simplify(v * none), v * none));
}
