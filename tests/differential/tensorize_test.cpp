#include <tenon/schedule/schedule.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "formulas.h"
#include "interp/interp.h"

// Tensorized programs as machine code beside the interpreter on the unscheduled formula, on data
// flush against forbidden pages, for targets with and without the intrinsic. All results are
// integers, so they are equal.

using namespace tenon;
using namespace tenon::test;

namespace {

/// Every level of target that runs here, and the widest without VNNI: the formula on vectors.
std::vector<Target> targets_with_and_without() {
  std::vector<Target> out = runnable_targets();
  Target plain = out.front();
  const auto is_vnni = [](const std::string& f) { return f == "avx512vnni" || f == "avxvnni"; };
  plain.features.erase(std::remove_if(plain.features.begin(), plain.features.end(), is_vnni),
                       plain.features.end());
  out.push_back(plain);
  return out;
}

void fill_extremes(const Array& a, uint64_t seed) {
  Rng rng(seed);
  for (int64_t n = 0; n < a.bytes(); ++n) {
    const auto value = static_cast<uint8_t>(rng.chance(0.5)   ? rng.below(256)
                                            : rng.chance(0.5) ? 255
                                            : rng.chance(0.5) ? 128
                                                              : 127);
    std::memcpy(static_cast<char*>(a.raw()) + n, &value, 1);
  }
}

void compare(const Program& plain, const Program& scheduled, const Target& target, GuardAt at) {
  std::vector<Array> want, got;
  std::vector<HostBuffer> buffers;
  uint64_t seed = 3;
  for (const Param& p : plain.params) {
    const Shape shape = const_shape(p.buffer->shape).value();
    for (auto* all : {&want, &got}) {
      all->push_back(guarded_array(p.buffer->dtype, shape, at));
      if (p.role != ParamRole::output) fill_extremes(all->back(), seed);
    }
    ++seed;
    buffers.push_back({want.back().raw()});
  }
  interpret(plain, buffers);
  static ThreadPool pool(2);
  compile(scheduled, target).run(got, pool);
  for (size_t k = 0; k < want.size(); ++k) {
    INFO(target.name << "\n" << print(scheduled));
    REQUIRE((want[k].bytes() == 0 ||
             std::memcmp(want[k].raw(), got[k].raw(), static_cast<size_t>(want[k].bytes())) == 0));
  }
}

struct Sizes {
  int64_t m, n, k;
};

/// C[i,j] = sum over k of i32(A[i,k]) * i32(B[k,j])
Program byte_matmul(const Sizes& x) {
  const Tensor a = input("A", u8, {x.m, x.k}), b = input("B", i8, {x.k, x.n});
  const Axis i("i", x.m), j("j", x.n), k("k", x.k);
  return make_program("bytes",
                      {compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(k, j)), k))});
}

/// B packed by 16 columns and 4 rows, a register tile of `rows` by `columns`.
Schedule tiled(const Program& plain, const Target& target, int64_t rows, int64_t columns) {
  Schedule s(plain, target);
  s.split("i", rows);
  s.split("j", columns);
  s.split("j.i", 16);
  s.split("k", 4);
  s.reorder({"j.o", "i.o", "k.o", "i.i", "j.i.o", "j.i.i", "k.i"});
  s.cache_read("B", "j.o", {.layout = {{1, 16, 0}, {0, 4, 0}, {1, 1, 16}, {0, 1, 4}}});
  s.cache_write("i.o", {.scope = Scope::reg});
  s["C.store"].vectorize("j", {.tail = Tail::mask});
  s["C"].tensorize("j.i.i", "dot4_u8i8_i32").unroll("j.i.o").unroll("i.i");
  return s;
}

/// The lines of the innermost loop that has the instruction.
std::vector<std::string> hot_loop(const std::string& assembly, const std::string& instruction) {
  std::vector<std::string> block, best;
  std::istringstream in(assembly);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] == '.' && line.find(':') != std::string::npos) block.clear();
    block.push_back(line);
    const auto count = std::count_if(block.begin(), block.end(), [&](const std::string& l) {
      return l.find(instruction) != std::string::npos;
    });
    const bool ends = line.find("\tj") != std::string::npos;
    if (ends && count > 0 && (best.empty() || block.size() > best.size())) best = block;
  }
  return best;
}

}  // namespace

TEST_CASE("a byte matmul on dot4 equals the formula at odd sizes, with and without VNNI") {
  for (const Target& target : targets_with_and_without()) {
    for (const Sizes& x : {Sizes{1, 1, 1}, Sizes{3, 16, 4}, Sizes{5, 37, 7}, Sizes{7, 33, 18},
                           Sizes{6, 64, 12}, Sizes{2, 5, 3}, Sizes{9, 50, 0}, Sizes{4, 17, 5}}) {
      const Program plain = byte_matmul(x);
      const Program scheduled = tiled(plain, target, 3, 32).program();
      compare(plain, scheduled, target, GuardAt::end);
      compare(plain, scheduled, target, GuardAt::start);
    }
  }
}

TEST_CASE("dot4 reads operands where they lie: no copy, rows of both matrices over k") {
  for (const Target& target : targets_with_and_without()) {
    for (int64_t n : {1, 7, 16, 21, 40}) {
      const Tensor a = input("A", u8, {4}), b = input("B", i8, {n, 4});
      const Axis j("j", n), k("k", 4);
      const Program plain =
          make_program("rows", {compute("C", {j}, sum(cast(i32, b(j, k)) * cast(i32, a(k)), k))});
      Schedule s(plain, target);
      s.tensorize("j", "dot4_u8i8_i32");
      compare(plain, s.program(), target, GuardAt::end);
      compare(plain, s.program(), target, GuardAt::start);
    }
  }
}

TEST_CASE("D39 the dot product of bytes does not saturate") {
  const Tensor a = input("A", u8, {1, 4}), b = input("B", i8, {16, 4});
  const Axis i("i", 1), j("j", 16), k("k", 4);
  const Program plain =
      make_program("p", {compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(j, k)), k))});
  for (const Target& target : targets_with_and_without()) {
    Schedule s(plain, target);
    s.tensorize("j", "dot4_u8i8_i32");
    const Array x = zeros(u8, {1, 4}), y = zeros(i8, {16, 4}), z = zeros(i32, {1, 16});
    const uint8_t left[4] = {255, 255, 0, 0};
    std::memcpy(x.raw(), left, 4);
    std::memset(y.raw(), 127, 64);
    compile(s.program(), target)(x, y, z);
    for (double v : z.to_doubles()) CHECK(v == 64770);
  }
}

TEST_CASE("a declared intrinsic: pairs of i16, with an implementation that does not accumulate") {
  const Tensor fa = input("A", i16, {16, 2}), fb = input("B", i16, {16, 2});
  const Axis fi("i", 16), fr("r", 2);
  const IntrinsicRef pairs = declare_intrinsic(
      "dot2_i16", compute("C", {fi}, sum(cast(i32, fa(fi, fr)) * cast(i32, fb(fi, fr)), fr)),
      {{{"avx512bw"}, 16, "llvm.x86.avx512.pmaddw.d.512", {"A", "B"}},
       {{"avx2"}, 8, "llvm.x86.avx2.pmadd.wd", {"A", "B"}}});
  for (const Target& target : runnable_targets()) {
    for (int64_t n : {5, 16, 35}) {
      const Tensor a = input("X", i16, {n, 6}), b = input("Y", i16, {6});
      const Axis j("j", n), k("k", 6);
      const Program plain =
          make_program("p", {compute("Z", {j}, sum(cast(i32, a(j, k)) * cast(i32, b(k)), k))});
      Schedule s(plain, target);
      s.split("k", 2);
      s.reorder({"k.o", "j", "k.i"});
      s.cache_read("X", "root", {.layout = {{1, 2, 0}, {0, 1, 0}, {1, 1, 2}}});
      s["Z"].tensorize("j", pairs);
      compare(plain, s.program(), target, GuardAt::end);
      const std::string text = compile(s.program(), target).assembly();
      // LLVM joins the call and the sum to vpdpwssd where it can.
      const bool called =
          text.find("vpmaddwd") != std::string::npos || text.find("vpdpwssd") != std::string::npos;
      CHECK(called == (target.name != "x86-64/sse2"));
      const Schedule again = replay(plain, target, trace_from_json(to_json(s.trace())));
      CHECK(again.print() == s.print());
      CHECK(again.trace() == s.trace());
    }
  }
}

TEST_CASE("a declared map runs an instruction on whole vectors") {
  const Tensor fa = input("A", i16, {32}), fb = input("B", i16, {32});
  const Axis fi("i", 32);
  const auto rounded = [](const Expr& x, const Expr& y) {
    const Expr product = binary(BinaryOp::shr, cast(i32, x) * cast(i32, y), int_imm(14, i32));
    return cast(i16, binary(BinaryOp::shr, product + int_imm(1, i32), int_imm(1, i32)));
  };
  const IntrinsicRef scale =
      declare_intrinsic("mulhrs", compute("C", {fi}, rounded(fa(fi), fb(fi))),
                        {{{"avx512bw"}, 32, "llvm.x86.avx512.pmul.hr.sw.512", {"A", "B"}}});
  for (const Target& target : runnable_targets()) {
    const Tensor x = input("X", i16, {45}), y = input("Y", i16, {45});
    const Axis j("j", 45);
    const Program plain = make_program("p", {compute("Z", {j}, rounded(y(j), x(j)))});
    Schedule s(plain, target);
    s.tensorize("j", scale);
    compare(plain, s.program(), target, GuardAt::end);
    compare(plain, s.program(), target, GuardAt::start);
    const std::string text = compile(s.program(), target).assembly();
    CHECK((text.find("vpmulhrsw") != std::string::npos) == (target.name == "x86-64/avx512"));
  }
}

TEST_CASE("the hot loop of a byte matmul is vpdpbusd on accumulators in registers") {
  const Target target = Target::host();
  if (!target.has_feature("avx512vnni")) {
    std::puts("SKIPPED: this machine has no AVX-512 VNNI");
    return;
  }
  const Program plain = byte_matmul({60, 256, 256});
  const std::string text = compile(tiled(plain, target, 6, 64).program(), target).assembly();
  const std::vector<std::string> loop = hot_loop(text, "vpdpbusd");
  int64_t dots = 0, spills = 0;
  std::string shown;
  for (const std::string& line : loop) {
    shown += line + "\n";
    dots += line.find("vpdpbusd") != std::string::npos;
    spills += line.find("(%rsp)") != std::string::npos || line.find("rsp]") != std::string::npos ||
              line.find("vmovdqu") == 0;
  }
  INFO(shown);
  CHECK(dots >= 24);
  CHECK(dots % 24 == 0);
  CHECK(spills == 0);
}
