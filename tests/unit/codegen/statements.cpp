#include <catch2/catch.hpp>
#include <cstdio>

#include "flat.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("loops of constant, run-time and zero extent") {
  const Buffer x = flat_buffer("x", i64, 3), y = flat_buffer("y", i64, 40);
  const Var i("i"), j("j"), k("k");
  // y[i*8 + j] = 1 for j below x[i] (read at run time: 0, 5, 8), and the never-run loop writes
  // nothing
  const Stmt body = seq({loop(i, Expr(3), loop(j, load(x, {i}), store(y, i * 8 + j, int_imm(1)))),
                         loop(k, Expr(0), store(y, k + 1000000, int_imm(7)))});
  const Array lengths = from_vector<int64_t>({3}, {0, 5, 8}), out = zeros(i64, {40});
  run(program({x}, {y}, body), {lengths, out});
  for (int64_t at = 0; at < 40; ++at)
    REQUIRE(out.data<int64_t>()[at] == (at < 24 && at % 8 < lengths.data<int64_t>()[at / 8]));
}

TEST_CASE("if, else and lets inside loops") {
  const Buffer y = flat_buffer("y", f32, 37);
  const Var i("i"), twice("twice"), half("half", {f32, 1});
  If branch;
  branch.condition = floor_mod(i, Expr(3)) == 0;
  branch.then_case = store(y, i, cast(f32, twice));
  branch.else_case = store(y, i, half);
  const Stmt body = make_stmt(
      LetStmt{twice, i * 2, make_stmt(LetStmt{half, cast(f32, i) * 0.5, make_stmt(branch)})});
  for (LoopMark mark : {LoopMark::serial, LoopMark::unroll, LoopMark::parallel}) {
    const Array out = zeros(f32, {37});
    run(program({}, {y}, loop(i, Expr(37), body, mark)), {out});
    for (int k = 0; k < 37; ++k)
      REQUIRE(out.data<float>()[k] == (k % 3 == 0 ? 2.0f * k : 0.5f * k));
  }
}

TEST_CASE("parallel loops get the values around them and a workspace of their own") {
  const int64_t rows = 13, columns = 29;
  const Buffer x = flat_buffer("x", f32, rows * columns), y = flat_buffer("y", f32, rows);
  const Buffer total = flat_buffer("total", f32, 1), line = flat_buffer("line", f32, columns),
               twin = flat_buffer("twin", f32, columns);
  const Var i("i"), j("j"), k("k"), m("m"), scale("scale", {f32, 1});
  auto sum_up = [&](const Buffer& from, const Var& v) {
    return loop(v, Expr(columns), store(y, i, load(y, {i}) + load(from, {v}) * Expr(scale)));
  };
  // each row is copied to a temporary of its worker, then summed; two temporaries after each other
  // share bytes
  const Stmt row =
      seq({store(y, i, load(total, {Expr(0)})),
           allocate(line, seq({loop(j, Expr(columns), store(line, j, load(x, {i * columns + j}))),
                               sum_up(line, k)})),
           allocate(twin,
                    seq({loop(j, Expr(columns), store(twin, j, load(x, {i * columns + j}) * -1.0)),
                         sum_up(twin, m)}))});
  const Stmt body =
      allocate(total, seq({store(total, Expr(0), float_imm(1000)),
                           make_stmt(LetStmt{scale, load(x, {Expr(0)}),
                                             loop(i, Expr(rows), row, LoopMark::parallel)})}));
  const Program p = program({x}, {y}, body);
  const ObjectCode object = generate_object(p, Target::host());
  REQUIRE(object.workspace.shared == 64);
  REQUIRE(object.workspace.per_worker == 128);
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    const Array in = full(f32, {rows * columns}, 2), out = zeros(f32, {rows});
    run(p, {guarded_copy(in), out}, Target::host(), pool);
    for (int r = 0; r < rows; ++r) REQUIRE(out.data<float>()[r] == 1000.0f);
  }
}

TEST_CASE("a parallel loop inside a serial one, and one that does not start at 0") {
  const Buffer y = flat_buffer("y", i64, 60);
  const Var i("i"), j("j");
  For inner;
  inner.var = j;
  inner.min = Expr(i) * 10;
  inner.extent = Expr(10);
  inner.mark = LoopMark::parallel;
  inner.body = store(y, j, Expr(i) * 100 + j);
  ThreadPool pool(2);
  const Array out = zeros(i64, {60});
  run(program({}, {y}, loop(i, Expr(6), make_stmt(inner))), {out}, Target::host(), pool);
  for (int64_t k = 0; k < 60; ++k) REQUIRE(out.data<int64_t>()[k] == k / 10 * 100 + k);
}

TEST_CASE("register buffers: scalars, vectors, masked writes and shifted reads") {
  for (const Target& target : runnable_targets()) {
    const Buffer x = flat_buffer("x", f32, 64), y = flat_buffer("y", f32, 32);
    const Buffer tile = flat_buffer("tile", f32, 32, Scope::reg),
                 sum = flat_buffer("sum", f32, 1, Scope::reg);
    const Var v("v"), k("k"), w("w");
    const Expr part = ramp(v * 8, Expr(1), 8), out = ramp(w * 8, Expr(1), 8);
    const Expr odd = floor_mod(ramp(Expr(0), Expr(1), 8), broadcast(Expr(2), 8)) == 1;
    auto accumulate =
        store(tile, part, load(tile, {part}) + load(x, {ramp(k * 32 + v * 8, Expr(1), 8)}), odd);
    const Stmt body = allocate(
        tile,
        allocate(
            sum,
            seq({store(sum, Expr(0), float_imm(0)),
                 loop(v, Expr(4), store(tile, part, broadcast(float_imm(1), 8)), LoopMark::unroll),
                 loop(k, Expr(2),
                      seq({loop(v, Expr(4), accumulate, LoopMark::unroll),
                           store(sum, Expr(0), load(sum, {Expr(0)}) + load(x, {k}))})),
                 loop(w, Expr(4),
                      store(y, out, load(tile, {out}) + broadcast(load(sum, {Expr(0)}), 8)),
                      LoopMark::unroll)})));
    const Array in = random(f32, {64}, 5), got = zeros(f32, {32});
    run(program({x}, {y}, body), {guarded_copy(in), got}, target);
    const float* a = in.data<float>();
    for (int at = 0; at < 32; ++at) {
      const float want = 1 + (at % 2 ? a[at] + a[32 + at] : 0) + a[0] + a[1];
      REQUIRE(got.data<float>()[at] == Approx(want));
    }
  }
}

TEST_CASE("a register buffer read across its parts") {
  const Buffer x = flat_buffer("x", f32, 16), y = flat_buffer("y", f32, 24),
               tile = flat_buffer("tile", f32, 16, Scope::reg);
  const Var v("v"), s("s");
  const Expr part = ramp(v * 8, Expr(1), 8);
  const Stmt body = allocate(
      tile, seq({loop(v, Expr(2), store(tile, part, load(x, {part})), LoopMark::unroll),
                 loop(s, Expr(3),
                      store(y, ramp(s * 8, Expr(1), 8), load(tile, {ramp(s * 3, Expr(1), 8)})),
                      LoopMark::unroll)}));
  const Array in = random(f32, {16}, 2), got = zeros(f32, {24});
  run(program({x}, {y}, body), {in, got});
  for (int k = 0; k < 24; ++k) REQUIRE(got.data<float>()[k] == in.data<float>()[k / 8 * 3 + k % 8]);
}

TEST_CASE("a loop that register buffers need unrolled is refused when too long, with the numbers") {
  const Buffer y = flat_buffer("y", f32, 4096), tile = flat_buffer("tile", f32, 4096, Scope::reg);
  const Var i("i");
  const Program p = program(
      {}, {y}, allocate(tile, loop(i, Expr(2000), store(tile, i, float_imm(1)), LoopMark::unroll)));
  REQUIRE_THROWS_WITH(generate_object(p, Target::host()),
                      Catch::Contains("loop \"i\" indexes a register buffer") &&
                          Catch::Contains("2000 iterations") && Catch::Contains("at most 1024"));
  const Program at_run_time =
      program({y}, {}, allocate(tile, store(tile, cast(i64, load(y, {Expr(0)})), float_imm(1))));
  REQUIRE_THROWS_WITH(
      generate_object(at_run_time, Target::host()),
      Catch::Contains("\"tile\" is indexed by") && Catch::Contains("known only at run time"));
}

TEST_CASE("an unrolled loop that is too long runs as a loop") {
  const Buffer y = flat_buffer("y", f32, 100000);
  const Var i("i");
  const Array out = zeros(f32, {100000});
  const Program p =
      program({}, {y}, loop(i, Expr(100000), store(y, i, cast(f32, i)), LoopMark::unroll));
  run(p, {out});
  for (int k = 0; k < 100000; ++k) REQUIRE(out.data<float>()[k] == static_cast<float>(k));
}

TEST_CASE("many loaded kernels live side by side and go one by one") {
  const Buffer y = flat_buffer("y", f32, 1);
  std::vector<LoadedCode> loaded;
  for (int n = 0; n < 20; ++n) {
    const ObjectCode object =
        generate_object(program({}, {y}, store(y, Expr(0), float_imm(n))), Target::host());
    loaded.push_back(load_object(object.bytes, object.symbol));
  }
  for (int n = 19; n >= 0; n -= 2) loaded[n] = {};
  for (int n = 0; n < 20; n += 2) {
    float out = -1;
    void* args[] = {&out};
    reinterpret_cast<tenon_kernel>(loaded[n].entry)(args, nullptr, nullptr, nullptr, nullptr);
    REQUIRE(out == n);
  }
  REQUIRE_THROWS_WITH(load_object("not an object", "f"), Catch::Contains("loading machine code"));
  const ObjectCode object =
      generate_object(program({}, {y}, store(y, Expr(0), float_imm(1))), Target::host());
  REQUIRE_THROWS_WITH(load_object(object.bytes, "no_such_symbol"),
                      Catch::Contains("no_such_symbol"));
}

TEST_CASE("two threads compile and load at once") {
  const Buffer y = flat_buffer("y", f32, 1);
  ThreadPool pool(2);
  pool.for_ranges(20, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const ObjectCode object = generate_object(
          program({}, {y}, store(y, Expr(0), float_imm(static_cast<double>(n)))), Target::host());
      const LoadedCode code = load_object(object.bytes, object.symbol);
      float out = -1;
      void* args[] = {&out};
      reinterpret_cast<tenon_kernel>(code.entry)(args, nullptr, nullptr, nullptr, nullptr);
      if (out != static_cast<float>(n)) throw std::runtime_error("wrong code");
    }
  });
}

TEST_CASE("equal programs give equal bytes") {
  const Buffer y = flat_buffer("y", f32, 64);
  const Var i("i");
  const Program p =
      program({}, {y}, loop(i, Expr(64), store(y, i, cast(f32, i)), LoopMark::parallel));
  REQUIRE(generate_object(p, Target::host()).bytes == generate_object(p, Target::host()).bytes);
}

TEST_CASE("a target that is no x86-64 is refused by name") {
  Target t = Target::host();
  t.name = "aarch64/neon";
  const Buffer y = flat_buffer("y", f32, 1);
  REQUIRE_THROWS_WITH(generate_object(program({}, {y}, store(y, Expr(0), float_imm(1))), t),
                      Catch::Contains("aarch64/neon") && Catch::Contains("x86-64 processors only"));
}

TEST_CASE("indices divide right whether or not they may be negative") {
  const Buffer y = flat_buffer("y", i64, 60), z = flat_buffer("z", i64, 60);
  const Var i("i"), j("j");
  For from_minus_30;
  from_minus_30.var = j;
  from_minus_30.min = Expr(-30);
  from_minus_30.extent = Expr(60);
  from_minus_30.body = store(z, j + 30, floor_div(j * 2, Expr(7)) * 1000 + floor_mod(j, Expr(7)));
  const Array up = zeros(i64, {60}), through = zeros(i64, {60});
  run(program({}, {y, z},
              seq({loop(i, Expr(60),
                        store(y, i, floor_div(i * 2, Expr(7)) * 1000 + floor_mod(i, Expr(7)))),
                   make_stmt(from_minus_30)})),
      {up, through});
  for (int64_t k = 0; k < 60; ++k) {
    REQUIRE(up.data<int64_t>()[k] == k * 2 / 7 * 1000 + k % 7);
    const int64_t n = k - 30;
    REQUIRE(through.data<int64_t>()[k] ==
            (n * 2 >= 0 ? n * 2 / 7 : -((-n * 2 + 6) / 7)) * 1000 + ((n % 7) + 7) % 7);
  }
}

TEST_CASE("unloaded code gives its memory back") {
  const Buffer y = flat_buffer("y", f32, 1);
  const ObjectCode object =
      generate_object(program({}, {y}, store(y, Expr(0), float_imm(1))), Target::host());
  auto mapped = [] {
    long pages = 0;
    std::FILE* f = std::fopen("/proc/self/statm", "r");
    REQUIRE(f != nullptr);
    REQUIRE(std::fscanf(f, "%ld", &pages) == 1);
    std::fclose(f);
    return pages;
  };
  for (int n = 0; n < 50; ++n) load_object(object.bytes, object.symbol);
  const long before = mapped();
  for (int n = 0; n < 2000; ++n) load_object(object.bytes, object.symbol);
  REQUIRE(mapped() - before < 500);  // pages: 2000 kernels that stayed would be 4000 or more
}
