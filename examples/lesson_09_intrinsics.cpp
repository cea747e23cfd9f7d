// Lesson 9: instructions of the machine.
//
// An intrinsic is a formula and the ways to call it. `tensorize` holds the formula against what a
// stage computes in its innermost loops; only what is equal is taken. Machines that lack the
// instruction run the formula.
#include <tenon/tenon.h>

#include <cstdio>

using namespace tenon;

namespace {

/// C[i,j] = sum over k of A[i,k] * B[k,j], bytes added up in i32
Program byte_matmul(DType left) {
  const Tensor a = input("A", left, {12, 40}), b = input("B", i8, {40, 50});
  const Axis i("i", 12), j("j", 50), k("k", 40);
  return make_program("bytes",
                      {compute("C", {i, j}, sum(cast(i32, a(i, k)) * cast(i32, b(k, j)), k))});
}

/// The four elements that dot4 combines innermost and next to each other in memory, 16 lanes round
/// them, the sums in registers.
Schedule packed(const Program& program) {
  Schedule s(program, Target::host());
  s.split("i", 6);
  s.split("j", 16);
  s.split("k", 4);
  s.reorder({"j.o", "i.o", "k.o", "i.i", "j.i", "k.i"});
  s.cache_read("B", "j.o", {.layout = {{1, 16, 0}, {0, 4, 0}, {1, 1, 16}, {0, 1, 4}}});
  s.cache_write("i.o", {.scope = Scope::reg});
  s["C.store"].vectorize("j", {.tail = Tail::mask});
  return s;
}

bool built_in() {
  Schedule s = packed(byte_matmul(u8));
  s["C"].tensorize("j.i", "dot4_u8i8_i32").unroll("i.i");
  const Kernel kernel = compile(s.program(), s.target());
  const Array a = full(u8, {12, 40}, 255), b = full(i8, {40, 50}, -128), c = zeros(i32, {12, 50});
  kernel(a, b, c);
  const bool called = kernel.assembly().find("vpdpbusd") != std::string::npos;
  std::printf("C[11,49] = %d, by %s\n\n", c.data<int32_t>()[12 * 50 - 1],
              called ? "vpdpbusd" : "the formula on vectors");
  return c.data<int32_t>()[12 * 50 - 1] == 40 * 255 * -128;
}

/// There is no product of two signed bytes among them: refused with the difference.
bool another_formula() {
  try {
    packed(byte_matmul(i8))["C"].tensorize("j.i", "dot4_u8i8_i32");
  } catch (const ScheduleError& e) {
    std::printf("refused:\n%s\n\n", e.what());
    return true;
  }
  return false;
}

/// One of your own: pairs of i16, which x86 multiplies and adds at once.
bool own() {
  const Tensor fa = input("A", i16, {16, 2}), fb = input("B", i16, {16, 2});
  const Axis lane("lane", 16), r("r", 2);
  const IntrinsicRef pairs = declare_intrinsic(
      "dot2_i16", compute("C", {lane}, sum(cast(i32, fa(lane, r)) * cast(i32, fb(lane, r)), r)),
      {{{"avx512bw"}, 16, "llvm.x86.avx512.pmaddw.d.512", {"A", "B"}},
       {{"avx2"}, 8, "llvm.x86.avx2.pmadd.wd", {"A", "B"}}});
  const Tensor x = input("X", i16, {100, 2}), y = input("Y", i16, {2});
  const Axis j("j", 100), k("k", 2);
  const Program plain =
      make_program("rows", {compute("Z", {j}, sum(cast(i32, x(j, k)) * cast(i32, y(k)), k))});
  Schedule s(plain, Target::host());
  s.tensorize("j", pairs);
  // The declaration goes with the step, so the text of a trace needs nothing else.
  const Trace trace = trace_from_json(to_json(s.trace()));
  const Schedule again = replay(plain, s.target(), trace);
  std::printf("%s\n", again.print().c_str());
  return again.print() == s.print();
}

}  // namespace

int main() { return built_in() && another_formula() && own() ? 0 : 1; }
