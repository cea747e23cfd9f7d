#include "trees.h"

namespace tenon {
namespace {

AxisBinding spatial(const SplitAxis& a) { return {a.axis, AxisKind::spatial, a.value}; }
AxisBinding reduction(const SplitAxis& a) { return {a.axis, AxisKind::reduce, a.value}; }

}  // namespace

Program matmul_tree(const MatmulTree& t) {
  const Buffer a("A", f32, {int_imm(t.m), int_imm(t.k)}), b("B", f32, {int_imm(t.k), int_imm(t.n)}),
      c("C", f32, {int_imm(t.m), int_imm(t.n)});
  const Buffer tile("C.tile", f32, {int_imm(t.m), int_imm(t.n)}, Scope::reg);
  const SplitAxis i("i", t.m, t.tile_m), j("j", t.n, t.tile_n), k("k", t.k, t.tile_k);

  Stage update;
  update.name = "C";
  update.axes = {spatial(i), spatial(j), reduction(k)};
  update.spatial_guard = both(i.guard, j.guard);
  update.reduce_guard = k.guard;
  update.outputs = {t.registers ? tile : c};
  update.indices = {i.axis, j.axis};
  update.values = {load(a, {i.axis, k.axis}) * load(b, {k.axis, j.axis})};
  update.combiner = sum_combiner(f32);
  update.init = {zero(f32)};
  const auto inner = [&](const Stmt& body) {
    return loop(i.inner, i.factor, LoopMark::unroll,
                loop(j.inner, j.factor, LoopMark::vectorize, body));
  };
  Stmt body = loop(k.inner, k.factor, LoopMark::serial, inner(make_stmt(update)), AxisKind::reduce);
  body = loop(k.outer, k.outer_extent, LoopMark::serial, body, AxisKind::reduce);
  if (t.registers) {
    const Var i2("i.i"), j2("j.i");
    const VarMap fresh{{i.inner, i2}, {j.inner, j2}};
    Stage write;
    write.name = "C.write";
    for (const AxisBinding& x : {spatial(i), spatial(j)}) {
      write.axes.push_back({x.axis, x.kind, substitute(x.value, fresh)});
    }
    write.spatial_guard = substitute(update.spatial_guard, fresh);
    write.outputs = {c};
    write.indices = update.indices;
    write.values = {load(tile, update.indices)};
    const Stmt copy = loop(i2, i.factor, LoopMark::unroll,
                           loop(j2, j.factor, LoopMark::vectorize, make_stmt(write)));
    body = make_stmt(Allocate{tile, seq({body, copy})});
  }
  body = loop(j.outer, j.outer_extent, LoopMark::serial, body);
  body = loop(i.outer, i.outer_extent, LoopMark::parallel, body);
  return {"matmul", {{a, ParamRole::input}, {b, ParamRole::input}, {c, ParamRole::output}}, body};
}

Program padded_conv_tree(int64_t width, int64_t tile, LoopMark inner_mark, bool partition) {
  const Buffer x("X", f32, {int_imm(width)}), f("F", f32, {int_imm(3)}),
      y("Y", f32, {int_imm(width)});
  const SplitAxis w("w", width, tile);
  const Axis r("r", int_imm(3));
  const Var loop_r("r");
  const Expr at = Expr(w.axis) + Expr(r) - int_imm(1);
  Stage s;
  s.name = "Y";
  s.axes = {spatial(w), {r, AxisKind::reduce, loop_r}};
  s.spatial_guard = w.guard;
  s.outputs = {y};
  s.indices = {w.axis};
  const Expr inside = at >= int_imm(0) && at < int_imm(width);
  s.values = {select(inside, load(x, {at}), zero(f32)) * load(f, {r})};
  s.combiner = sum_combiner(f32);
  s.init = {zero(f32)};
  Stmt body = loop(w.inner, tile, inner_mark, make_stmt(s));
  body = loop(loop_r, 3, LoopMark::serial, body, AxisKind::reduce);
  For outer{w.outer, int_imm(0), int_imm(w.outer_extent), AxisKind::spatial, LoopMark::serial,
            {},      body};
  if (partition) outer.notes["partition"] = 1;
  return {"conv",
          {{x, ParamRole::input}, {f, ParamRole::input}, {y, ParamRole::output}},
          make_stmt(std::move(outer))};
}

Program map_tree(int64_t n, LoopMark mark, const std::vector<Buffer>& inputs, const Buffer& output,
                 const std::function<Expr(const Expr&)>& value) {
  const Axis i("i", int_imm(n));
  const Var v("i");
  Stage s;
  s.name = output->name;
  s.axes = {{i, AxisKind::spatial, v}};
  s.outputs = {output};
  s.indices = {i};
  s.values = {value(i)};
  std::vector<Param> params;
  for (const Buffer& b : inputs) params.push_back({b, ParamRole::input});
  params.push_back({output, ParamRole::output});
  return {"map", params, loop(v, n, mark, make_stmt(s))};
}

}  // namespace tenon
