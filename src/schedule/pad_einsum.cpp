#include <tenon/schedule/restructure_primitives.h>

#include <algorithm>

#include "schedule/place.h"

namespace tenon {
namespace {

/// An axis of the stage with what it grows to.
struct Padded {
  Axis axis;
  AxisKind kind;
  int64_t size = 0, grown = 0;  // equal where the axis stays
};

bool grows(const Padded& p) { return p.size != p.grown; }

/// Zeros in what is added along `axis` make the whole expression zero. Of floats every factor that
/// is not a constant must be: 0 * inf is NaN.
bool vanishes(const Expr& e, const Var& axis) {
  if (const Load* l = e.as<Load>())
    return std::any_of(l->indices.begin(), l->indices.end(), [&](const Expr& index) {
      const VarRef* ref = index.as<VarRef>();
      return ref && ref->var.same_as(axis);
    });
  if (const Cast* c = e.as<Cast>()) return vanishes(c->value, axis);
  if (const Unary* u = e.as<Unary>()) return u->op == UnaryOp::neg && vanishes(u->a, axis);
  if (const Select* s = e.as<Select>()) return vanishes(s->yes, axis) && vanishes(s->no, axis);
  const Binary* b = e.as<Binary>();
  if (!b) return false;
  const bool a_zero = vanishes(b->a, axis), b_zero = vanishes(b->b, axis);
  if (b->op == BinaryOp::add || b->op == BinaryOp::sub) return a_zero && b_zero;
  if (b->op != BinaryOp::mul) return false;
  if (!is_float(e.dtype())) return a_zero || b_zero;
  return (a_zero && (b_zero || as_float(b->b))) || (b_zero && as_float(b->a));
}

std::vector<Padded> padded_axes(const Stage& stage, const std::vector<int64_t>& paddings) {
  if (paddings.size() != stage.axes.size())
    refuse(Rule::einsum_paddings, fmt::format("{} paddings are given for the {} axes of \"{}\"",
                                              paddings.size(), stage.axes.size(), stage.name));
  std::vector<Padded> out;
  for (size_t n = 0; n < paddings.size(); ++n) {
    const AxisBinding& b = stage.axes[n];
    if (paddings[n] < 1)
      refuse(Rule::einsum_paddings,
             fmt::format("the padding of axis \"{}\" is {}; it is at least 1", b.axis.var.name(),
                         paddings[n]));
    const std::optional<int64_t> size = as_int(b.axis.extent);
    if (!size && paddings[n] > 1)
      refuse(Rule::einsum_symbolic,
             fmt::format("axis \"{}\" has the symbolic extent {}; a padding needs a constant",
                         b.axis.var.name(), print(b.axis.extent)),
             "leave it at padding 1");
    const int64_t whole = size.value_or(0);
    out.push_back({b.axis, b.kind, whole, (whole + paddings[n] - 1) / paddings[n] * paddings[n]});
  }
  return out;
}

class EinsumPadding {
 public:
  EinsumPadding(const Program& program, const StagePath& path, std::vector<Padded> axes,
                std::vector<size_t> order)
      : program_(program),
        stage_(*path.stage),
        path_(path),
        axes_(std::move(axes)),
        order_(std::move(order)) {}

  Program apply() {
    check_terms();
    Stage work = stage_;
    for (size_t n = 0; n < axes_.size(); ++n)
      if (grows(axes_[n])) work.axes[n].axis.extent = int_imm(axes_[n].grown);
    for (Expr& e : work.values) e = rewrite(e, [&](const Expr& part) { return on_copy(part); });
    const bool spatial = std::any_of(axes_.begin(), axes_.end(), [](const Padded& p) {
      return p.kind == AxisKind::spatial && grows(p);
    });
    Stmt store;
    if (spatial) {
      store = grow_output(work);
      for (Expr& e : work.init) e = inside_only(e);
    }
    return assemble(work, store);
  }

 private:
  const Padded* grown_axis(const Expr& index) const {
    for (const Padded& p : axes_)
      if (grows(p) && uses_var(index, p.axis.var)) return &p;
    return nullptr;
  }

  void check_terms() const {
    for (const Padded& p : axes_)
      if (p.kind != AxisKind::spatial && grows(p) && !vanishes(stage_.values[0], p.axis.var))
        refuse(Rule::einsum_terms,
               fmt::format("with axis \"{}\" padded, {} adds terms that are not known to be 0",
                           p.axis.var.name(), print(stage_.values[0])),
               is_float(stage_.outputs[0]->dtype)
                   ? "every input of the product has to speak of the axis (0 * inf is NaN), or the "
                     "axis stays at padding 1"
                   : "the axis stays at padding 1");
  }

  /// The load on a zero-padded copy, where an axis that grows is one of its indices.
  Expr on_copy(const Expr& e) {
    const Load* l = e.as<Load>();
    if (!l) return e;
    std::vector<Expr> shape = l->buffer->shape;
    bool copied = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      const Padded* p = grown_axis(l->indices[d]);
      if (!p) continue;
      if (!l->indices[d].as<VarRef>() || as_int(shape[d]) != p->size)
        refuse(Rule::einsum_index,
               fmt::format("stage \"{}\" reads {} at [{}]; axis \"{}\", which is padded, has to be "
                           "the whole index of a dimension of its extent",
                           stage_.name, l->buffer->name, print(l->indices[d]), p->axis.var.name()),
               "leave the axis at padding 1");
      shape[d] = int_imm(p->grown);
      copied = true;
    }
    return copied ? load(copy_of(l->buffer, shape), l->indices) : e;
  }

  /// BUFFER.pad of that shape, with the nest that fills it; one for equal buffers and shapes.
  Buffer copy_of(const Buffer& from, const std::vector<Expr>& shape) {
    for (const Copy& c : copies_) {
      bool same = c.from == from;
      for (size_t d = 0; d < shape.size(); ++d)
        same = same && structural_equal(c.to->shape[d], shape[d]);
      if (same) return c.to;
    }
    const Buffer to(new_name(from->name + ".pad"), from->dtype, shape);
    Stage stage;
    stage.name = to->name;
    stage.outputs = {to};
    Expr inside;
    for (size_t d = 0; d < shape.size(); ++d) {
      const Axis axis(fmt::format("d{}", d), shape[d]);
      stage.axes.push_back({axis, AxisKind::spatial, axis});
      stage.indices.push_back(axis);
      if (!structural_equal(shape[d], from->shape[d]))
        inside = both(inside, Expr(axis) < from->shape[d]);
    }
    stage.values = {select(inside, load(from, stage.indices), zero(from->dtype))};
    copies_.push_back({from, to, nest_of(std::move(stage))});
    return to;
  }

  /// The stage's nest, one loop per axis in that order (empty: as the axes stand).
  static Stmt nest_of(Stage stage, std::vector<size_t> order = {}) {
    for (size_t n = order.size(); n < stage.axes.size(); ++n) order.push_back(n);
    std::vector<For> loops;
    for (size_t n : order) {
      AxisBinding& b = stage.axes[n];
      loops.push_back(make_loop(Var(b.axis.var.name()), b.axis.extent, b.kind, {}));
      b.value = loops.back().var;
    }
    Stmt body = make_stmt(std::move(stage));
    for (size_t n = loops.size(); n-- > 0;) {
      loops[n].body = body;
      body = make_stmt(std::move(loops[n]));
    }
    return body;
  }

  /// The stage writes STAGE.pad; returns the nest of STAGE.store, which copies out what was asked
  /// for.
  Stmt grow_output(Stage& work) {
    const Buffer out = stage_.outputs[0];
    std::vector<Expr> shape = out->shape;
    Stage store;
    store.name = new_name(stage_.name + ".store");
    store.outputs = {out};
    for (size_t d = 0; d < shape.size(); ++d) {
      if (grows(axes_[d])) shape[d] = int_imm(axes_[d].grown);
      const Axis axis(axes_[d].axis.var.name(), out->shape[d]);
      store.axes.push_back({axis, AxisKind::spatial, axis});
      store.indices.push_back(axis);
    }
    grown_output_ = Buffer(new_name(out->name + ".pad"), out->dtype, shape);
    store.values = {load(grown_output_, store.indices)};
    work.outputs = {grown_output_};
    return nest_of(std::move(store));
  }

  /// An init that reads is 0 where it would read outside.
  Expr inside_only(const Expr& e) const {
    bool loads = false;
    walk(e, [&](const Expr& part) {
      loads = loads || part.as<Load>();
      return !loads;
    });
    Expr inside;
    for (const Padded& p : axes_)
      if (p.kind == AxisKind::spatial && grows(p))
        inside = both(inside, Expr(p.axis) < int_imm(p.size));
    return loads ? select(inside, e, zero(e.dtype())) : e;
  }

  std::string new_name(const std::string& base) {
    std::string name = fresh_name(program_, base);
    for (int n = 2; std::find(names_.begin(), names_.end(), name) != names_.end(); ++n)
      name = fresh_name(program_, fmt::format("{}.{}", base, n));
    names_.push_back(name);
    return name;
  }

  Program assemble(const Stage& work, const Stmt& store) {
    std::vector<Stmt> parts;
    for (const Copy& c : copies_) parts.push_back(c.nest);
    parts.push_back(nest_of(work, order_));
    parts.push_back(store);
    Stmt all = seq(std::move(parts));
    for (const Copy& c : copies_) all = make_stmt(Allocate{c.to, all});
    if (store.defined()) all = make_stmt(Allocate{grown_output_, all});
    Program out = program_;
    out.body = replace_loop(program_.body, path_.loops[0]->var, [&](const For&) { return all; });
    return out;
  }

  struct Copy {
    Buffer from, to;
    Stmt nest;
  };

  const Program& program_;
  const Stage& stage_;
  const StagePath& path_;
  std::vector<Padded> axes_;
  std::vector<size_t> order_;  // of the loops
  std::vector<Copy> copies_;
  std::vector<std::string> names_;
  Buffer grown_output_;
};

}  // namespace

/// for i in 0..n: for k in 0..m: C(i) += A(i,k)*x(k)   ->   copies A.pad, x.pad with zeros;
/// for i in 0..N: for k in 0..M: C.pad(i) += A.pad(i,k)*x.pad(k);  for i in 0..n: C(i) = C.pad(i)
Program PadEinsum::apply(const Program& program, const Target&) const {
  const StagePath path = find_stage(program, stage);
  const Stage& s = *path.stage;
  const bool is_sum =
      s.combiner && s.outputs.size() == 1 && combiner_op(*s.combiner) == BinaryOp::add;
  if (!is_sum || s.init.empty() || !indexed_by_axes(s) || s.axes.empty() ||
      s.reduce_guard.defined())
    refuse(
        Rule::einsum_shape,
        fmt::format("stage \"{}\" is not a sum with its own init over all of its own axes", stage),
        {}, path.loops.empty() ? "" : full_name(path, 0));
  std::vector<Padded> axes = padded_axes(s, paddings);
  std::vector<size_t> order = check_plain(path, "pad_einsum");
  if (std::none_of(axes.begin(), axes.end(), grows)) return program;
  return EinsumPadding(program, path, std::move(axes), std::move(order)).apply();
}

}  // namespace tenon
