#include <tenon/ir/ops.h>
#include <tenon/schedule/schedule.h>

#include <tenon/ir/visit.h>
#include <catch2/catch.hpp>
#include <cmath>

#include "formulas.h"
#include "interp/interp.h"
#include "lower/lower.h"

// Every combiner in every element type, with starts and conditions, as tuples and in order: the
// interpreter on the loop tree and on flat code and machine code give the same bits, unscheduled
// and with tails, vectors, threads and unrolled loops.

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr DType kTypes[] = {i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64, boolean};

std::shared_ptr<const Combiner> digits(DType t) {
  return combiner(
      "digits", zero(t), [](Expr a, Expr b) { return a + a + b; }, Commutes::no);
}

std::shared_ptr<const Combiner> moments(DType t) {
  return tuple_combiner(
      "moments", {zero(t), min_combiner(t)->identity[0]},
      [](const std::vector<Expr>& a, const std::vector<Expr>& b) {
        return std::vector<Expr>{a[0] + b[0], min(a[1], b[1])};
      },
      Commutes::yes);
}

/// Rows of numbers, each reduced in many ways.
std::vector<Tensor> of_numbers(DType t, int64_t rows, int64_t width) {
  const Tensor x = input("X", t, {rows, width}), s = input("S", t, {rows});
  std::vector<Tensor> out;
  auto row = [&](const std::string& name, const std::function<Expr(Axis, Axis)>& f) {
    const Axis i("i", Expr(rows)), k("k", Expr(width));
    out.push_back(compute(name, {i}, f(i, k)));
  };
  auto pair = [&](const std::string& name, const std::function<std::vector<Expr>(Axis, Axis)>& f) {
    const Axis i("i", Expr(rows)), k("k", Expr(width));
    for (const Tensor& e : compute_tuple(name, {i}, f(i, k))) out.push_back(e);
  };
  row("total", [&](Axis i, Axis k) { return sum(x(i, k), {k}, {.start = {s(i)}}); });
  row("product", [&](Axis i, Axis k) { return prod(x(i, k), {k}, {.condition = k < 3}); });
  row("highest", [&](Axis i, Axis k) { return reduce_max(x(i, k), {k}, {.condition = k <= i}); });
  row("lowest", [&](Axis i, Axis k) { return reduce_min(x(i, k), {k}, {.start = {s(i)}}); });
  pair("best", [&](Axis i, Axis k) { return arg_max(x(i, k), k); });
  pair("worst", [&](Axis i, Axis k) {
    return arg_min(x(i, k), k, true, {.start = {s(i), -1}, .condition = k > 0});
  });
  row("digits", [&](Axis i, Axis k) { return reduce(digits(t), x(i, k), {k}, {.start = {s(i)}}); });
  row("nested", [&](Axis i, Axis k) {
    const Axis j("j", Expr(width));
    return sum(reduce_max(x(i, j), {j}, {.start = {s(i)}, .condition = j <= k}), k);
  });
  pair("moments", [&](Axis i, Axis k) {
    return reduce_tuple(moments(t), {x(i, k), x(i, k)}, {k}, {.condition = k != i});
  });
  return out;
}

std::vector<Tensor> of_bools(int64_t rows, int64_t width) {
  const Tensor x = input("X", boolean, {rows, width}), s = input("S", boolean, {rows});
  std::vector<Tensor> out;
  auto row = [&](const std::string& name, const std::function<Expr(Axis, Axis)>& f) {
    const Axis i("i", Expr(rows)), k("k", Expr(width));
    out.push_back(compute(name, {i}, f(i, k)));
  };
  const auto odd = combiner(
      "odd", bool_imm(false), [](Expr a, Expr b) { return a != b; }, Commutes::yes);
  const auto later = combiner(
      "later", bool_imm(false), [](Expr, Expr b) { return b; }, Commutes::no);
  row("some", [&](Axis i, Axis k) { return any(x(i, k), {k}, {.start = {s(i)}}); });
  row("each", [&](Axis i, Axis k) { return all(x(i, k), {k}, {.condition = k <= i}); });
  row("odd", [&](Axis i, Axis k) { return reduce(odd, x(i, k), {k}); });
  row("later", [&](Axis i, Axis k) { return reduce(later, x(i, k), {k}, {.start = {s(i)}}); });
  row("count", [&](Axis i, Axis k) { return sum(cast(i32, x(i, k)), k); });
  return out;
}

Program program_of(DType t, int64_t rows, int64_t width) {
  return make_program("p", is_bool(t) ? of_bools(rows, width) : of_numbers(t, rows, width));
}

/// Tails on both loops; rows in vectors and threads, or the reduction unrolled.
Program scheduled(const Program& plain, const Target& target, bool vectors) {
  Schedule s(plain, target);
  for (const StagePath& path : stage_paths(plain.body)) {
    const std::string stage = path.stage->name;
    s.apply(Split{stage, "k", 4, Tail::guard});
    s.apply(Split{stage, "i", vectors ? 8 : 3, Tail::guard});
    if (vectors) {
      s.apply(Reorder{stage, {"i.o", "k.o", "k.i", "i.i"}});
      s.apply(Vectorize{stage, "i.i", Tail::mask});
      s.apply(Parallel{stage, "i.o"});
    } else {
      s.apply(Reorder{stage, {"k.o", "i.o", "i.i", "k.i"}});
      s.apply(Unroll{stage, "k.i"});
    }
  }
  return s.program();
}

/// Small whole numbers, and for floats the special ones too.
void fill(Array& a, uint64_t seed, bool specials) {
  std::vector<double> v = random(a.dtype(), a.shape(), seed).to_doubles();
  const double kInf = std::numeric_limits<double>::infinity();
  const double special[] = {NAN, kInf, -kInf, -0.0, 6e4, 1e-7};
  if (is_float(a.dtype()) && specials)
    for (size_t n = 0; n < std::size(special); ++n)
      if (!v.empty()) v[(7 * n + seed) % v.size()] = special[n];
  const Array from = from_doubles(a.dtype(), a.shape(), v);
  std::copy_n(static_cast<const char*>(from.raw()), a.bytes(), static_cast<char*>(a.raw()));
}

struct Data {
  std::vector<Array> all;
  size_t outputs_from = 0;

  Data(const Program& p, GuardAt at, bool specials) {
    for (const Param& param : p.params) {
      all.push_back(
          guarded_array(param.buffer->dtype, const_shape(param.buffer->shape).value(), at));
      if (param.role == ParamRole::output) continue;
      fill(all.back(), 3 + all.size(), specials);
      outputs_from = all.size();
    }
  }
  std::vector<HostBuffer> buffers() const {
    std::vector<HostBuffer> out;
    for (const Array& a : all) out.push_back({a.raw()});
    return out;
  }
};

std::string difference(const Program& p, const Data& want, const Data& got) {
  for (size_t o = want.outputs_from; o < want.all.size(); ++o) {
    const std::vector<double> w = want.all[o].to_doubles(), g = got.all[o].to_doubles();
    for (size_t k = 0; k < w.size(); ++k)
      if (w[k] != g[k] && !(std::isnan(w[k]) && std::isnan(g[k])))
        return fmt::format("{}[{}] is {} and not {}", p.params[o].buffer->name, k, g[k], w[k]);
  }
  return {};
}

void check(const Program& plain, bool specials) {
  const Target host = Target::host();
  const Data want(plain, GuardAt::end, specials);
  interpret(plain, want.buffers());
  for (const Program& p : {plain, scheduled(plain, host, false), scheduled(plain, host, true)}) {
    INFO(print(p));
    const Data tree(p, GuardAt::end, specials), flat(p, GuardAt::end, specials);
    interpret(p, tree.buffers());
    CHECK(difference(p, want, tree) == "");
    interpret(lower(p, host), flat.buffers());
    CHECK(difference(p, want, flat) == "");
    const Kernel kernel = compile(p, host);
    for (GuardAt at : {GuardAt::end, GuardAt::start}) {
      const Data machine(p, at, specials);
      kernel.run(machine.all, default_pool());
      CHECK(difference(p, want, machine) == "");
    }
  }
}

}  // namespace

TEST_CASE("every reduction gives the same bits in every type, by the interpreter and as code") {
  for (DType t : kTypes) {
    DYNAMIC_SECTION(name(t)) {
      check(program_of(t, 11, 13), false);
      if (is_float(t)) check(program_of(t, 13, 7), true);
    }
  }
}

TEST_CASE("reductions over nothing give the start in every type") {
  for (DType t : kTypes) {
    DYNAMIC_SECTION(name(t)) { check(program_of(t, 5, 0), false); }
  }
}
