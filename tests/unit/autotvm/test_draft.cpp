#include "drafted.h"

using namespace tenon;

TEST_CASE("An index form says how far each loop moves it and what its inner loops span") {
  const Var io("i.o"), k("k"), ii("i.i");
  const FormLoops loops{{io.get(), k.get(), ii.get()}, {43, 8, 6}};
  const IndexForm f = form_of(Expr(io) * 6 + Expr(ii) + 2, loops, {});
  CHECK(f.constant == 2);
  CHECK(std::vector<float>(f.step.begin(), f.step.begin() + 3) == std::vector<float>{6, 0, 1});
  CHECK(std::vector<float>(f.span.begin(), f.span.begin() + 4) == std::vector<float>{257, 5, 5, 0});
  CHECK_FALSE(f.data);

  SECTION("A fused loop moves the outer index once in a while and the inner one all the time") {
    const Var fused("i_j");
    const FormLoops one{{fused.get()}, {40}};
    const IndexForm i = form_of(floor_div(fused, Expr(8)), one, {}),
                    j = form_of(floor_mod(fused, Expr(8)), one, {});
    CHECK(i.span[0] == 4);
    CHECK(i.step[0] == 0.125f);
    CHECK(j.span[0] == 7);
    CHECK(j.step[0] == 1);
  }
  SECTION("What was loaded may be anywhere") {
    const Buffer at("At", DType::i64, {Expr(64)});
    CHECK(form_of(load(at, {Expr(ii)}) + 1, loops, {}).data);
  }
}

TEST_CASE("A tile of 6 x 64 keeps 24 sums, and 5 registers more") {
  const Schedule s = tiled(product(96, 128, 64), 6, 64, 4);
  const NestTree tree = nests_of(s.program(), {});
  const StageWork w = work_of(tree, "C");
  // Four steps of k: 4 x (6 x 4) multiply-adds, of B 4 vectors and of A 6 elements each.
  CHECK(w.full.ops == 96);
  CHECK(w.full.contiguous == 16);
  CHECK(w.full.broadcasts == 24);
  CHECK(w.full.stores == 0);
  CHECK(w.full.chain == 4);
  CHECK(w.full.accumulators == 24);
  CHECK(w.full.registers == 29);
  CHECK(w.full.spilled == 0);
  // 16 x 2 tiles of 16 steps, each 48 cycles of multiply-adds and a little for each load.
  CHECK(w.cycles == Approx(16 * 2 * 16 * (48 + 16 * 0.13 + 24 * 0.05)));
  CHECK(w.instructions == 16 * 2 * 16 * 96);
  // The 24 vectors are stored once a tile.
  CHECK(work_of(tree, "C.store").full.stores == 24);
}

TEST_CASE("Tails count as the smaller tiles they are") {
  const NestTree tree = nests_of(tiled(product(98, 112, 64), 6, 64, 1).program(), {});
  const StageWork w = work_of(tree, "C");
  // Rows 16 x 6 + 2; columns 4 vectors + 3.
  CHECK(w.instructions == 64 * (16 * 6 + 2) * (4 + 3));
  CHECK(w.points == Approx(98. * 112 * 64));
  CHECK(w.wasted == Approx(0).margin(1e-9));
  // Two rows of three vectors wait for the latency of an addition: four cycles a step.
  const double six = 6 * 0.05, two = 2 * 0.05, four = 4 * 0.13, three = 3 * 0.13;
  CHECK(w.cycles == Approx(64 * (16 * (12 + four + six) + 16 * (9 + three + six) +
                                 (4 + four + two) + (4 + three + two))));
  // 100 columns are 6 vectors and a quarter of the seventh.
  const NestTree odd = nests_of(tiled(product(98, 100, 64), 6, 64, 1).program(), {});
  CHECK(work_of(odd, "C").wasted == Approx(1 - 100. / 112));
  // A vector of which some lanes lie outside is loaded, then blended: one instruction more.
  const NestTree narrow = nests_of(tiled(product(6, 20, 64), 6, 32, 1).program(), {});
  CHECK(work_of(narrow, "C").instructions == 64 * (6 * 2 + 1));
}

TEST_CASE("What unrolled loops come back to waits in registers, in the order of the loops") {
  const auto registers = [](const std::vector<LoopRef>& order) {
    Schedule s(product(64, 64, 64), machine());
    s.split("i", 2);
    s.split("j", 32);
    s.split("j.i", 16);
    s.reorder(order);
    s.cache_write("j.o", {.scope = Scope::reg});
    s["C"].vectorize("j.i.i").unroll("i.i").unroll("j.i.o");
    return work_of(nests_of(s.program(), {}), "C").full.registers;
  };
  // 4 sums; B's two vectors wait for the second row, or A's two elements for the second vector.
  CHECK(registers({"i.o", "j.o", "k", "i.i", "j.i.o", "j.i.i"}) == 4 + 2 + 1);
  CHECK(registers({"i.o", "j.o", "k", "j.i.o", "i.i", "j.i.i"}) == 4 + 1 + 2);
}

TEST_CASE("More sums than registers are hopeless, a few too many registers spill") {
  CHECK(draft_of(tiled(product(64, 160, 64), 7, 80, 1)).hopeless.value() ==
        "more accumulators than vector registers");
  const Draft full = draft_of(tiled(product(64, 128, 64), 8, 64, 1));
  CHECK_FALSE(full.hopeless);
  CHECK(full.features.accumulators == 32);
  CHECK(full.features.spilled == 5);
  CHECK(full.cycles > draft_of(tiled(product(64, 128, 64), 4, 64, 1)).cycles);
}

TEST_CASE("A window's elements that steps share are loaded once") {
  const Tensor x = input("X", f32, {34, 64}), f = input("F", f32, {3, 64});
  const Axis w("w", 32), c("c", 64), t("t", 3);
  const Program p =
      make_program("rows", {compute("Y", {w, c}, sum(x(Expr(w) + Expr(t), c) * f(t, c), t))});
  Schedule s(p, machine());
  s.split("w", 4);
  s.split("c", 16);
  s.reorder({"w.o", "c.o", "t", "w.i", "c.i"});
  s["Y"].unroll("t").unroll("w.i").vectorize("c.i");
  const StageWork work = work_of(nests_of(s.program(), {}), "Y");
  // 4 windows of 3 touch 6 rows of X, not 12; 3 rows of F, and the 4 sums, which stay in registers.
  CHECK(work.full.contiguous == 6 + 3 + 4);
  CHECK(work.full.stores == 4);
  CHECK(work.full.chain == 3);
}

TEST_CASE("Neighbouring lanes are vectors, lanes of other rows are not") {
  const Tensor x = input("X", f32, {256, 256});
  const Axis i("i", 256), j("j", 256);
  const auto step_of = [&](const Tensor& y, bool unroll) {
    Schedule s(make_program("move", {y}), machine());
    s.split("j", 16);
    s.split("i", 16);
    s.reorder({"i.o", "j.o", "i.i", "j.i"}).vectorize("j.i");
    if (unroll) s.unroll("i.i");
    return work_of(nests_of(s.program(), {}), "Y").full;
  };
  const Tensor copy = compute("Y", {i, j}, x(i, j)), turned = compute("Y", {i, j}, x(j, i)),
               shifted = compute("Y", {i, j}, x(i, min(Expr(j) + 1, Expr(255)))),
               third = compute("Y", {i, j}, x(i, min(Expr(j) * 3, Expr(255)))),
               row = compute("Y", {i, j}, x(i, 0)),
               at = compute("Y", {i, j}, x(i, cast(DType::i64, x(i, j))));
  CHECK(step_of(copy, false).contiguous == 1);
  CHECK(step_of(copy, false).split == 0);
  CHECK(step_of(turned, false).gathered == 16);
  CHECK(step_of(turned, true).transposed == 16);
  CHECK(step_of(turned, true).gathered == 0);
  CHECK(step_of(row, false).broadcasts == 1);
  CHECK(step_of(third, false).strided == 3);
  CHECK(step_of(at, false).gathered == 16);
  // Of rows of 250 floats one in eight starts where a line does.
  const Tensor odd = input("O", f32, {256, 250});
  const Step split = step_of(compute("Y", {i, j}, odd(i, min(Expr(j), Expr(249)))), false);
  CHECK(split.contiguous == 1);
  CHECK(split.split == 1 - 1. / 8);
}

TEST_CASE("Stores whose gaps an unrolled loop fills are shuffled, not scattered") {
  const Tensor x = input("x", u8, {64, 256});
  const Axis i("i", 64), j("j", 256);
  const Program p = make_program("copy", {compute("y", {i, j}, x(i, j) + cast(u8, Expr(1)))});
  const auto step = [&](bool unrolled) {
    Schedule s(p, machine());
    s.split("i", 4);
    s.split("j", 64);
    s.reorder({"i.o", "j.o", "i.i", "j.i"});
    const std::string copy =
        s.cache_read("x", "root", {.layout = {{1, 64, 0}, {0, 4, 0}, {1, 1, 64}, {0, 1, 4}}});
    const std::vector<Loop> loops = s[copy].loops();
    const auto [groups, term] = s[copy].split(loops[0], 4);
    const auto [panels, lane] = s[copy].split(loops[1], 64);
    s[copy].reorder({groups, panels, term, lane});
    if (unrolled) s[copy].unroll(term);
    s[copy].vectorize(lane);
    return draft_of(s).features.copy_cycles;
  };
  CHECK(step(true) < step(false) / 4);
}

TEST_CASE("Bodies of thousands of instructions and gigabytes of workspace are hopeless") {
  CHECK(draft_of(tiled(product(64, 128, 512), 6, 64, 128)).hopeless.value() ==
        "more than 4000 instructions a step");
  const Tensor x = input("X", f32, {1 << 15, 1 << 15});
  const Axis i("i", 1 << 15), j("j", 1 << 15), i2("i2", 1 << 15), j2("j2", 1 << 15);
  const Tensor e = compute("E", {i, j}, exp(x(i, j)));
  const Schedule s(make_program("two", {compute("Y", {i2, j2}, e(i2, j2) * e(i2, 0))}), machine());
  const Draft d = draft_of(s);
  CHECK(d.features.workspace_bytes == 4.0 * 1024 * kMiB);
  CHECK(d.hopeless.value() == "more than 1 GiB of workspace");
}

TEST_CASE("A condition that lanes differ in costs for each load, one of the outer loops nothing") {
  const Tensor x = input("X", f32, {64, 64});
  const Axis i("i", 66), j("j", 64);
  const auto ops = [&](const Expr& inside) {
    const Tensor y = compute("Y", {i, j}, select(inside, x(Expr(i) - 1, j), float_imm(0)));
    Schedule s(make_program("pad", {y}), machine());
    s.split("j", 16);
    s.vectorize("j.i");
    return work_of(nests_of(s.program(), {}), "Y").full.ops;
  };
  CHECK(ops(Expr(i) >= 1 && Expr(i) < 65) == 0);
  // One comparison (both ends are one) in 6 instructions, and one for the mask of the load.
  CHECK(ops(Expr(j) >= 1 && Expr(j) < 63) == 7);
}

TEST_CASE("A guard that all lanes share costs each load a choice of its address, unless cut off") {
  const Tensor x = input("X", f32, {64, 64});
  const Axis i("i", 64), j("j", 64);
  const Expr inside = Expr(i) >= 1;
  const Tensor y = compute("Y", {i, j}, select(inside, x(Expr(i) - 1, j), float_imm(0)));
  const auto step_of = [&](bool cut) {
    Schedule s(make_program("pad", {y}), machine());
    s.split("j", 16);
    s.split("i", 4);
    s.reorder({"i.o", "j.o", "i.i", "j.i"}).vectorize("j.i").unroll("i.i");
    if (cut) s.partition("i.o");
    return work_of(nests_of(s.program(), {}), "Y").full;
  };
  CHECK(step_of(false).shuffles == 4);
  CHECK(step_of(false).scalars > 4 * 5);
  CHECK(step_of(true).shuffles == 0);
  CHECK(step_of(true).scalars == 0);
}

TEST_CASE("A condition on all that is summed is the stage's: loops are cut until it holds") {
  const Tensor x = input("X", f32, {64, 64}), w = input("W", f32, {64, 64});
  const Axis i("i", 64), j("j", 64), r("r", 3);
  const Expr inside = Expr(i) + Expr(r) >= 1;
  const auto step_of = [&](const Tensor& y) {
    Schedule s(make_program("sum", {y}), machine());
    s.split("j", 16);
    s.split("i", 4);
    s.reorder({"i.o", "j.o", "r", "i.i", "j.i"}).vectorize("j.i").unroll("i.i");
    return work_of(nests_of(s.program(), {}), "Y").full;
  };
  const Expr product = x(Expr(i) + Expr(r) - 1, 0) * w(r, j);
  const Expr padded = select(inside, x(Expr(i) + Expr(r) - 1, 0), float_imm(0)) * w(r, j);
  CHECK(step_of(compute("Y", {i, j}, sum(select(inside, product, float_imm(0)), r))).scalars == 0);
  CHECK(step_of(compute("Y", {i, j}, sum(padded, r))).scalars > 0);
}

TEST_CASE("What stands still while lanes run is computed once, outside") {
  const Tensor x = input("X", f32, {64, 64}), d = input("D", f32, {64});
  const Axis i("i", 64), j("j", 64);
  const auto divide = [&](const Expr& by) {
    Schedule s(make_program("scale", {compute("Y", {i, j}, x(i, j) * (float_imm(1) / by))}),
               machine());
    s.vectorize("j");
    return work_of(nests_of(s.program(), {}), "Y").full.divide_cycles;
  };
  CHECK(divide(d(i)) == 0);
  CHECK(divide(d(j)) > 0);
}

TEST_CASE("Constants of functions that find no register are read by each vector") {
  const Tensor x = input("X", f32, {64, 512});
  const Axis i("i", 512), r("r", 64);
  const auto loads = [&](int64_t lanes) {
    Schedule s(make_program("exps", {compute("Y", {i}, sum(exp(x(r, i)), r))}), machine());
    s.split("i", lanes);
    s.reorder({"i.o", "r", "i.i"}).cache_write("i.o", {.scope = Scope::reg});
    s["Y"].vectorize("i.i");
    const Step step = work_of(nests_of(s.program(), {}), "Y").full;
    return step.contiguous / step.vectors;
  };
  CHECK(loads(64) == 1);
  // 32 sums leave none to the function's sixteen.
  CHECK(loads(512) == 1 + 16);
}

TEST_CASE("Who needs the sum of all lanes of a row waits for it") {
  const Tensor x = input("X", f32, {64, 64});
  const Axis i("i", 64), j("j", 64), r("r", 64);
  const Tensor total = compute("S", {i}, sum(x(i, r), r)),
               y = compute("Y", {i, j}, x(i, j) * total(i));
  const auto ends = [&](bool together) {
    Schedule s(make_program("share", {y}), machine());
    if (together) s["S"].compute_at("Y", "i");
    s["S"].vectorize("r");
    return work_of(nests_of(s.program(), {}), "S").ends;
  };
  CHECK(ends(true) == ends(false) + 64 * 4 * 4);
}

TEST_CASE("The greatest of floats is a comparison and a choice beside the maximum") {
  const Tensor x = input("X", f32, {64, 64});
  const Axis i("i", 64), r("r", 64);
  const auto ops = [&](const Tensor& y) {
    Schedule s(make_program("over", {y}), machine());
    s.reorder({"r", "i"}).vectorize("i");
    return work_of(nests_of(s.program(), {}), "Y").full.ops;
  };
  CHECK(ops(compute("Y", {i}, reduce_max(x(r, i), {r}))) ==
        3 * ops(compute("Y", {i}, sum(x(r, i), r))));
}

TEST_CASE("Elementary functions and divisions cost what they take") {
  const Tensor x = input("X", f32, {4096});
  const auto cycles = [&](const std::function<Expr(const Expr&)>& f) {
    const Axis i("i", 4096);
    Schedule s(make_program("map", {compute("Y", {i}, f(x(i)))}), machine());
    s.split("i", 16);
    s.vectorize("i.i");
    return draft_of(s).features.compute_cycles;
  };
  const double plain = cycles([](const Expr&e) { return e + 1.0; }),
               divided = cycles([](const Expr&e) { return 1.0 / e; }),
               function = cycles([](const Expr&e) { return exp(e); }),
               error = cycles([](const Expr&e) { return erf(e); });
  CHECK(plain < function);
  CHECK(function < error);
  CHECK(divided >= 256 * 16);  // 16 cycles a vector
}

TEST_CASE("The draft puts a product's schedules in order") {
  const Program p = product(1024, 1024, 1024);
  Schedule vectors(p, machine());
  vectors.split("j", 16);
  vectors.reorder({"i", "j.o", "k", "j.i"}).vectorize("j.i");
  Schedule rows(p, machine());  // lanes along k: sums of lanes, columns of B
  rows.split("k", 16);
  rows.vectorize("k.i");
  const std::vector<double> order = {draft_of(tiled(p, 6, 64, 4, true)).cycles,
                                     draft_of(tiled(p, 6, 64, 4)).cycles, draft_of(vectors).cycles,
                                     draft_of(rows).cycles};
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK(order[2] < draft_of(Schedule(p, machine())).cycles);
  // The best is near the 2^30 / 32 cycles that the multiply-adds alone take.
  CHECK(order[0] > 1024. * 1024 * 1024 / 32);
  CHECK(order[0] < 1.6 * 1024 * 1024 * 1024 / 32);
  CHECK(draft_of(tiled(p, 1, 16, 1, true)).cycles > 3 * order[0]);
}

TEST_CASE("A vector of features has a name for each number") {
  const Draft d = draft_of(tiled(product(96, 128, 64), 6, 64, 4));
  const auto names = DraftFeatures::names();
  const std::vector<float> values = d.features.vector();
  REQUIRE(names.size() == values.size());
  const auto value = [&](std::string_view name) {
    const auto at = std::find(names.begin(), names.end(), name);
    REQUIRE(at != names.end());
    return values[static_cast<size_t>(at - names.begin())];
  };
  CHECK(value("registers") == 29);
  CHECK(value("vector_share") == 1);
  CHECK(value("chain") == Approx(std::log2(5.0)));  // sizes: log2(1 + x)
  for (float v : values) CHECK(std::isfinite(v));
}

TEST_CASE("Symbolic extents count at the sizes that are given") {
  const Expr n = symbol("n", {1, 4096});
  const Tensor x = input("X", f32, {n, Expr(64)});
  const Axis i("i", n), j("j", 64);
  Schedule s(make_program("map", {compute("Y", {i, j}, x(i, j) + 1.0)}), machine());
  s.split("j", 16);
  s.vectorize("j.i");
  const double ten = draft(s.program(), machine(), 1, {{"n", 10}}).features.steps,
               hundred = draft(s.program(), machine(), 1, {{"n", 100}}).features.steps;
  CHECK(hundred == Approx(10 * ten));
}
