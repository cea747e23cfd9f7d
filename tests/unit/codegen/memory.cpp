#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "codegen/llvm/codegen.h"
#include "flat.h"

using namespace tenon;
using namespace tenon::test;

namespace {

Array counting(int64_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 1.0f);
  return from_vector<float>({n}, v);
}

// Lanes below `count`.
Expr first_lanes(int lanes, Expr count) {
  return ramp(Expr(0), Expr(1), lanes) < broadcast(std::move(count), lanes);
}

constexpr int kLanes = 16;

}  // namespace

TEST_CASE("masked loads and stores touch nothing beyond the mask, at either end") {
  for (const Target& target : runnable_targets()) {
    for (DType t : {f32, f64, i8, i16, boolean, f16}) {
      for (int64_t n : {1, 7, 15}) {
        const Buffer x = flat_buffer("x", t, n), y = flat_buffer("y", t, n);
        const Expr at = ramp(Expr(0), Expr(1), kLanes);
        const Expr mask = first_lanes(kLanes, Expr(n));
        const Program p = program({x}, {y}, store(y, at, load(x, {at}, mask), mask));
        const Array in = random(t, {n}, 3), out = guarded_array(t, {n}, GuardAt::end);
        run(p, {guarded_copy(in), out}, target);
        INFO(target.name << " " << name(t) << " " << n);
        REQUIRE(out.to_doubles() == in.to_doubles());
      }
    }
  }
}

TEST_CASE("a choice between an element and zero needs no more than the mask of its load") {
  const int64_t n = 40;
  const Buffer x = flat_buffer("x", f32, n), y = flat_buffer("y", f32, kLanes);
  const Expr at = ramp(Expr(0), Expr(1), kLanes);
  const auto chosen = [&](int64_t first, double otherwise, bool masked) {
    const Expr inside = ramp(Expr(0), Expr(1), kLanes) >= broadcast(Expr(first), kLanes);
    const Expr from = ramp(Expr(3), Expr(1), kLanes);
    const Expr value = masked ? load(x, {from}, first_lanes(kLanes, Expr(13))) : load(x, {from});
    return program({x}, {y},
                   store(y, at, select(inside, value, broadcast(float_imm(otherwise), kLanes))));
  };
  for (const Target& target : runnable_targets())
    for (int64_t first : {0, 1, 5, 16})
      for (double otherwise : {0.0, -0.0, 2.0})
        for (bool masked : {false, true}) {
          const Array in = counting(n), out = full(f32, {kLanes}, -1);
          run(chosen(first, otherwise, masked), {guarded_copy(in), out}, target);
          for (int64_t k = 0; k < (masked ? 13 : kLanes); ++k) {
            INFO(target.name << " from " << first << " else " << otherwise << " lane " << k);
            const double wanted = k < first ? otherwise : in.to_doubles()[k + 3];
            CHECK(out.to_doubles()[k] == wanted);
            CHECK(std::signbit(out.to_doubles()[k]) == std::signbit(wanted));
          }
        }
  const std::string text = generate_assembly(chosen(1, 0.0, false), Target::parse("x86-64/avx512"));
  CHECK(text.find("vmovups") != std::string::npos);
  CHECK(text.find("vandps") == std::string::npos);
  CHECK(text.find("vblend") == std::string::npos);
}

TEST_CASE("columns of rows that break off are gathered where they break off") {
  const int64_t apart = 30, far = 500;
  const Array in = counting(far * 3 + apart * kLanes);
  for (const Target& target : runnable_targets())
    for (int64_t length : {1, 2, 3, 4, 6}) {
      const Buffer x = flat_buffer("x", f32, far * 3 + apart * kLanes),
                   y = flat_buffer("y", f32, 8 * kLanes);
      const Var i("i");
      const Expr from =
          floor_div(Expr(i), Expr(length)) * Expr(far) + floor_mod(Expr(i), Expr(length));
      if (7 / length * far + apart * kLanes > far * 3 + apart * kLanes) continue;
      const Array out = full(f32, {8 * kLanes}, -1);
      run(program({x}, {y},
                  loop(i, Expr(8),
                       store(y, ramp(Expr(i) * kLanes, Expr(1), kLanes),
                             load(x, {ramp(from, Expr(apart), kLanes)})),
                       LoopMark::unroll)),
          {guarded_copy(in), out}, target);
      for (int64_t k = 0; k < 8 * kLanes; ++k) {
        const int64_t step = k / kLanes,
                      at = step / length * far + step % length + k % kLanes * apart;
        INFO(target.name << " rows of " << length << " element " << k);
        REQUIRE(out.to_doubles()[k] == in.to_doubles()[at]);
      }
    }
}

TEST_CASE("strides of -1, 0, 2 and -3, and indices read from memory") {
  const int64_t n = 64;
  const Array in = counting(n);
  const Array picks =
      from_vector<int64_t>({kLanes}, {5, 3, 60, 0, 1, 2, 63, 9, 9, 9, 4, 8, 16, 32, 7, 11});
  for (const Target& target : runnable_targets()) {
    for (int64_t stride : {1, -1, 0, 2, -3, 4}) {
      const int64_t base = stride < 0 ? n - 1 : n - 1 - stride * (kLanes - 1);
      const Buffer x = flat_buffer("x", f32, n), y = flat_buffer("y", f32, n);
      const Expr at = ramp(Expr(base), Expr(stride), kLanes);
      const Array out = full(f32, {n}, -1);
      run(program({x}, {y}, store(y, at, load(x, {at}) * 2.0)), {guarded_copy(in), out}, target);
      for (int64_t k = 0; k < n; ++k) {
        const bool hit = stride == 0 ? k == base
                                     : (k - base) % stride == 0 && (k - base) / stride >= 0 &&
                                           (k - base) / stride < kLanes;
        INFO(target.name << " stride " << stride << " element " << k);
        REQUIRE(out.data<float>()[k] == (hit ? 2.0f * (k + 1) : -1.0f));
      }
    }
    const Buffer x = flat_buffer("x", f32, n), y = flat_buffer("y", f32, kLanes),
                 pick = flat_buffer("pick", i64, kLanes);
    const Expr at = ramp(Expr(0), Expr(1), kLanes);
    const Array out = zeros(f32, {kLanes});
    run(program({x, pick}, {y}, store(y, at, load(x, {load(pick, {at})}))),
        {guarded_copy(in), picks, out}, target);
    for (int k = 0; k < kLanes; ++k)
      REQUIRE(out.data<float>()[k] == picks.data<int64_t>()[k] + 1.0f);
  }
}

TEST_CASE("narrow elements that a store leaves gaps between fill them with nothing") {
  for (const Target& target : runnable_targets())
    for (DType t : {i8, i16, f16, bf16, boolean})
      for (int64_t stride : {2, 3, 4, 8})
        for (int64_t first = 0; first < stride; ++first) {
          const int64_t n = kLanes * stride;
          const Buffer x = flat_buffer("x", t, kLanes), y = flat_buffer("y", t, n);
          const Program p = program({x}, {y},
                                    store(y, ramp(Expr(first), Expr(stride), kLanes),
                                          load(x, {ramp(Expr(0), Expr(1), kLanes)})));
          const Array in = random(t, {kLanes}, 3), out = random(t, {n}, 4);
          std::vector<double> expected = out.to_doubles();
          for (int64_t k = 0; k < kLanes; ++k)
            expected[static_cast<size_t>(first + k * stride)] =
                in.to_doubles()[static_cast<size_t>(k)];
          run(p, {in, out}, target);
          INFO(target.name << " " << name(t) << " every " << stride << " from " << first);
          CHECK(out.to_doubles() == expected);
        }
}

TEST_CASE("columns of a square are read by rows, whole or in part, and nothing beside it") {
  const Var r("r");
  for (const Target& target : runnable_targets())
    for (DType type : {f32, i32, f64, i16, u8})
      for (int lanes : {4, 8, 16})
        for (int columns = 1; columns <= 17; ++columns)
          for (int rows : {lanes, lanes - 3}) {
            const int64_t pitch = columns + 2, n = (rows - 1) * pitch + columns;
            const Buffer x = flat_buffer("x", type, n), y = flat_buffer("y", type, columns * lanes);
            const Expr at = ramp(Expr(r), Expr(pitch), lanes), to = ramp(r * lanes, Expr(1), lanes);
            const Expr mask = rows == lanes ? Expr() : first_lanes(lanes, Expr(rows));
            const bool adds = byte_size(type) == 4;
            const Expr one = broadcast(type == f32 ? float_imm(1) : int_imm(1, i32), lanes);
            const Expr column = load(x, {at}, mask);
            const Stmt body = store(y, to, adds ? column + one : column, mask);
            const Array in = random(type, {n}, 3), out = zeros(type, {columns * lanes});
            INFO(target.name << " " << name(type) << " " << rows << " x " << columns << " of "
                             << lanes << " lanes");
            run(program({x}, {y}, loop(r, Expr(columns), body, LoopMark::unroll)),
                {guarded_copy(in), out}, target);
            const std::vector<double> from = in.to_doubles(), got = out.to_doubles();
            for (int c = 0; c < columns; ++c)
              for (int l = 0; l < lanes; ++l) {
                const double value = from[l < rows ? l * pitch + c : 0];
                const double result = adds ? static_cast<float>(value + 1) : value;
                REQUIRE(got[c * lanes + l] == (l < rows ? result : 0));
              }
          }
}

TEST_CASE("a loop that writes what it reads across is not read ahead") {
  const Var r("r");
  const Buffer x = flat_buffer("x", f32, 16 * 16);
  const Expr column = ramp(Expr(r), Expr(16), 16), row = ramp(r * 16, Expr(1), 16);
  for (const Target& target : runnable_targets()) {
    const Array square = counting(16 * 16);
    std::vector<double> expected = square.to_doubles();
    for (int k = 0; k < 16; ++k) {
      std::vector<double> read;
      for (int l = 0; l < 16; ++l) read.push_back(expected[l * 16 + k]);
      for (int l = 0; l < 16; ++l) expected[k * 16 + l] = read[l];
    }
    run(program({}, {x}, loop(r, Expr(16), store(x, row, load(x, {column})), LoopMark::unroll)),
        {square}, target);
    REQUIRE(square.to_doubles() == expected);
  }
}

TEST_CASE("columns are read by rows in every chunk of lanes, other loads being as they are") {
  const Var r("r"), v("v");
  const int64_t pitch = 21, columns = 7;
  const Buffer x = flat_buffer("x", f32, 40 * pitch), z = flat_buffer("z", f32, columns * 40),
               y = flat_buffer("y", f32, columns * 40);
  const auto part = [&](const Expr& first, const Expr& mask) {
    const Expr to = ramp(r * 40 + first, Expr(1), 16);
    const Expr column = load(x, {ramp(first * int_imm(pitch) + Expr(r), Expr(pitch), 16)}, mask);
    return store(y, to, column * load(z, {to}, mask), mask);
  };
  const Stmt whole = loop(v, Expr(2), part(v * 16, {}), LoopMark::unroll);
  const Stmt body = seq({whole, part(Expr(32), first_lanes(16, Expr(8)))});
  for (const Target& target : runnable_targets()) {
    const Array in = random(f32, {40 * pitch}, 5), factor = random(f32, {columns * 40}, 6),
                out = zeros(f32, {columns * 40});
    run(program({x, z}, {y}, loop(r, Expr(columns), body, LoopMark::unroll)),
        {guarded_copy(in), guarded_copy(factor), out}, target);
    const std::vector<double> a = in.to_doubles(), b = factor.to_doubles(), got = out.to_doubles();
    for (int64_t c = 0; c < columns; ++c)
      for (int64_t l = 0; l < 40; ++l)
        REQUIRE(got[c * 40 + l] == static_cast<float>(a[l * pitch + c] * b[c * 40 + l]));
  }
}

TEST_CASE("select reads only the chosen side") {
  const int64_t n = 20;
  const Buffer x = flat_buffer("x", f32, n), y = flat_buffer("y", f32, n + 8);
  const Var i("i");
  for (const Target& target : runnable_targets()) {
    for (GuardAt end : {GuardAt::end, GuardAt::start}) {
      // y[i] = x[i - 4] where that exists, else -1: scalar, and a vector with a question per lane
      auto padded = [&](Expr at) {
        return select(at >= 4 && at < n + 4, load(x, {at - 4}), float_imm(-1));
      };
      const Expr lanes = ramp(i * 7, Expr(1), 7);
      const Stmt bodies[] = {loop(i, Expr(n + 8), store(y, i, padded(i))),
                             loop(i, Expr(4), store(y, lanes, padded(lanes))),
                             loop(i, Expr(4), store(y, lanes, padded(lanes)), LoopMark::unroll)};
      for (const Stmt& body : bodies) {
        const Array out = zeros(f32, {n + 8});
        run(program({x}, {y}, body), {guarded_copy(counting(n), end), out}, target);
        for (int64_t k = 0; k < n + 8; ++k)
          REQUIRE(out.data<float>()[k] == (k >= 4 && k < n + 4 ? k - 3.0f : -1.0f));
      }
    }
  }
}

TEST_CASE("select with one question for all lanes, nested, with conditions that read memory") {
  const int64_t n = 32;
  const Buffer x = flat_buffer("x", f32, n), y = flat_buffer("y", f32, 3 * n);
  const Var i("i");
  const Expr at = ramp(i * 16 - n, Expr(1), 16), out_at = ramp(i * 16, Expr(1), 16);
  // blocks 2 and 3 of 6 exist in x; of those, lanes whose value is odd are kept, the others show
  // x[0]
  const Expr inside = Expr(i) >= 2 && Expr(i) < 4;
  const Expr odd = floor_mod(cast(i32, load(x, {at})), int_imm(2, i32)) == int_imm(1, i32);
  const Expr value =
      select(inside, select(odd, load(x, {at}), broadcast(load(x, {Expr(i) - 2}), 16)),
             broadcast(float_imm(0), 16));
  const Expr guarded = select(
      inside, select(load(x, {Expr(i) * 16 - n}) > 0.0, float_imm(1), float_imm(0)), float_imm(0));
  for (const Target& target : runnable_targets()) {
    const Array out = zeros(f32, {3 * n});
    run(program({x}, {y}, loop(i, Expr(6), store(y, out_at, value + broadcast(guarded, 16)))),
        {guarded_copy(counting(n)), out}, target);
    for (int64_t k = 0; k < 3 * n; ++k) {
      const int64_t block = k / 16, source = k - n;
      const bool in = block >= 2 && block < 4;
      const float want = !in ? 0.0f : (source % 2 == 0 ? source + 1.0f : block - 1.0f) + 1.0f;
      INFO(target.name << " element " << k);
      REQUIRE(out.data<float>()[k] == want);
    }
  }
}

TEST_CASE("horizontal reductions of any width") {
  for (const Target& target : runnable_targets()) {
    for (int lanes : {2, 3, 7, 8, 16, 17}) {
      const Buffer x = flat_buffer("x", f32, lanes), y = flat_buffer("y", f32, 4),
                   b = flat_buffer("b", boolean, 2);
      const Expr v = load(x, {ramp(Expr(0), Expr(1), lanes)});
      const Stmt body =
          seq({store(y, Expr(0), vector_reduce(BinaryOp::add, v)),
               store(y, Expr(1), vector_reduce(BinaryOp::mul, v)),
               store(y, Expr(2), vector_reduce(BinaryOp::min, v)),
               store(y, Expr(3), vector_reduce(BinaryOp::max, v)),
               store(b, Expr(0),
                     vector_reduce(BinaryOp::logical_and, v > broadcast(float_imm(1.5), lanes))),
               store(b, Expr(1),
                     vector_reduce(BinaryOp::logical_or, v > broadcast(float_imm(1.5), lanes)))});
      const Array in = full(f32, {lanes}, 1), out = zeros(f32, {4}), flags = zeros(boolean, {2});
      in.data<float>()[lanes - 1] = 2;
      run(program({x}, {y, b}, body), {guarded_copy(in), out, flags}, target);
      REQUIRE(out.to_doubles() == std::vector<double>{lanes + 1.0, 2, 1, 2});
      REQUIRE(flags.to_doubles() == std::vector<double>{0, 1});
      in.data<float>()[lanes / 2] = NAN;
      run(program({x}, {y, b}, body), {guarded_copy(in), out, flags}, target);
      for (int k = 0; k < 4; ++k) REQUIRE(std::isnan(out.data<float>()[k]));
    }
  }
}

TEST_CASE("shuffles and lets") {
  const Buffer x = flat_buffer("x", f32, 8), y = flat_buffer("y", f32, 8);
  const Var v("v", {f32, 8});
  const Expr at = ramp(Expr(0), Expr(1), 8);
  const Expr value =
      let(v, load(x, {at}) + 1.0,
          Expr(v) * shuffle(v, {7, 6, 5, 4, 3, 2, 1, 0}) + broadcast(shuffle(v, {2}), 8));
  const Array out = zeros(f32, {8});
  run(program({x}, {y}, store(y, at, value)), {counting(8), out});
  for (int k = 0; k < 8; ++k) REQUIRE(out.data<float>()[k] == (k + 2) * (9.0f - k) + 4);
}

TEST_CASE("atomic updates from several threads are all counted") {
  ThreadPool pool(4);
  const int64_t n = 4000;
  for (DType t : {f32, i32, i64, f64, i8, f16}) {
    const Buffer x = flat_buffer("x", t, n), y = flat_buffer("y", t, 4), z = flat_buffer("z", t, 4);
    const Var i("i");
    const Expr at = ramp(Expr(0), Expr(1), 4);
    const Expr lanes = ramp(i * 4, Expr(1), 4);
    const Stmt body =
        store(y, floor_mod(i, Expr(4)), load(y, {floor_mod(i, Expr(4))}) + load(x, {i}), {}, true);
    const Stmt vectors =
        store(z, at, max(load(x, {lanes}), load(z, {at})), ramp(Expr(0), Expr(1), 4) < 3, true);
    const Array in = full(t, {n}, 1), sums = zeros(t, {4}), highest = zeros(t, {4});
    Stmt both_loops = seq({loop(i, Expr(n), body, LoopMark::parallel),
                           loop(i, Expr(n / 4), vectors, LoopMark::parallel)});
    run(program({x}, {y, z}, both_loops), {in, sums, highest}, Target::host(), pool);
    const double each = t == i8 ? static_cast<int8_t>(n / 4) : n / 4;
    REQUIRE(sums.to_doubles() == std::vector<double>(4, each));
    REQUIRE(highest.to_doubles() == std::vector<double>{1, 1, 1, 0});
  }
}
