#include <tenon/ir/notes.h>
#include <tenon/runtime/thread_pool.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "flat.h"

using namespace tenon;
using namespace tenon::test;

namespace {

constexpr int64_t kRows = 3, kSteps = 5, kTail = 3;

Stmt streaming(const Stmt& s) {
  For n = *s.as<For>();
  n.notes[std::string(kStreamNote)] = 1;
  return make_stmt(std::move(n));
}

/// Rows of y = x + x: kSteps whole vectors of 64 bytes and a tail under a mask, `pitch` apart.
struct Rows {
  DType type = f32;
  int64_t pitch = 0, elements = 0;
  LoopMark mark = LoopMark::serial;
  bool reads_output = false;

  int lanes() const { return static_cast<int>(64 / byte_size(type)); }

  Program make(bool noted) const {
    const Var r("r"), i("i");
    const Buffer x = flat_buffer("x", type, elements), y = flat_buffer("y", type, elements);
    const auto twice = [&](const Expr& at) {
      const Expr one = load(reads_output ? y : x, {at});
      return one + one;
    };
    const Expr whole = ramp(r * int_imm(pitch) + i * lanes(), Expr(1), lanes());
    const Expr rest = ramp(r * int_imm(pitch) + int_imm(kSteps * lanes()), Expr(1), lanes());
    const Expr mask = ramp(Expr(0), Expr(1), lanes()) < broadcast(int_imm(kTail), lanes());
    const Expr x_rest = load(x, {rest}, mask);
    const Stmt row = seq({loop(i, Expr(kSteps), store(y, whole, twice(whole))),
                          store(y, rest, x_rest + x_rest, mask)});
    const Stmt all = loop(r, Expr(kRows), row, mark);
    return program({x}, {y}, noted ? streaming(all) : all);
  }
};

Rows rows_of(DType type, int64_t odd = 0) {
  Rows rows;
  rows.type = type;
  rows.pitch = (kSteps + 1) * rows.lanes() + odd;
  rows.elements = kRows * rows.pitch;
  return rows;
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

int streaming_stores(const std::string& assembly) { return count(assembly, "movnt"); }

}  // namespace

TEST_CASE("a loop noted stream stores the same wherever its output begins, with threads too") {
  ThreadPool pool(2);
  for (const Target& target : runnable_targets())
    for (DType type : {f32, f64, i32, i8, f16})
      for (LoopMark mark : {LoopMark::serial, LoopMark::parallel})
        for (int64_t off : {0, 1, 3})
          for (int64_t odd : {0, 1}) {
            Rows rows = rows_of(type, odd);
            rows.mark = mark;
            rows.elements += off;  // at the end of a page: the array begins so much before a vector
            const Array in = random(type, {rows.elements}, 3),
                        out = guarded_array(type, {rows.elements}, GuardAt::end);
            std::memset(out.raw(), 0, static_cast<size_t>(out.bytes()));
            INFO(target.name << " " << name(type) << " off " << off << " pitch " << rows.pitch);
            run(rows.make(true), {guarded_copy(in), out}, target,
                mark == LoopMark::parallel ? pool : serial_pool());
            const std::vector<double> y = out.to_doubles();
            const Array expected = zeros(type, {rows.elements});
            run(rows.make(false), {in, expected}, target);
            REQUIRE(y == expected.to_doubles());
            REQUIRE(y[static_cast<size_t>(rows.pitch)] != 0);
          }
}

TEST_CASE("streaming stores and their fence are there where they are asked for and possible") {
  for (const char* name : {"x86-64/avx512", "x86-64/avx2", "x86-64/sse2"}) {
    const Target target = Target::parse(name);
    const int per_step = 512 / target.vector_bits;
    CAPTURE(name);
    Rows rows = rows_of(f32);
    const std::string plain = generate_assembly(rows.make(false), target);
    CHECK(streaming_stores(plain) == 0);
    for (LoopMark mark : {LoopMark::serial, LoopMark::parallel}) {
      rows.mark = mark;
      const std::string text = generate_assembly(rows.make(true), target);
      CHECK(streaming_stores(text) == per_step);
      CHECK(count(text, "sfence") == 1);
    }
    // Rows that begin anywhere, an output that is read, or is an input's array: nothing is added.
    rows.mark = LoopMark::serial;
    Rows odd = rows_of(f32, 1), again = rows;
    again.reads_output = true;
    CodegenOptions same;
    same.in_place = {{0, 1}};
    for (const auto& [program, options] :
         {std::pair(odd.make(true), CodegenOptions()),
          std::pair(again.make(true), CodegenOptions()), std::pair(rows.make(true), same)}) {
      const std::string text = generate_assembly(program, target, options);
      CHECK(streaming_stores(text) == 0);
      CHECK(count(text, "sfence") == 0);
      CHECK(count(text, "\n") < 1.2 * count(plain, "\n"));
    }
  }
}
