#include <fmt/format.h>
#include <tenon/compile/compile.h>
#include <tenon/support/rng.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/dot_product.h"
#include "kernels/templates.h"
#include "run_kernel.h"

// Products of narrow numbers with wide sums on the instructions that the target has for them,
// beside the interpreter on the unscheduled formula: integers exactly, bf16 within the bound of a
// sum whose terms are added in another order.

using namespace tenon;

namespace {

struct Product {
  DType a, b, sum;
  int64_t m, n, k;
  bool turned_a = false, turned_b = false, known = false, biased = false;
};

std::string text(const Product& p) {
  return fmt::format("{} x {} -> {}: {}x{}x{}{}{}{}{}", name(p.a), name(p.b), name(p.sum), p.m, p.n,
                     p.k, p.turned_a ? ", A turned" : "", p.turned_b ? ", B turned" : "",
                     p.known ? ", B known" : "", p.biased ? ", biased" : "");
}

Program build(const Product& p) {
  const auto shape = [](int64_t rows, int64_t columns, bool turned) {
    return turned ? std::vector<int64_t>{columns, rows} : std::vector<int64_t>{rows, columns};
  };
  const Tensor a = input("A", p.a, shape(p.m, p.k, p.turned_a));
  const auto b_shape = shape(p.k, p.n, p.turned_b);
  const Tensor b = p.known ? constant("B", p.b, b_shape) : input("B", p.b, b_shape);
  const Axis i("i", p.m), j("j", p.n), k("k", p.k);
  const Expr x = p.turned_a ? a(k, i) : a(i, k), y = p.turned_b ? b(j, k) : b(k, j);
  Tensor c = compute("C", {i, j}, sum(cast(p.sum, x) * cast(p.sum, y), k));
  if (p.biased) {
    const Tensor bias = input("bias", p.sum, {p.n});
    c = compute("Y", {i, j}, max(c(i, j) + bias(j), imm(0, p.sum)));
  }
  return make_program("product", {c});
}

/// Bytes at both ends of their range as often as not; halves in [-1, 1).
std::vector<RefArray> operands(const Program& program, uint64_t seed) {
  std::vector<RefArray> out = random_inputs(program, seed);
  Rng rng(seed);
  size_t at = 0;
  for (const Param& p : program.params) {
    if (p.role == ParamRole::output) continue;
    const DType t = p.buffer->dtype;
    if (byte_size(t) == 1)
      for (double& v : out[at].values) {
        const double low = t == u8 ? 0 : -128;
        v = low + (rng.chance(0.5)   ? static_cast<double>(rng.below(256))
                   : rng.chance(0.5) ? 255.0
                                     : 0.0);
      }
    ++at;
  }
  return out;
}

/// The rounding errors of a sum of k products of numbers below 1 in f32 in any order, for it and
/// for what it is compared with.
double bound(const Product& p) {
  return is_float(p.sum) ? 2 * static_cast<double>(p.k + 2) * static_cast<double>(p.k) * 0x1p-24
                         : 0;
}

std::vector<Target> levels() {
  std::vector<Target> out;
  for (const std::string& name : Target::known_names())
    if (Target::parse(name).runs_on(Target::host())) out.push_back(Target::parse(name));
  Target plain = Target::host();
  plain.features.erase(std::remove_if(plain.features.begin(), plain.features.end(),
                                      [](const std::string& f) {
                                        return f.find("vnni") != std::string::npos ||
                                               f == "avx512bf16" || f.rfind("amx", 0) == 0;
                                      }),
                       plain.features.end());
  out.push_back(plain);
  return out;
}

void check(const Product& p, const Target& target, Rng& rng, bool interpret_too) {
  const Program program = build(p);
  const auto inputs = operands(program, rng.next());
  const RefArray expected = run_interpreted(program, inputs);
  const auto list = templates_for(program, target);
  for (size_t t = 0; t < std::min<size_t>(list.size(), 2); ++t) {
    const KnobSpace space = survey(list[t].fn, program, target);
    for (const Point& point : {space.default_point(), space.random_point(rng)}) {
      Schedule s(program, target);
      Knobs knobs(point);
      list[t].fn(s, knobs);
      INFO(text(p) << " on " << target.name << " by " << list[t].name << "\n" << s.print());
      REQUIRE(difference(run_compiled(s.program(), inputs, target), expected, bound(p)) == "");
      if (interpret_too)
        REQUIRE(difference(run_interpreted(s.program(), inputs), expected, bound(p)) == "");
    }
  }
}

std::vector<Product> small_products() {
  std::vector<Product> out;
  const auto add = [&](int64_t m, int64_t n, int64_t k) {
    out.push_back({u8, i8, i32, m, n, k});
    out.push_back({bf16, bf16, f32, m, n, k});
  };
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{1, 1, 1},
                                {3, 16, 4},
                                {5, 37, 7},
                                {7, 33, 18},
                                {17, 70, 66},
                                {1, 64, 33},
                                {50, 1, 9},
                                {33, 17, 64}})
    add(m, n, k);
  for (const Product& p : std::vector<Product>(out.begin(), out.begin() + 10)) {
    Product q = p;
    q.turned_a = true;
    out.push_back(q);
    q.turned_b = q.biased = true;
    out.push_back(q);
    q = p;
    q.known = q.biased = true;
    out.push_back(q);
  }
  for (const auto& [a, b] : {std::pair(i8, u8), std::pair(i8, i8), std::pair(u8, u8)})
    for (const int64_t k : {5, 64, 70})
      for (const bool known : {false, true}) {
        Product p{a, b, i32, 19, 35, k};
        p.known = known;
        out.push_back(p);
      }
  return out;
}

}  // namespace

TEST_CASE("products of narrow numbers at odd sizes on every level of target") {
  Rng rng(29);
  for (const Target& target : levels())
    for (const Product& p : small_products()) check(p, target, rng, target.cores > 0 && p.m < 20);
}

TEST_CASE("products of narrow numbers in blocks of k, rows and columns") {
  Rng rng(31);
  for (const DType t : {u8, bf16})
    for (const bool known : {false, true}) {
      Product p{t, t == u8 ? i8 : bf16, t == u8 ? i32 : f32, 70, 170, 1100};
      p.known = known;
      check(p, Target::host(), rng, false);
    }
}

TEST_CASE("the default of a large product of bytes is the instruction for it") {
  Target target = Target::parse("x86-64/avx512");
  target.features.push_back("avx512vnni");
  target.features.push_back("avx512bf16");
  std::sort(target.features.begin(), target.features.end());
  target.features.erase(std::unique(target.features.begin(), target.features.end()),
                        target.features.end());
  for (const Product& p :
       {Product{u8, i8, i32, 256, 256, 256}, Product{bf16, bf16, f32, 256, 256, 256}}) {
    const Program program = build(p);
    const Task task("p", program, templates_for(program, target), target);
    CHECK(to_json(default_schedule(task).trace()).find("tensorize") != std::string::npos);
  }
  Product row{u8, i8, i32, 1, 1024, 1024};
  const Program program = build(row);
  CHECK(templates_for(program, target)[0].name == "matmul");
  row.known = true;
  CHECK(templates_for(build(row), target)[0].name == "dot");
  const Program other = build({i8, i8, i32, 256, 256, 256});
  const std::string first = templates_for(other, target)[0].name;
  CHECK((first == "matmul" || first == "tiles"));
}
