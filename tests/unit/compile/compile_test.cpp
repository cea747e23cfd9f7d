#include <tenon/compile/recorded.h>
#include <tenon/schedule/roles.h>
#include <tenon/te/te.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <thread>

using namespace tenon;

namespace {

constexpr int64_t kRows = 12, kColumns = 40;

/// Row sums of exp(x), by way of a temporary.
Task row_sums(std::vector<NamedTemplate> templates = {}) {
  const Tensor x = input("X", f32, {kRows, kColumns});
  const Axis i("i", Expr(kRows)), j("j", Expr(kColumns)), k("k", Expr(kColumns));
  const Tensor e = compute("E", {i, j}, exp(x(i, j)));
  const Axis r("r", Expr(kRows));
  return Task("row_sums", {compute("Y", {r}, sum(e(r, k), k))}, std::move(templates),
              Target::host());
}

void check(const Kernel& kernel) {
  const Array x = random(f32, {kRows, kColumns}, 9), y = full(f32, {kRows}, NAN);
  kernel(x, y);
  for (int64_t i = 0; i < kRows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < kColumns; ++j) sum += std::exp(x.data<float>()[i * kColumns + j]);
    REQUIRE(y.data<float>()[i] == Approx(sum).epsilon(1e-5));
  }
}

const NamedTemplate kSplit = {"split", [](Schedule& s, Knobs& knob) {
                                s["E"].split("i", knob.divisor("tile_i", kRows));
                                if (knob.flag("parallel", true)) s["E"].parallel("i.o");
                              }};

}  // namespace

TEST_CASE(
    "a task is compiled unscheduled, by its default, by a point, by a trace and by a record") {
  const Task plain = row_sums(), own = row_sums({kSplit});
  check(compile(plain, Trace{}));
  check(compile(default_schedule(plain).program(), plain.target));

  const Schedule standard = default_schedule(own);
  REQUIRE(standard.trace().size() == 2);
  check(compile(own, standard.trace()));

  Point point;
  point.values = {{"tile_i", int64_t{4}}, {"parallel", int64_t{0}}};
  const Schedule chosen = apply_template(own, "split", point);
  REQUIRE(chosen.trace().size() == 1);
  REQUIRE_THAT(chosen.print(), Catch::Contains("for i.o in 0..3"));

  Record record;
  record.target = own.target;
  record.trace = to_json(chosen.trace());
  const Kernel kernel = compile(own, record);
  check(kernel);
  REQUIRE(kernel.loops() == chosen.print());
}

TEST_CASE("a template that does not exist is refused with the nearest names") {
  REQUIRE_THROWS_WITH(apply_template(row_sums({kSplit}), "splt", Point{}),
                      Catch::Contains("no template \"splt\"") && Catch::Contains("split"));
  REQUIRE_THROWS_WITH(apply_template(row_sums(), "split", Point{}), Catch::Contains("generic"));
}

namespace {

/// The record of `trace`, measured on `task` or, with `other_program`, on one of its family.
LoggedRecord record_of(const Task& task, const Trace& trace, bool other_program) {
  const RecordQuery query = record_query(task, 1);
  LoggedRecord logged;
  logged.where = {"some.jsonl", 3};
  logged.record.program = other_program ? "another" : query.program;
  logged.record.family = query.family;
  logged.record.target = query.target;
  logged.record.trace = to_json(trace);
  logged.record.status = TrialStatus::ok;
  logged.record.check = CheckResult::passed;
  logged.record.samples_us = {1, 1, 1};
  logged.record.tenon = query.tenon;
  logged.record.llvm = query.llvm;
  return logged;
}

bool any_trace(const Task&, const Trace&) { return true; }

}  // namespace

TEST_CASE("an adapted record is what is legal of it, and an exact one is all of it or not used") {
  const Task task = row_sums();
  Schedule schedule(task.program, task.target);
  schedule["E"].split("i", 4);
  Trace trace = schedule.trace();
  trace.push_back(primitive_from_json(R"({"step": "parallel", "stage": "gone", "loop": "x"})"));
  const Trace legal = schedule.trace();
  REQUIRE(legal_steps(task, trace) == legal);

  const auto found = [&](bool other, const Trace& t, const TraceCheck& check) {
    return recorded_schedule(task, RecordStore({record_of(task, t, other)}), 1, check);
  };
  REQUIRE(found(false, legal, {})->schedule == "some.jsonl:3");
  REQUIRE(found(false, legal, {})->trace == legal);
  REQUIRE(!found(false, trace, any_trace));
  REQUIRE(found(true, trace, any_trace)->schedule == "adapted from some.jsonl:3");
  REQUIRE(found(true, trace, any_trace)->trace == legal);
  REQUIRE(!found(true, trace, [](const Task&, const Trace&) { return false; }));
  REQUIRE(!found(true, trace, {}));
  REQUIRE(!recorded_schedule(task, RecordStore({record_of(task, legal, false)}), 2, any_trace));
}

TEST_CASE("a record of another CPU of the same features is adapted, and said to be") {
  const Task task = row_sums();
  Schedule schedule(task.program, task.target);
  schedule["E"].split("i", 4);
  LoggedRecord logged = record_of(task, schedule.trace(), false);
  logged.record.target.cpu = "A CPU of another maker";
  const RecordStore store({logged});
  const auto found = recorded_schedule(task, store, 1, any_trace);
  REQUIRE(found);
  REQUIRE(found->schedule == "adapted from some.jsonl:3 (another CPU)");
  REQUIRE(!recorded_schedule(task, store, 1, [](const Task&, const Trace&) { return false; }));
  REQUIRE(!recorded_schedule(task, store, 1));
  logged.record.target.features.push_back("zz-of-tomorrow");
  REQUIRE(!recorded_schedule(task, RecordStore({logged}), 1, any_trace));
}

TEST_CASE("a record of another target is refused") {
  const Task task = row_sums();
  Record record;
  record.target = Target::parse("x86-64/sse2");
  REQUIRE_THROWS_WITH(compile(task, record), Catch::Contains("x86-64/sse2"));
}

TEST_CASE("code for a machine that can do more is compiled but not loaded") {
  const Task task = row_sums();
  Target wide = Target::host();
  wide.features.push_back("zz-of-tomorrow");
  const KernelObject object = compile_object(task.program, Target::host());
  REQUIRE(object.bytes.substr(1, 3) == "ELF");
  REQUIRE(object.compile_us > 0);
  REQUIRE_THROWS_AS(load_kernel(object, wide), DeviceError);
}

TEST_CASE("the module describes parameters and workspace") {
  const Kernel kernel = compile(row_sums(), Trace{});
  const Module& module = kernel.module();
  REQUIRE(module.parameters.size() == 2);
  REQUIRE(module.parameters[0].name == "X");
  REQUIRE(module.parameters[0].shape == std::vector<Extent>{Extent(kRows), Extent(kColumns)});
  REQUIRE(!module.parameters[0].is_output);
  REQUIRE(module.parameters[1].is_output);
  REQUIRE(module.workspace_bytes >= kRows * kColumns * 4);
}

TEST_CASE("workers are kept awake for kernels that start several loops alone") {
  const Task task = row_sums({kSplit});
  const auto many = [&](const std::function<void(Schedule&)>& steps) {
    Schedule s(task.program, task.target);
    steps(s);
    return compile(s.program(), task.target).module().many_loops;
  };
  CHECK(!many([](Schedule&) {}));
  CHECK(!many([](Schedule& s) { s["E"].parallel("i"); }));
  CHECK(many([](Schedule& s) {
    s["E"].parallel("i");
    s["Y"].parallel("r");
  }));
  CHECK(many([](Schedule& s) { s["E"].parallel("j"); }));
}

TEST_CASE("one kernel runs in two threads at once, each with a workspace of its own") {
  const Kernel kernel = compile(row_sums(), Trace{});
  std::vector<std::thread> threads;
  std::vector<int> wrong(2, 0);
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&kernel, &wrong, t] {
      const Array x = full(f32, {kRows, kColumns}, t), y = zeros(f32, {kRows});
      const Array list[] = {x, y};
      for (int n = 0; n < 200; ++n) {
        kernel.run(list, serial_pool());
        wrong[t] += std::fabs(y.data<float>()[kRows - 1] - kColumns * std::exp(t)) > 1e-3;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  REQUIRE(wrong == std::vector<int>{0, 0});
}

TEST_CASE("a kernel shows every stage of its making") {
  const Kernel kernel = compile(row_sums(), Trace{});
  REQUIRE_THAT(kernel.loops(), Catch::Contains("stage E"));
  REQUIRE_THAT(kernel.ir(), !Catch::Contains("stage E") && Catch::Contains("E["));
  REQUIRE_THAT(kernel.source(), Catch::Contains("define i32 @tenon_entry"));
  REQUIRE_THAT(kernel.assembly(), Catch::Contains("tenon_entry:"));
  REQUIRE(kernel.compile_us() > 0);
  REQUIRE(!Kernel().defined());
}

namespace {

/// C = A * B with the constant B packed in blocks of 16 columns.
Task product(int64_t m, int64_t n, int64_t k) {
  const Tensor a = input("A", f32, {m, k}), b = constant("B", f32, {k, n});
  const Axis i("i", m), j("j", n), r("k", k);
  return Task("product", compute("C", {i, j}, sum(a(i, r) * b(r, j), r)), Target::host());
}

Kernel packed_product(const Task& task, int64_t block) {
  Schedule s(task.program, task.target);
  s.pack("B", {{1, block, 0}, {0, 1, 0}, {1, 1, block}}, {.when = PackWhen::ahead});
  auto [jo, ji] = s.split("j", block);
  s.reorder({jo, "i", "k", ji}).vectorize(ji, {.tail = Tail::mask}).parallel(jo);
  return compile(s.program(), task.target);
}

}  // namespace

TEST_CASE("a kernel takes a constant that is packed ahead, in whole and in partial blocks") {
  for (const int64_t n : {32, 37, 5}) {
    const Task task = product(7, n, 9);
    const Kernel kernel = packed_product(task, 16), plain = compile(task, Trace{});
    const Array a = random(f32, {7, 9}, 1), b = random(f32, {9, n}, 2), c = full(f32, {7, n}, NAN),
                expected = full(f32, {7, n}, NAN);
    plain(a, b, expected);
    const Array packed = kernel.prepack("B", b);
    const int64_t blocks = (n + 15) / 16;
    REQUIRE(packed.shape() == Shape{blocks, 9, 16});
    for (int64_t o = 0; o < blocks; ++o)
      for (int64_t k = 0; k < 9; ++k)
        for (int64_t l = 0; l < 16; ++l) {
          const int64_t j = o * 16 + l;
          const float want = j < n ? b.data<float>()[k * n + j] : 0;
          REQUIRE(packed.data<float>()[(o * 9 + k) * 16 + l] == want);
        }
    kernel(a, packed, c);
    for (int64_t e = 0; e < 7 * n; ++e)
      REQUIRE(c.data<float>()[e] == Approx(expected.data<float>()[e]).margin(1e-5));
    const Array back = kernel.unpack("B", packed);
    REQUIRE(back.to_doubles() == b.to_doubles());
    const Array list[] = {a, b, c};
    const std::vector<Array> replaced = kernel.prepacked(list);
    CHECK(replaced[1].to_doubles() == packed.to_doubles());
    CHECK(replaced[0].raw() == a.raw());
    CHECK(replaced[2].raw() == c.raw());
  }
}

TEST_CASE("padding of a packed constant never reaches a result") {
  const Task task = product(3, 21, 4);
  const Kernel kernel = packed_product(task, 16);
  const Array a = random(f32, {3, 4}, 1), b = random(f32, {4, 21}, 2), c = full(f32, {3, 21}, 0),
              again = full(f32, {3, 21}, 0);
  const Array packed = kernel.prepack("B", b);
  kernel(a, packed, c);
  for (int64_t k = 0; k < 4; ++k)
    for (int64_t l = 5; l < 16; ++l) packed.data<float>()[(4 + k) * 16 + l] = NAN;
  kernel(a, packed, again);
  CHECK(c.to_doubles() == again.to_doubles());
}

TEST_CASE(
    "an array that is not packed is refused with the shape that is wanted and what makes it") {
  const Kernel kernel = packed_product(product(7, 37, 9), 16);
  const Array a = random(f32, {7, 9}, 1), b = random(f32, {9, 37}, 2), c = full(f32, {7, 37}, 0);
  CHECK_THROWS_WITH(
      kernel(a, b, c),
      Catch::Contains("argument B is f32 [9, 37], but this kernel takes it packed ahead: f32 "
                      "[3, 9, 16], layout(d1//16, d0, d1%16) made of B f32 [9, 37]") &&
          Catch::Contains("try: pass what prepack(\"B\", array) of the kernel gives"));
  CHECK_THROWS_WITH(
      kernel(a, random(f32, {3, 9, 8}, 1), c),
      Catch::Contains("argument B is f32 [3, 9, 8], but this kernel takes it packed"));
  CHECK_THROWS_WITH(kernel.prepack("A", a),
                    Catch::Contains("packs no input \"A\" ahead; it packs B"));
  CHECK_THROWS_WITH(kernel.prepack("B", a),
                    Catch::Contains("prepack_B") && Catch::Contains("argument B is f32 [7, 9]"));
  const Kernel plain = compile(product(7, 37, 9), Trace{});
  CHECK_THROWS_WITH(plain.prepack("B", b), Catch::Contains("none is"));
  CHECK_THROWS_WITH(prepack(kernel.module(), 0, a, default_pool()),
                    Catch::Contains("A is not packed ahead; these are: B"));
}

TEST_CASE("packing ahead is part of the program's text and hash, and of its trace") {
  const Task task = product(7, 37, 9);
  Schedule s(task.program, task.target);
  const std::string before = program_hash(s.program());
  s.pack("B", {{1, 1, 0}, {0, 1, 0}}, {.when = PackWhen::ahead});
  CHECK(program_hash(s.program()) != before);
  CHECK_THAT(s.print(), Catch::Contains("constant B[9,37] f32 layout(d1, d0)"));
  const Kernel kernel = compile(task, s.trace());
  CHECK(kernel.module().parameters[1].layout == "layout(d1, d0)");
  CHECK_THAT(kernel.ir(), Catch::Contains("constant B[333] f32"));
}
