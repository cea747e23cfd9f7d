#include <tenon/ir/ops.h>
#include <tenon/support/error.h>
#include <tenon/support/rng.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <limits>

#include "case_harness.h"
#include "fuzz/random_step.h"
#include "interp/interp.h"

// The kinds of the cases with other shapes, types and schedules, drawn at random. What is wanted is
// what the interpreter makes of the unscheduled program.

using namespace tenon;
using namespace tenon::cases;

namespace {

const std::vector<DType> kNumbers = {i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64};

template <class T>
T one_of(Rng& rng, const std::vector<T>& all) {
  return all[static_cast<size_t>(rng.below(static_cast<int64_t>(all.size())))];
}

/// A formula being drawn, its inputs filled as they are made.
struct Draw {
  Rng& rng;
  Work work;
  int axes = 0;

  int64_t size() {
    return rng.chance(0.06) ? rng.below(2) : rng.between(1, rng.chance(0.7) ? 24 : 70);
  }
  int64_t short_size() { return rng.between(1, 7); }
  Axis axis(int64_t n) {
    const int number = axes++;
    return Axis(std::string(1, "ijklmnpq"[number % 8]) + (number < 8 ? "" : "x"), n);
  }

  /// Small whole numbers: sums of up to 70 of them are exact in every type.
  Tensor small(DType t, const Shape& shape, int64_t low = -2, int64_t high = 2) {
    return filled(t, shape, [&] { return static_cast<double>(rng.between(low, high)); });
  }
  /// Anything, ends and special values among it.
  Tensor any_values(DType t, const Shape& shape) {
    const double inf = std::numeric_limits<double>::infinity();
    const std::vector<double> special = {0,    -0.0,  inf,  -inf, std::nan(""), 0.5,
                                         -1.5, 65504, 1e-8, 3e9,  -129};
    return filled(t, shape, [&]() -> double {
      if (is_float(t)) return rng.chance(0.3) ? one_of(rng, special) : (rng.real() - 0.5) * 40;
      const double low = static_cast<double>(min_int(t)),
                   high = static_cast<double>(max_int(t)) / 2;
      return rng.chance(0.2) ? (rng.chance(0.5) ? low : high)
                             : static_cast<double>(rng.between(-9, 9));
    });
  }
  Tensor filled(DType t, const Shape& shape, const std::function<double()>& value) {
    const std::string name = "X" + std::to_string(work.inputs.size());
    std::vector<double> values(element_count(shape));
    for (double& v : values) v = value();
    work.inputs[name] = from_doubles(t, shape, values);
    return input(name, t, shape);
  }
  DType number() { return one_of(rng, kNumbers); }
};

Tensor map2(const std::string& name, const Axis& i, const Axis& j, const Expr& value) {
  return compute(name, {i, j}, value);
}

/// A producer and what reads it with an offset, a stride, a dilation, from the end, or transposed.
void stencil(Draw& d) {
  const DType t = d.number();
  const int64_t n = d.size(), stride = d.rng.between(1, 3), dilation = d.rng.between(1, 3),
                taps = d.short_size();
  const int64_t size = std::max<int64_t>(0, (n - 1) * stride + (taps - 1) * dilation + 1);
  const Tensor x = d.small(t, {size});
  const Axis p = d.axis(size), i = d.axis(n), k = d.axis(taps);
  const Tensor a = compute("A", {p}, x(p) * imm(2, t) + imm(1, t));
  Expr at = Expr(i) * stride + Expr(k) * dilation;
  if (d.rng.chance(0.3)) at = (size - 1) - at;
  const Tensor b = compute("B", {i}, sum(a(at), k));
  const Axis l = d.axis(n);
  d.work.outputs = {compute("C", {l}, b(l) + b((n - 1) - Expr(l)))};
}

/// Padding, then a window in two dimensions, then a map.
void padded(Draw& d) {
  const DType t = d.number();
  const int64_t h = d.size(), w = d.short_size() + 3, r = d.rng.between(1, 3),
                before = d.rng.below(3);
  const Tensor x = d.small(t, {h, w});
  const Axis y = d.axis(h + before + 2), v = d.axis(w + before + 1);
  const Expr row = Expr(y) - before, column = Expr(v) - before;
  const Tensor pad =
      map2("pad", y, v,
           select(row >= 0 && row < h && column >= 0 && column < w, x(row, column), imm(1, t)));
  const Axis i = d.axis(h + before + 3 - r), j = d.axis(w + before + 2 - r), p = d.axis(r),
             q = d.axis(r);
  const Expr tap = pad(Expr(i) + p, Expr(j) + q);
  const Tensor window =
      map2("window", i, j, d.rng.chance(0.5) ? sum(tap, {p, q}) : reduce_max(tap, {p, q}));
  const Axis i2 = d.axis(h + before + 3 - r), j2 = d.axis(w + before + 2 - r);
  d.work.outputs = {map2("relu", i2, j2, max(window(i2, j2), imm(0, t)))};
}

void product(Draw& d) {
  const DType t = d.number(), wide = d.rng.chance(0.5) ? t : is_float(t) ? f32 : i32;
  const int64_t m = d.size(), n = d.size(), depth = d.size();
  const Tensor a = d.small(t, {m, depth}, 0, 1), b = d.small(t, {depth, n}, 0, 1);
  const Axis i = d.axis(m), j = d.axis(n), k = d.axis(depth);
  const Expr term = cast(wide, a(i, k)) * cast(wide, b(k, j));
  Expr start;
  if (d.rng.chance(0.3)) start = imm(3, wide);
  if (d.rng.chance(0.3)) start = d.small(wide, {m, n})(i, j);
  const Tensor c = map2("C", i, j, sum(term, {k}, {.start = {start}}));
  const Axis i2 = d.axis(m), j2 = d.axis(n);
  d.work.outputs = {map2("D", i2, j2, c(i2, j2) + imm(1, wide))};
}

void reduction(Draw& d) {
  const DType t = d.number();
  const int64_t n = d.size(), depth = d.size(), last = d.short_size();
  const Tensor x = d.small(t, {n, depth, last});
  const Axis i = d.axis(n), k = d.axis(depth), l = d.axis(last);
  const std::vector<Expr> conditions = {Expr(), Expr(k) <= i,
                                        floor_mod(Expr(k) + Expr(l) * 2 + i, 3) == 1,
                                        x(i, k, l) > imm(0, t), Expr(k) >= 2 && Expr(l) < 5};
  const std::vector<std::shared_ptr<const Combiner>> combiners = {sum_combiner(t), max_combiner(t),
                                                                  min_combiner(t)};
  d.work.outputs = {compute("C", {i},
                            reduce(one_of(d.rng, combiners), x(i, k, l), {k, l},
                                   {.condition = one_of(d.rng, conditions)}))};
}

void logic(Draw& d) {
  const int64_t n = d.size(), depth = d.size();
  const Tensor x = d.small(boolean, {n, depth}, 0, 1), y = d.small(f32, {n, depth});
  const Axis i = d.axis(n), k = d.axis(depth), p = d.axis(n), q = d.axis(depth), u = d.axis(n);
  const Tensor some = compute("some", {i}, any(x(i, k) && y(i, k) > 1.0, {k}));
  const Tensor every = compute("every", {p}, all(!x(p, q) || y(p, q) != 2.0, {q}));
  d.work.outputs = {
      compute("C", {u}, select(some(u), cast(i32, every(u)) + 2, cast(i32, !every(u)))), some};
}

void best_of(Draw& d) {
  const DType t = d.number();
  const int64_t n = d.size(), depth = d.size();
  const Tensor x = d.rng.chance(0.5) ? d.small(t, {n, depth}) : d.any_values(t, {n, depth});
  const Axis i = d.axis(n), k = d.axis(depth);
  const bool last = d.rng.chance(0.5);
  d.work.outputs = compute_tuple(
      "best", {i}, d.rng.chance(0.5) ? arg_max(x(i, k), k, last) : arg_min(x(i, k), k, last));
}

void nested(Draw& d) {
  const DType t = d.number();
  const int64_t n = d.size(), a = d.short_size(), b = d.short_size();
  const Tensor x = d.small(t, {n + a, b + 2});
  const Axis i = d.axis(n), p = d.axis(a), q = d.axis(b);
  d.work.outputs = {
      compute("C", {i}, reduce_max(sum(x(Expr(i) + p, Expr(q) + 1), q), {p}) + sum(x(i, q), {q}))};
}

void joined(Draw& d) {
  const DType t = d.number();
  const int64_t m = d.size(), n = d.size(), w = d.short_size();
  const Tensor a = d.any_values(t, {m, w}), b = d.any_values(t, {w, n});
  const Axis i = d.axis(m + n), j = d.axis(w), p = d.axis(w), q = d.axis(m + n);
  const Tensor c = map2("C", i, j, select(Expr(i) < m, a(i, j), b(j, Expr(i) - m)));
  d.work.outputs = {map2("T", p, q, c(q, (w - 1) - Expr(p)))};
}

void gathered(Draw& d) {
  const DType t = d.number();
  const int64_t n = d.size(), rows = d.short_size(), w = d.size();
  const Tensor x = d.any_values(t, {rows, w});
  const Tensor at = d.filled(i32, {n}, [&] { return static_cast<double>(d.rng.below(rows)); });
  const Axis p = d.axis(rows), q = d.axis(w), i = d.axis(n), j = d.axis(w);
  const Tensor y = map2("Y", p, q, max(x(p, q), imm(1, t)));
  d.work.outputs = {map2("C", i, j, y(cast(i64, at(i)), j))};
}

/// A random expression of type t over the point (i, j) of two tensors.
class Expressions {
 public:
  Expressions(Draw& d, DType t, Expr i, Expr j, Tensor x, Tensor y)
      : d_(d), t_(t), i_(std::move(i)), j_(std::move(j)), x_(std::move(x)), y_(std::move(y)) {}

  Expr make(int depth) {
    if (depth == 0) return leaf();
    return is_float(t_) ? of_float(depth) : of_int(depth);
  }

 private:
  Expr leaf() {
    switch (d_.rng.below(4)) {
      case 0:
        return imm(static_cast<double>(d_.rng.between(is_unsigned_int(t_) ? 0 : -9, 9)), t_);
      case 1:
        return x_(i_, j_);
      case 2:
        return y_(i_, j_);
      default:
        return cast(t_, i_ * 3 - j_);
    }
  }
  Expr condition(int depth) {
    const Expr a = make(depth - 1), b = make(depth - 1);
    switch (d_.rng.below(5)) {
      case 0:
        return a < b;
      case 1:
        return a == b;
      case 2:
        return !(a >= b);
      case 3:
        return a != b || a > b;
      default:
        return a <= b && i_ < 7;
    }
  }
  Expr through(const Expr& e) { return cast(t_, cast(one_of(d_.rng, kNumbers), e)); }
  Expr of_int(int depth) {
    const Expr a = make(depth - 1), b = make(depth - 1), none = imm(0, t_), one = imm(1, t_);
    const Expr divisor = select(b == none, one, b);
    const std::vector<BinaryOp> plain = {
        BinaryOp::add,     BinaryOp::sub,    BinaryOp::mul,     BinaryOp::min, BinaryOp::max,
        BinaryOp::bit_and, BinaryOp::bit_or, BinaryOp::bit_xor, BinaryOp::shl, BinaryOp::shr};
    switch (d_.rng.below(9)) {
      case 0:
        return floor_div(a, divisor);
      case 1:
        return floor_mod(a, divisor);
      case 2:
        return trunc_div(a, divisor);
      case 3:
        return trunc_mod(a, divisor);
      case 4:
        return select(condition(depth), a, b);
      case 5:
        return through(a);
      case 6:
        return d_.rng.chance(0.5) ? -a : abs(a);
      default: {
        const BinaryOp op = one_of(d_.rng, plain);
        const bool shift = op == BinaryOp::shl || op == BinaryOp::shr;
        return binary(op, a,
                      shift ? binary(BinaryOp::bit_and, b, imm(byte_size(t_) * 8 - 1, t_)) : b);
      }
    }
  }
  /// Products and quotients are of leaves and go through floor, so that nothing contracts a*b+c and
  /// no sign of a zero from min or max is seen.
  Expr of_float(int depth) {
    const Expr a = make(depth - 1), b = make(depth - 1);
    switch (d_.rng.below(11)) {
      case 0:
        return floor(leaf() * leaf());
      case 1:
        return floor(leaf() / leaf());
      case 2:
        return a + b;
      case 3:
        return a - b;
      case 4:
        return min(a, b);
      case 5:
        return max(a, b);
      case 6:
        return select(condition(depth), a, b);
      case 7:
        return through(a);
      case 8:
        return select(is_nan(a), b, sqrt(abs(a)));
      case 9:
        return d_.rng.chance(0.5) ? floor(a) : ceil(a);
      default:
        return d_.rng.chance(0.5) ? trunc(a) : round(a);
    }
  }

  Draw& d_;
  const DType t_;
  const Expr i_, j_;
  const Tensor x_, y_;
};

void arithmetic(Draw& d) {
  const DType t = d.number();
  const int64_t m = d.short_size(), n = d.size();
  const Tensor x = d.any_values(t, {m, n}), y = d.any_values(t, {m, n});
  const Axis i = d.axis(m), j = d.axis(n);
  d.work.outputs = {
      map2("C", i, j, Expressions(d, t, i, j, x, y).make(static_cast<int>(d.rng.between(1, 4))))};
}

struct Kind {
  const char* name;
  void (*draw)(Draw&);
};
const std::vector<Kind> kKinds = {
    {"stencil", stencil},       {"padded", padded},        {"product", product},
    {"reduction", reduction},   {"logic", logic},          {"best_of", best_of},
    {"nested", nested},         {"joined", joined},        {"gathered", gathered},
    {"arithmetic", arithmetic}, {"arithmetic", arithmetic}};

/// What the unscheduled program gives in the interpreter; false where that has no value (a division
/// by zero in a constant, a formula that is refused).
void fill_wanted(Work& work) {
  const Program program = make_program("case", work.outputs);
  std::vector<HostBuffer> buffers;
  for (const Param& p : program.params) {
    if (p.role != ParamRole::output) {
      buffers.push_back({work.inputs.at(p.buffer->name).raw()});
      continue;
    }
    work.want.push_back(zeros(p.buffer->dtype, const_shape(p.buffer->shape).value()));
    buffers.push_back({work.want.back().raw()});
  }
  interpret(program, buffers);
}

int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : otherwise;
}

}  // namespace

TEST_CASE("other shapes, types and schedules of the kinds of cases") {
  const int64_t seed = setting("TENON_SEED", 1), only = setting("TENON_CASE", -1);
  const int64_t first = only < 0 ? 0 : only,
                last = only < 0 ? setting("TENON_CASES", 220) : only + 1;
  std::cout << fmt::format("other shapes: TENON_SEED={}\n", seed);
  std::vector<Backend> machines;
  for (const Backend& b : backends())
    if (b.machine_code) machines.push_back(b);
  for (int64_t n = first; n < last; ++n) {
    Rng rng(static_cast<uint64_t>(seed * 1000003 + n));
    const Kind kind = one_of(rng, kKinds);
    const std::string label = fmt::format("TENON_SEED={} TENON_CASE={} {}", seed, n, kind.name);
    INFO(label);
    Draw draw{rng, {}};
    kind.draw(draw);
    fill_wanted(draw.work);
    draw.work.zeros_equal = true;
    const uint64_t steps = rng.next();
    const auto schedule = [&](Schedule& s) {
      Rng own(steps);
      for (int64_t left = own.between(0, 20); left > 0; --left) s.try_apply(random_step(s, own));
    };
    const CheckOptions may = {true, {"lower error"}};
    check_on(backends()[0], draw.work, label, schedule, may);
    check_on(backends()[1], draw.work, label, schedule, may);
    const Backend& machine = machines[static_cast<size_t>(n) % machines.size()];
    check_on(machine, draw.work, label, schedule, may);
    if (rng.chance(0.3))
      check_on(
          machine, draw.work, label + " plain", [](Schedule&) {}, may);
    if (rng.chance(0.3))
      check_on(machine, draw.work, label + " vectorised", split_and_vectorize, may);
  }
}
