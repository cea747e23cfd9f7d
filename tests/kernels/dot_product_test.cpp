#include <fmt/format.h>
#include <tenon/compile/compile.h>
#include <tenon/support/rng.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <sstream>

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

Target without(Target target, const std::vector<std::string>& prefixes) {
  target.features.erase(std::remove_if(target.features.begin(), target.features.end(),
                                       [&](const std::string& f) {
                                         return std::any_of(
                                             prefixes.begin(), prefixes.end(),
                                             [&](const auto& p) { return f.rfind(p, 0) == 0; });
                                       }),
                        target.features.end());
  return target;
}

/// Every level that runs here; the widest without its matrix unit, and without dot products too.
std::vector<Target> levels() {
  std::vector<Target> out;
  for (const std::string& name : Target::known_names())
    if (Target::parse(name).runs_on(Target::host())) out.push_back(Target::parse(name));
  out.push_back(without(Target::host(), {"amx"}));
  out.push_back(without(Target::host(), {"amx", "avx512vnni", "avxvnni", "avx512bf16"}));
  return out;
}

/// The narrow templates and the next one at their defaults; at random points too where `more`.
void check(const Product& p, const std::vector<Target>& targets, Rng& rng, bool more) {
  const Program program = build(p);
  const auto inputs = operands(program, rng.next());
  const RefArray expected = run_interpreted(program, inputs);
  for (size_t n = 0; n < targets.size(); ++n) {
    const Target& target = targets[n];
    const auto list = templates_for(program, target);
    for (size_t t = 0; t < std::min<size_t>(list.size(), n == 0 ? 2 : 1); ++t) {
      const KnobSpace space = survey(list[t].fn, program, target);
      std::vector<Point> points = {space.default_point()};
      if (more && t == 0) points.push_back(space.random_point(rng));
      for (const Point& point : points) {
        Schedule s(program, target);
        Knobs knobs(point);
        list[t].fn(s, knobs);
        INFO(text(p) << " on " << target.name << " by " << list[t].name << "\n" << s.print());
        REQUIRE(difference(run_compiled(s.program(), inputs, target), expected, bound(p)) == "");
        if (more && n == 0)
          REQUIRE(difference(run_interpreted(s.program(), inputs), expected, bound(p)) == "");
      }
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

/// The lines of the innermost loop that has the instruction.
std::vector<std::string> hot_loop(const std::string& assembly, const std::string& instruction) {
  std::vector<std::string> block, best;
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] == '.' && line.find(':') != std::string::npos) block.clear();
    block.push_back(line);
    const bool has = std::any_of(block.begin(), block.end(), [&](const std::string& l) {
      return l.find(instruction) != std::string::npos;
    });
    if (line.find("\tj") == std::string::npos) continue;
    if (has && block.size() > best.size()) best = block;
    block.clear();
  }
  return best;
}

struct Counts {
  int64_t wanted = 0, spills = 0, narrow = 0, all = 0;
};

Counts count(const std::vector<std::string>& loop, const std::string& instruction) {
  Counts out;
  const auto has = [](const std::string& l, const char* word) {
    return l.find(word) != std::string::npos;
  };
  for (const std::string& l : loop) {
    out.wanted += has(l, instruction.c_str());
    out.spills += has(l, "%rsp") || has(l, "rsp]");
    out.narrow += has(l, "xmm") || has(l, "ymm");
    ++out.all;
  }
  return out;
}

Counts hot_counts(const Product& p, const Target& target, const std::string& instruction) {
  const Program program = build(p);
  const Task task("p", program, templates_for(program, target), target);
  const std::string text = compile(default_schedule(task).program(), target).assembly();
  return count(hot_loop(text, instruction), instruction);
}

}  // namespace

TEST_CASE("products of narrow numbers at odd sizes on every level of target") {
  Rng rng(29);
  const std::vector<Target> all = levels();
  for (const Product& p : small_products()) check(p, all, rng, p.m < 20);
}

TEST_CASE("products of narrow numbers in blocks of k, rows and columns") {
  Rng rng(31);
  for (const DType t : {u8, bf16})
    for (const bool known : {false, true}) {
      Product p{t, t == u8 ? i8 : bf16, t == u8 ? i32 : f32, 70, 170, 1100};
      p.known = known;
      check(p, {Target::host(), without(Target::host(), {"amx"})}, rng, false);
    }
}

TEST_CASE("bf16 that is no finite number goes through the instruction for it") {
  const Product p{bf16, bf16, f32, 32, 32, 64};
  const Program program = build(p);
  for (const double special : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    auto inputs = operands(program, 5);
    inputs[0].values[3 * 64 + 5] = special;
    const RefArray expected = run_interpreted(program, inputs);
    for (const Target& target : levels()) {
      const Task task("p", program, templates_for(program, target), target);
      const RefArray got = run_compiled(default_schedule(task).program(), inputs, target);
      CHECK(difference(got, expected, bound(p)) == "");
    }
  }
}

TEST_CASE("the hot loop of narrow products has whole registers, no spill and little else") {
  const Target host = Target::host();
  Target plain = without(host, {"amx"});
  plain.bf16_dot_cost = 1;  // else multiply-adds may be the default
  const Product bytes{u8, i8, i32, 256, 256, 512}, halves{bf16, bf16, f32, 256, 256, 512};
  const auto check_dots = [&](const Product& p, const char* feature, const char* code) {
    if (!host.has_feature(feature)) {
      WARN("skipped: this machine has no " << feature);
      return;
    }
    const Counts c = hot_counts(p, plain, code);
    INFO(code << ": " << c.wanted << " of " << c.all);
    CHECK(c.wanted >= 24);
    CHECK(c.spills == 0);
    CHECK(c.narrow == 0);
    CHECK(2 * c.wanted >= c.all);
  };
  check_dots(bytes, "avx512vnni", "vpdpbusd");
  check_dots(halves, "avx512bf16", "vdpbf16ps");
  const auto check_tiles = [&](const Product& p, const char* feature, const char* code) {
    if (!host.has_feature(feature)) {
      WARN("skipped: this machine has no " << feature);
      return;
    }
    const Counts c = hot_counts(p, host, code);
    INFO(code << ": " << c.wanted << " of " << c.all);
    CHECK(c.wanted == 4);
    CHECK(c.spills == 0);
    CHECK(c.narrow == 0);
    CHECK(c.all <= 20);
  };
  check_tiles(bytes, "amx-int8", "tdpbusd");
  check_tiles(halves, "amx-bf16", "tdpbf16ps");
}

TEST_CASE("the default of a large product of bytes is the instruction for it") {
  Target target = without(Target::parse("x86-64/avx512"), {"amx"});
  target.features.push_back("avx512vnni");
  target.features.push_back("avx512bf16");
  std::sort(target.features.begin(), target.features.end());
  target.features.erase(std::unique(target.features.begin(), target.features.end()),
                        target.features.end());
  target.bf16_dot_cost = 1;
  target.vector_fmas = 2;
  target.far_bytes = 7;
  for (const Product& p :
       {Product{u8, i8, i32, 256, 256, 256}, Product{bf16, bf16, f32, 256, 256, 256}}) {
    const Program program = build(p);
    const Task task("p", program, templates_for(program, target), target);
    CHECK(to_json(default_schedule(task).trace()).find("tensorize") != std::string::npos);
  }
  target.bf16_dot_cost = 2;  // two terms in the time of two multiply-adds
  const Program halves = build({bf16, bf16, f32, 256, 256, 256});
  CHECK(templates_for(halves, target)[0].name == "matmul");
  CHECK(templates_for(halves, target)[1].name == "dot");
  Product row{u8, i8, i32, 1, 1024, 1024};
  const Program program = build(row);
  CHECK(templates_for(program, target)[0].name == "matmul");
  row.known = true;
  CHECK(templates_for(build(row), target)[0].name == "dot");
  const Program other = build({i8, i8, i32, 256, 256, 256});
  CHECK(templates_for(other, target)[0].name == "matmul");
  for (const char* f : {"amx-int8", "amx-tile"}) target.features.push_back(f);
  std::sort(target.features.begin(), target.features.end());
  CHECK(templates_for(other, target)[0].name == "matrix_unit");
}
