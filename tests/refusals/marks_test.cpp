#include <tenon/ir/ops.h>

#include "refused.h"

using namespace tenon;

namespace {

/// O[n, k] = X[n, k] over extents that only the call knows.
Schedule row_of_length(const Expr& rows, const Expr& columns) {
  const Buffer x("X", f32, {rows, columns}), out("O", f32, {rows, columns});
  const Var n("n"), k("k");
  const Axis a("n", rows), b("k", columns);
  Stage copy;
  copy.name = "O";
  copy.axes = {{a, AxisKind::spatial, n}, {b, AxisKind::spatial, k}};
  copy.outputs = {out};
  copy.indices = {a, b};
  copy.values = {load(x, {a, b})};
  For inner{.var = k, .min = int_imm(0), .extent = columns, .notes = {}, .body = make_stmt(copy)};
  For outer{.var = n,
            .min = int_imm(0),
            .extent = rows,
            .notes = {},
            .body = make_stmt(std::move(inner))};
  return {Program{"open", {{x}, {out, ParamRole::output}}, make_stmt(std::move(outer))},
          wide_target()};
}

}  // namespace

TEST_CASE("pack") {
  const std::vector<LayoutDim> transposed = {{1, 1, 0}, {0, 1, 0}};
  Schedule s = matmul();
  refused([&] { s.pack("B", {}); }, {"no layout is given for B", "blocks of 16 columns"});
  refused([&] { s.pack("C", transposed); }, {"C is an output of the program", "cache_write"});
  refused([&] { s.pack("B", {{0, 1, 0}}); }, {"does not store dimension 1 of B exactly once"});
  refused([&] { s.pack("B", {{2, 1, 0}}); }, {"names dimension 2 of B, which has 2"});
  refused(
      [&] {
        s.pack("B", {{0, 1, 0}, {1, 1, int64_t{1} << 40}, {1, int64_t{1} << 40, 0}});
      },
      {"does not store dimension 1 of B exactly once"});
  refused(
      [&] {
        s.pack("B", {{0, 1, 0}, {1, 1 << 21, 0}, {1, 1, 1 << 21}});
      },
      {"stores the 120 elements of B in 12582912", "the limit is 16 times"});
  refused([&] { s.pack("B", transposed, {.when = PackWhen::ahead}); },
          {"B is an input; only the contents of a constant are known ahead",
           "PackWhen::run_time, or mark the input constant"});
  refused(
      [&] {
        chain().pack("P", {{0, 1, 0}}, {.when = PackWhen::ahead});
      },
      {"P is computed by the program"});
  s.cache_read("B", "j");
  s.storage_align("B.cache", 0, 16, 1);
  refused([&] { s.pack("B.cache", transposed); },
          {"the rows of B.cache are aligned already", "pack first"});
  s.set_scope("B.cache", Scope::reg);
  refused([&] { s.pack("B.cache", transposed); }, {"B.cache is in registers"});
  const Tensor w = constant("W", f32, {6, 7});
  const Axis i("i", 6), k("k", 7);
  Schedule known(make_program("rows", {compute("R", {i}, sum(w(i, k), k))}), wide_target());
  known.pack("W", transposed, {.when = PackWhen::ahead});
  refused([&] { known.pack("W", transposed); }, {"W is packed ahead already, as layout(d1, d0)"});
  Schedule copied(make_program("rows", {compute("R", {i}, sum(w(i, k), k))}), wide_target());
  copied.pack("W", transposed);
  copied.pack("W", transposed);  // the copy's copy
  CHECK(copied.has_stage("W.packed.2"));
  Schedule open = row_of_length(Var("N"), Var("K"));
  refused([&] { open.pack("X", transposed); }, {"X has an extent that is known at the call only"});
}

TEST_CASE("pack of an input that no stage reads") {
  const Buffer x("X", f32, {int_imm(8)}), out("O", f32, {int_imm(8)});
  const Var loop("i");
  const Axis a("a", 8);
  Stage fill;
  fill.name = "F";
  fill.axes = {{a, AxisKind::spatial, loop}};
  fill.outputs = {out};
  fill.indices = {a};
  fill.values = {float_imm(1)};
  For over{.var = loop,
           .min = int_imm(0),
           .extent = int_imm(8),
           .notes = {},
           .body = make_stmt(std::move(fill))};
  Schedule s({"p", {{x}, {out, ParamRole::output}}, make_stmt(std::move(over))}, wide_target());
  refused([&] { s.pack("X", {{0, 1, 0}}); }, {"no stage reads X"});
}

TEST_CASE("storage_align") {
  Schedule s = matmul();
  refused([&] { s.storage_align("B", 0, 16, 0); },
          {"B is a parameter; the caller decides how its rows lie", "cache_read"});
  s.cache_read("B", "j");
  refused([&] { s.storage_align("B.cache", 1, 16, 0); },
          {"dimension 1 of B.cache has no rows to pad", "2 dimensions", "the last is 1"});
  refused([&] { s.storage_align("B.cache", -1, 16, 0); }, {"dimension -1 of B.cache"});
  refused([&] { s.storage_align("B.cache", 0, 16, 16); },
          {"no stride leaves the rest 16 when divided by 16"});
  refused([&] { s.storage_align("B.cache", 0, 0, 0); }, {"the factor is from 1 to"});
  s.set_scope("B.cache", Scope::reg);
  refused([&] { s.storage_align("B.cache", 0, 16, 0); }, {"in registers, which have no rows"});
}

TEST_CASE("prefetch") {
  Schedule s = matmul(12, 20, 600);
  refused([&] { s.prefetch("B", "k", 0); }, {"the distance is 0; it is from 1 to"});
  refused([&] { s.prefetch("C", "k", 1); }, {"no stage under loop \"k\" reads C"});
  refused([&] { s.prefetch("B", "i", 1); },
          {"the iterations of loop \"i\" all touch the same box of B", "nothing to fetch ahead"});
  refused([&] { s.prefetch("B", "j", 1); },
          {"one iteration of \"j\" touches 600 cache lines", "the limit is 256"});
  refused([&] { s.prefetch("B", "k", 1, {.over = "j"}); },
          {"loop \"j\" is not inside loop \"k\": it cannot share out its lines", "a loop inside"});
  s.cache_read("A", "i");
  refused([&] { s.prefetch("A.cache", "i", 1); },
          {"A.cache is allocated inside loop \"i\"", "prefetch what fills it"});
  s.set_scope("A.cache", Scope::reg);
  refused([&] { s.prefetch("A.cache", "k", 1); }, {"A.cache is in registers"});
  s.reorder({"k", "j"}).vectorize("j", {.tail = Tail::mask});
  refused([&] { s.prefetch("B", "j", 1); }, {"loop \"j\" is vectorized", "a loop outside it"});
  const Tensor scale = input("S", f32, {});
  const Axis i("i", 9);
  Schedule one(make_program("one", {compute("C", {i}, input("X", f32, {9})(i) * scale())}),
               wide_target());
  refused([&] { one.prefetch("S", "i", 1); }, {"S is one element"});
}

TEST_CASE("prefetch of a box of unknown size") {
  Schedule s = row_of_length(Var("N"), Var("K"));
  refused([&] { s.prefetch("X", "n", 1); },
          {"how much of dimension 1 of X an iteration of \"n\" touches is not known"});
  refused([&] { s.prefetch("X", "n", 1, {.over = "k"}); },
          {"how often loop \"k\" runs is not known before the call", "another loop"});
}

TEST_CASE("double_buffer") {
  Schedule s = matmul();
  s.split("k", 2);
  s.reorder({"k.o", "i", "k.i", "j"});
  refused([&] { s.double_buffer("B", "k.o"); },
          {"B cannot have two copies in loop \"k.o\"", "not allocated in the body",
           "cache_read or compute_at at that loop"});
  s.cache_read("B", "k.o");
  s.cache_write("i");
  refused(
      [&] { s.double_buffer("C.cache", "i"); },
      {"stage \"C.load\" fills C.cache from C, which stage \"C.store\" writes in the same loop"});
  Schedule reg = s;
  s.double_buffer("B.cache", "k.o");
  refused([&] { s["B.cache"].set_scope("B.cache", Scope::reg); }, {"B.cache is in registers"});
  refused([&] { s["C"].split("k.o", 2); }, {"marked double_buffer(B.cache)=1"});
  refused([&] { s["C"].unroll("k.o"); }, {"loop \"k.o\" is unroll", "hand the copies on in order"});
  reg.set_scope("B.cache", Scope::reg);
  refused([&] { reg["C"].double_buffer("B.cache", "k.o"); },
          {"B.cache is in registers", "need no second copy"});
}

TEST_CASE("double_buffer of what depends on the body, before and after a step") {
  Schedule s = chain();
  s["C"].split("i", 8);
  s["P"].compute_at("C", "i.o");
  Schedule marked = s;
  s["P"].cache_read("X", "i.o");
  refused([&] { s["C"].double_buffer("P", "i.o"); },
          {"P cannot have two copies in loop \"i.o\"",
           "stage \"P\" fills P from X.cache, which stage \"X.cache\" writes in the same loop"});
  marked["C"].double_buffer("P", "i.o");
  refused([&] { marked["P"].cache_read("X", "i.o"); },
          {"cache_read(P, \"X\", \"i.o\")", "stage \"P\" fills P from X.cache"});
}

TEST_CASE("double_buffer of a tree that fills late, not at all, or two buffers at once") {
  const Buffer x("X", f32, {int_imm(8)}), t("T", f32, {int_imm(8)}), u("U", f32, {int_imm(8)}),
      out("O", f32, {int_imm(8)});
  const Var loop("i");
  const auto copy = [&](const std::string& name, std::vector<Buffer> to, const Buffer& from) {
    const Axis a("a", 8);
    Stage s;
    s.name = name;
    s.axes = {{a, AxisKind::spatial, loop}};
    s.values.assign(to.size(), load(from, {a}));
    s.outputs = std::move(to);
    s.indices = {a};
    return make_stmt(std::move(s));
  };
  const auto schedule = [&](std::vector<Stmt> parts) {
    const Stmt body = make_stmt(Allocate{u, make_stmt(Allocate{t, seq(std::move(parts))})});
    For over{.var = loop, .min = int_imm(0), .extent = int_imm(8), .notes = {}, .body = body};
    return Schedule({"p", {{x}, {out, ParamRole::output}}, make_stmt(std::move(over))},
                    wide_target());
  };
  Schedule late = schedule({copy("A", {t}, x), copy("B", {out}, t), copy("D", {t}, x)});
  refused([&] { late["A"].double_buffer("T", "i"); },
          {"stage \"D\" writes T after it has been read in the same iteration"});
  Schedule never = schedule({copy("A", {u}, x), copy("B", {out}, u)});
  refused([&] { never["A"].double_buffer("T", "i"); }, {"nothing in loop \"i\" fills T"});
  Schedule both = schedule({copy("A", {t, u}, x), copy("B", {out}, t)});
  refused([&] { both["A"].double_buffer("T", "i"); },
          {"stage \"A\" also writes U in the nest that fills T"});
}

TEST_CASE("annotate") {
  Schedule s = matmul();
  refused(
      [&] { s.annotate("i", "partition", 1); },
      {"\"partition\" is no key that lowering knows (\"no_partition\", \"stream\")", "user.NAME"});
  refused([&] { s.annotate("i", "user.", 1); }, {"\"user.\" is no key"});
  refused([&] { s.annotate("i", "user.a b", 1); }, {"up to 59 letters"});
  refused([&] { s.annotate("i", "stream", 0); }, {"the value of \"stream\" is 0"});
  refused([&] { s.annotate("i", "no_partition", 2); }, {"the value of \"no_partition\" is 2"});
  s.annotate("i", "user.x", 1);
  refused([&] { s.split("i", 2); }, {"loop \"i\" is marked user.x=1; marks come after the splits"});
}
