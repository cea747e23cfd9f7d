#include "autotvm/model/nests.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

constexpr int64_t kUnknownExtent = 1024;  // at most, where nothing says how far a symbol goes

/// About how many vector instructions each function becomes (lower/math.cpp).
double instructions_of(MathFn fn) {
  switch (fn) {
    case MathFn::exp:
    case MathFn::ldexp:
      return 12;
    case MathFn::log:
      return 18;
    case MathFn::sigmoid:
    case MathFn::tanh:
      return 20;
    case MathFn::erf:
      return 26;
    default:
      return 32;
  }
}

class Collector {
 public:
  Collector(const Program& program, const std::map<std::string, int64_t>& sizes) : sizes_(sizes) {
    tree_.program = program;
    tree_.loops.emplace_back();
    tree_.stages.reserve(16);
    for (const Param& p : program.params) add_buffer(p.buffer, true);
    visit(program.body);
  }

  NestTree result() && {
    compact();
    return std::move(tree_);
  }

 private:
  double value_of(const Expr& e) const {
    if (const auto n = as_int(e)) return static_cast<double>(*n);
    if (const VarRef* v = e.as<VarRef>()) {
      const auto known = sizes_.find(v->var.name());
      if (known != sizes_.end()) return static_cast<double>(known->second);
      const auto& range = v->var.range();
      return static_cast<double>(range ? std::min(range->high, kUnknownExtent) : 1);
    }
    const Binary* b = e.as<Binary>();
    if (!b) return 1;
    const double x = value_of(b->a), y = value_of(b->b);
    switch (b->op) {
      case BinaryOp::add:
        return x + y;
      case BinaryOp::sub:
        return x - y;
      case BinaryOp::mul:
        return x * y;
      case BinaryOp::floor_div:
        return y > 0 ? std::floor(x / y) : 0;
      case BinaryOp::floor_mod:
        return y > 0 ? x - std::floor(x / y) * y : 0;
      case BinaryOp::min:
        return std::min(x, y);
      default:
        return std::max(x, y);
    }
  }

  int add_buffer(const Buffer& buffer, bool parameter) {
    NestBuffer b;
    b.node = buffer.get();
    b.parameter = parameter;
    b.element_bytes = byte_size(buffer->dtype);
    b.level = path_.size();
    if (buffer->layout.empty()) {
      for (const Expr& extent : buffer->shape) b.extents.push_back(value_of(extent));
    } else {
      for (const LayoutDim& d : buffer->layout) {
        const double n = std::ceil(value_of(buffer->shape[static_cast<size_t>(d.dim)]) /
                                   static_cast<double>(d.divide));
        b.extents.push_back(d.modulo > 0 ? std::min(n, static_cast<double>(d.modulo)) : n);
      }
    }
    tree_.buffers.push_back(std::move(b));
    return static_cast<int>(tree_.buffers.size()) - 1;
  }

  int buffer_number(const Buffer& buffer) {
    for (size_t n = tree_.buffers.size(); n-- > 0;)
      if (tree_.buffers[n].node == buffer.get()) return static_cast<int>(n);
    return add_buffer(buffer, true);  // outside of the program: nothing is known of it
  }

  void visit(const Stmt& s) {
    if (!s.defined()) return;
    if (const For* loop = s.as<For>()) return visit_loop(*loop);
    if (const Stage* stage = s.as<Stage>()) return visit_stage(*stage);
    if (const Allocate* a = s.as<Allocate>()) {
      add_buffer(a->buffer, false);
      return visit(a->body);
    }
    if (const Seq* seq = s.as<Seq>())
      for (const Stmt& part : seq->stmts) visit(part);
  }

  void visit_loop(const For& loop) {
    const double extent = value_of(loop.extent);
    if (extent == 1) return visit(loop.body);
    NestLoop l;
    l.loop = &loop;
    l.extent = extent;
    l.parent = path_.empty() ? 0 : path_.back();
    l.level = path_.size() + 1;
    tree_.loops.push_back(l);
    path_.push_back(static_cast<int>(tree_.loops.size()) - 1);
    around_.vars.push_back(loop.var.get());
    around_.extents.push_back(extent);
    visit(loop.body);
    path_.pop_back();
    around_.vars.pop_back();
    around_.extents.pop_back();
  }

  void visit_stage(const Stage& stage) {
    if (path_.size() > kMaxDraftLoops) {
      tree_.too_deep = true;
      return;
    }
    NestStage s;
    s.stage = &stage;
    s.path = path_;
    s.init_level = path_.size();
    s.guarded = stage.spatial_guard.defined() || stage.reduce_guard.defined();
    bound_.clear();
    for (const AxisBinding& a : stage.axes) {
      bound_.push_back({a.axis.var.get(), form_of(a.value, around_, {})});
      const IndexForm& form = bound_.back().form;
      const bool reduce = a.kind != AxisKind::spatial;
      s.axes.push_back({form, value_of(a.axis.extent), reduce});
      for (size_t l = 0; reduce && l < s.init_level; ++l)
        if (form.step[l] != 0) s.init_level = l;
    }
    // An index of an axis that is bound to a loop of one iteration stands still: bound_ says so.
    for (const Expr& value : stage.values) {
      guards_stage_ = guards_stage(stage, value);
      add_value(s, value);
    }
    if (stage.combiner) s.ops.simple += combine_ops(stage, s.ops);
    for (const Buffer& b : stage.outputs) s.accesses.push_back(access(b, stage.indices, true));
    tree_.stages.push_back(std::move(s));
  }

  /// What combining a point adds; a sum of products is one multiply-add. The greatest of floats
  /// looks for NaN: a comparison and a choice.
  static double combine_ops(const Stage& stage, PointOps& ops) {
    if (stage.values.size() > 1) return 6;
    const Expr* value = &stage.values[0];
    while (value->as<Select>() || value->as<Cast>())
      value = value->as<Cast>() ? &value->as<Cast>()->value : &value->as<Select>()->yes;
    const Binary* b = value->as<Binary>();
    const auto op = combiner_op(*stage.combiner);
    ops.fused = b && b->op == BinaryOp::mul && op == BinaryOp::add;
    if (ops.fused) return 0;
    const bool extreme = op == BinaryOp::max || op == BinaryOp::min;
    return extreme && is_float(value->dtype()) ? 3 : 1;
  }

  static bool depends_on_data(const Expr& condition) {
    bool data = false;
    walk(condition, [&](const Expr& e) {
      data = data || e.as<Load>();
      return !data;
    });
    return data;
  }

  /// What is added under a condition of the loops, else 0, is a stage's guard.
  static bool guards_stage(const Stage& stage, const Expr& value) {
    const Select* s = value.as<Select>();
    return s && stage.combiner && combiner_op(*stage.combiner) == BinaryOp::add && is_zero(s->no) &&
           !depends_on_data(s->condition);
  }

  static bool is_zero(const Expr& e) { return as_float(e) == 0.0 || is_const(e, 0); }

  void add_value(NestStage& s, const Expr& value) {
    walk(value, [&](const Expr& e) {
      if (const Load* l = e.as<Load>()) {
        add_load(s, *l);
        return false;
      }
      if (const Call* c = e.as<Call>()) s.ops.functions += stands(e) ? 0 : instructions_of(c->fn);
      if (const Unary* u = e.as<Unary>()) {
        if (u->op != UnaryOp::sqrt)
          s.ops.simple += 1;
        else if (!stands(e))
          s.ops.divisions += 1;
      }
      if (e.as<Cast>()) s.ops.simple += 1;
      if (const Select* c = e.as<Select>()) {
        add_choice(s, *c);
        return false;
      }
      if (const Binary* b = e.as<Binary>()) {
        if (b->op != BinaryOp::div)
          s.ops.simple += 1;
        else if (!stands(e))
          s.ops.divisions += 1;
      }
      return true;
    });
  }

  /// Does what it loads stand still while the vector loop, or the innermost one, runs? Then it is
  /// computed outside of it.
  bool stands(const Expr& e) const {
    if (path_.empty()) return false;
    size_t inner = path_.size() - 1;
    for (size_t l = 0; l < path_.size(); ++l)
      if (makes_lanes(tree_.loops[static_cast<size_t>(path_[l])].loop->mark)) inner = l;
    bool stands = true;
    walk(e, [&](const Expr& x) {
      if (x.as<VarRef>()) stands = stands && form_of(x, around_, bound_).step[inner] == 0;
      return stands;
    });
    return stands;
  }

  /// By data, both sides are computed and one is chosen. By the loops, as in padding, loads have
  /// the condition as their guard.
  void add_choice(NestStage& s, const Select& choice) {
    const size_t outside = guards_.size();
    if (depends_on_data(choice.condition)) {
      s.ops.masks += 1;
      add_value(s, choice.condition);
    } else {
      for (const Expr& part : conjuncts(choice.condition)) add_guard(part);
      if (!is_zero(choice.no)) s.ops.simple += 1;  // loads that are off give 0
    }
    add_value(s, choice.yes);
    add_value(s, choice.no);
    guards_.resize(outside);
  }

  /// Comparisons of the same index count once: both of 0 <= i && i < n.
  void add_guard(const Expr& condition) {
    const Binary* b = condition.as<Binary>();
    if (!b || b->a.type() != Type{DType::i64, 1}) return;
    const IndexForm f = form_of(b->a - b->b, around_, bound_);
    for (const IndexForm& known : guards_)
      if (same_steps(known, f)) return;
    guards_.push_back(f);
  }

  bool same_steps(const IndexForm& a, const IndexForm& b) const {
    return std::equal(a.step.begin(), a.step.begin() + static_cast<std::ptrdiff_t>(path_.size()),
                      b.step.begin());
  }

  void add_load(NestStage& s, const Load& l) {
    NestAccess a = access(l.buffer, l.indices, false);
    a.guards = guards_;
    a.guards_cut = guards_stage_;
    for (const NestAccess& known : s.accesses)
      if (known.buffer == a.buffer && same(known, a)) return;
    s.accesses.push_back(std::move(a));
  }

  bool same(const NestAccess& a, const NestAccess& b) const {
    for (size_t d = 0; d < a.at.size(); ++d) {
      if (a.at[d].constant != b.at[d].constant || a.at[d].data || b.at[d].data) return false;
      if (!same_steps(a.at[d], b.at[d])) return false;
    }
    return true;
  }

  NestAccess access(const Buffer& buffer, const std::vector<Expr>& indices, bool store) {
    NestAccess a;
    a.buffer = buffer_number(buffer);
    a.store = store;
    std::vector<IndexForm> logical;
    for (const Expr& e : indices) logical.push_back(form_of(e, around_, bound_));
    if (buffer->layout.empty()) {
      a.at = std::move(logical);
      return a;
    }
    for (const LayoutDim& d : buffer->layout) {
      IndexForm f =
          divide(logical[static_cast<size_t>(d.dim)], static_cast<double>(d.divide), path_.size());
      if (d.modulo > 0) f = remainder(f, static_cast<double>(d.modulo), path_.size());
      a.at.push_back(f);
    }
    return a;
  }

  /// Buffers of the program shrink to what is in use while the loops round them stand still.
  void compact() {
    for (NestBuffer& b : tree_.buffers) {
      if (b.parameter) continue;
      const int number = static_cast<int>(&b - tree_.buffers.data());
      std::vector<double> used(b.extents.size(), 1);
      for (const NestStage& s : tree_.stages)
        for (const NestAccess& a : s.accesses) {
          if (a.buffer != number) continue;
          for (size_t d = 0; d < used.size(); ++d)
            used[d] = std::max(used[d], a.at[d].data ? b.extents[d] : a.at[d].span[b.level] + 1.0);
        }
      for (size_t d = 0; d < used.size(); ++d) b.extents[d] = std::min(b.extents[d], used[d]);
    }
  }

  const std::map<std::string, int64_t>& sizes_;
  NestTree tree_;
  std::vector<int> path_;
  FormLoops around_;
  std::vector<BoundForm> bound_;
  std::vector<IndexForm> guards_;  // of the loads in the value at hand
  bool guards_stage_ = false;      // they are the stage's own
};

}  // namespace

double NestBuffer::bytes() const {
  double n = element_bytes;
  for (double extent : extents) n *= extent;
  return n;
}

bool NestAccess::data() const {
  return std::any_of(at.begin(), at.end(), [](const IndexForm& f) { return f.data; });
}

NestTree nests_of(const Program& program, const std::map<std::string, int64_t>& sizes) {
  return Collector(program, sizes).result();
}

}  // namespace tenon
