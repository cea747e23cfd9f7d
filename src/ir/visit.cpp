#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <unordered_set>

namespace tenon {
namespace {

// Collects whether any child changed, so that an unchanged node can be returned as it is.
struct Mapper {
  const ExprFn& f;
  bool changed = false;

  Expr operator()(const Expr& e) {
    if (!e.defined()) return e;
    Expr r = f(e);
    changed |= !r.same_as(e);
    return r;
  }
  std::vector<Expr> operator()(const std::vector<Expr>& es) {
    std::vector<Expr> out;
    out.reserve(es.size());
    for (const Expr& e : es) out.push_back((*this)(e));
    return out;
  }
};

template <class T>
Expr rebuilt(const Expr& e, const Mapper& m, T node) {
  return m.changed ? make_expr(e.type(), std::move(node)) : e;
}

Stage map_stage(const Stage& s, Mapper& m) {
  Stage out = s;
  for (AxisBinding& a : out.axes) a.value = m(a.value);
  out.spatial_guard = m(s.spatial_guard);
  out.reduce_guard = m(s.reduce_guard);
  out.indices = m(s.indices);
  out.values = m(s.values);
  out.init = m(s.init);
  return out;
}

}  // namespace

Expr map_children(const Expr& e, const ExprFn& f) {
  Mapper m{f};
  // Lanes may change under a vectorising rewrite, so the types of the plain operators are
  // recomputed.
  return std::visit(overloaded{
                        [&](const IntImm&) { return e; },
                        [&](const FloatImm&) { return e; },
                        [&](const VarRef&) { return e; },
                        [&](const Binary& n) {
                          Expr a = m(n.a), b = m(n.b);
                          return m.changed ? binary(n.op, a, b) : e;
                        },
                        [&](const Unary& n) {
                          Expr a = m(n.a);
                          return m.changed ? unary(n.op, a) : e;
                        },
                        [&](const Select& n) {
                          Expr c = m(n.condition), y = m(n.yes), z = m(n.no);
                          return m.changed ? select(c, y, z) : e;
                        },
                        [&](const Cast& n) {
                          Expr v = m(n.value);
                          return m.changed ? cast(e.dtype(), v) : e;
                        },
                        [&](const Bitcast& n) {
                          Expr v = m(n.value);
                          return m.changed ? bitcast(e.dtype(), v) : e;
                        },
                        [&](const Load& n) {
                          auto indices = m(n.indices);
                          Expr mask = m(n.mask);
                          return m.changed ? load(n.buffer, std::move(indices), mask) : e;
                        },
                        [&](const Call& n) {
                          auto args = m(n.args);
                          return m.changed ? call(n.fn, std::move(args)) : e;
                        },
                        [&](const Ramp& n) {
                          Expr base = m(n.base), stride = m(n.stride);
                          return rebuilt(e, m, Ramp{base, stride, n.lanes});
                        },
                        [&](const Broadcast& n) {
                          Expr v = m(n.value);
                          return rebuilt(e, m, Broadcast{v, n.lanes});
                        },
                        [&](const Reduce& n) {
                          Reduce r = n;
                          r.sources = m(n.sources);
                          r.init = m(n.init);
                          r.condition = m(n.condition);
                          return rebuilt(e, m, std::move(r));
                        },
                        [&](const Let& n) {
                          Expr value = m(n.value), body = m(n.body);
                          return m.changed ? make_expr(body.type(), Let{n.var, value, body}) : e;
                        },
                        [&](const VectorReduce& n) {
                          Expr v = m(n.value);
                          return rebuilt(e, m, VectorReduce{n.op, v});
                        },
                        [&](const Shuffle& n) {
                          Expr v = m(n.value);
                          return rebuilt(e, m, Shuffle{v, n.lanes});
                        },
                        [&](const IntrinsicCall& n) {
                          auto args = m(n.args);
                          return rebuilt(e, m, IntrinsicCall{n.intrinsic, n.implementation, args});
                        },
                    },
                    e.node().v);
}

Stmt map_children(const Stmt& s, const StmtFn& fs, const ExprFn& fe) {
  Mapper m{fe};
  auto stmt = [&](const Stmt& child) {
    if (!child.defined()) return child;
    Stmt r = fs(child);
    m.changed |= !r.same_as(child);
    return r;
  };
  auto keep = [&](auto node) { return m.changed ? make_stmt(std::move(node)) : s; };
  return std::visit(overloaded{
                        [&](const For& n) {
                          For r = n;
                          r.min = m(n.min);
                          r.extent = m(n.extent);
                          r.body = stmt(n.body);
                          return keep(std::move(r));
                        },
                        [&](const Store& n) {
                          Store r = n;
                          r.indices = m(n.indices);
                          r.value = m(n.value);
                          r.mask = m(n.mask);
                          return keep(std::move(r));
                        },
                        [&](const Seq& n) {
                          std::vector<Stmt> out;
                          for (const Stmt& c : n.stmts) out.push_back(stmt(c));
                          return m.changed ? seq(std::move(out)) : s;
                        },
                        [&](const If& n) {
                          If r{m(n.condition), stmt(n.then_case), stmt(n.else_case)};
                          return keep(std::move(r));
                        },
                        [&](const Allocate& n) {
                          Allocate r{n.buffer, stmt(n.body)};
                          return keep(std::move(r));
                        },
                        [&](const Evaluate& n) { return keep(Evaluate{m(n.value)}); },
                        [&](const LetStmt& n) {
                          LetStmt r{n.var, m(n.value), stmt(n.body)};
                          return keep(std::move(r));
                        },
                        [&](const Barrier&) { return s; },
                        [&](const PrefetchLine& n) {
                          PrefetchLine r{n.buffer, m(n.indices)};
                          return keep(std::move(r));
                        },
                        [&](const Stage& n) { return keep(map_stage(n, m)); },
                    },
                    s.node().v);
}

namespace {

// Memoises by node so that shared subtrees are rewritten once and stay shared.
class Rewriter {
 public:
  Rewriter(const StmtFn& fs, const ExprFn& fe) : fs_(fs), fe_(fe) {}

  Expr operator()(const Expr& e) {
    if (auto it = exprs_.find(e.get()); it != exprs_.end()) return it->second;
    Expr r = fe_(map_children(e, [this](const Expr& c) { return (*this)(c); }));
    exprs_.emplace(e.get(), r);
    return r;
  }
  Stmt operator()(const Stmt& s) {
    Stmt r = map_children(
        s, [this](const Stmt& c) { return (*this)(c); },
        [this](const Expr& e) { return fe_ ? (*this)(e) : e; });
    return r.defined() && fs_ ? fs_(r) : r;
  }

 private:
  const StmtFn& fs_;
  const ExprFn& fe_;
  std::unordered_map<const ExprNode*, Expr> exprs_;
};

class Walker {
 public:
  Walker(const std::function<bool(const Stmt&)>& fs, const std::function<bool(const Expr&)>& fe)
      : fs_(fs), fe_(fe) {}

  Expr operator()(const Expr& e) {
    if (fe_ && seen_.insert(e.get()).second && fe_(e)) {
      map_children(e, [this](const Expr& c) { return (*this)(c); });
    }
    return e;
  }
  Stmt operator()(const Stmt& s) {
    if (!fs_ || fs_(s)) {
      map_children(
          s, [this](const Stmt& c) { return (*this)(c); },
          [this](const Expr& e) { return (*this)(e); });
    }
    return s;
  }

 private:
  const std::function<bool(const Stmt&)>& fs_;
  const std::function<bool(const Expr&)>& fe_;
  std::unordered_set<const ExprNode*> seen_;
};

}  // namespace

Expr rewrite(const Expr& e, const ExprFn& f) {
  const StmtFn none;
  return e.defined() ? Rewriter(none, f)(e) : e;
}

Stmt rewrite(const Stmt& s, const StmtFn& fs, const ExprFn& fe) {
  return s.defined() ? Rewriter(fs, fe)(s) : s;
}

void walk(const Expr& e, const std::function<bool(const Expr&)>& f) {
  const std::function<bool(const Stmt&)> none;
  if (e.defined()) Walker(none, f)(e);
}

void walk(const Stmt& s, const std::function<bool(const Stmt&)>& fs,
          const std::function<bool(const Expr&)>& fe) {
  if (s.defined()) Walker(fs, fe)(s);
}

namespace {

ExprFn replace_vars(const VarMap& values) {
  return [&values](const Expr& e) {
    const VarRef* ref = e.as<VarRef>();
    if (!ref) return e;
    auto it = values.find(ref->var);
    return it == values.end() ? e : it->second;
  };
}

ExprFn replace_loads(const BufferMap& buffers) {
  return [&buffers](const Expr& e) {
    const Load* n = e.as<Load>();
    if (!n) return e;
    auto it = buffers.find(n->buffer);
    return it == buffers.end() ? e : make_expr(e.type(), Load{it->second, n->indices, n->mask});
  };
}

}  // namespace

Expr substitute(const Expr& e, const VarMap& values) { return rewrite(e, replace_vars(values)); }
Stmt substitute(const Stmt& s, const VarMap& values) {
  return rewrite(s, nullptr, replace_vars(values));
}

Expr replace_buffers(const Expr& e, const BufferMap& buffers) {
  return rewrite(e, replace_loads(buffers));
}

Stmt replace_buffers(const Stmt& s, const BufferMap& buffers) {
  auto mapped = [&](Buffer& b) {
    auto it = buffers.find(b);
    if (it == buffers.end()) return false;
    b = it->second;
    return true;
  };
  StmtFn on_stmt = [&](const Stmt& s) -> Stmt {
    if (const Store* n = s.as<Store>()) {
      Store r = *n;
      return mapped(r.buffer) ? make_stmt(std::move(r)) : s;
    }
    if (const Allocate* n = s.as<Allocate>()) {
      Allocate r = *n;
      return mapped(r.buffer) ? make_stmt(std::move(r)) : s;
    }
    if (const PrefetchLine* n = s.as<PrefetchLine>()) {
      PrefetchLine r = *n;
      return mapped(r.buffer) ? make_stmt(std::move(r)) : s;
    }
    if (const Stage* n = s.as<Stage>()) {
      Stage r = *n;
      bool changed = false;
      for (Buffer& b : r.outputs) changed |= mapped(b);
      return changed ? make_stmt(std::move(r)) : s;
    }
    return s;
  };
  return rewrite(s, on_stmt, replace_loads(buffers));
}

std::vector<Var> free_vars(const Expr& e) {
  std::vector<Var> found;
  std::unordered_set<const VarNode*> seen, bound;
  walk(e, [&](const Expr& x) {
    if (const Let* n = x.as<Let>()) bound.insert(n->var.get());
    if (const Reduce* n = x.as<Reduce>()) {
      for (const Axis& a : n->axes) bound.insert(a.var.get());
    }
    if (const VarRef* n = x.as<VarRef>();
        n && !bound.count(n->var.get()) && seen.insert(n->var.get()).second) {
      found.push_back(n->var);
    }
    return true;
  });
  return found;
}

bool uses_var(const Expr& e, const Var& v) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    if (const VarRef* n = x.as<VarRef>()) found |= n->var.same_as(v);
    return !found;
  });
  return found;
}

bool uses_var(const Stmt& s, const Var& v) {
  bool found = false;
  walk(
      s, [&](const Stmt&) { return !found; },
      [&](const Expr& x) {
        if (const VarRef* n = x.as<VarRef>()) found |= n->var.same_as(v);
        return !found;
      });
  return found;
}

std::vector<StagePath> stage_paths(const Stmt& s) {
  std::vector<StagePath> out;
  std::vector<const For*> loops;
  std::function<void(const Stmt&)> visit = [&](const Stmt& at) {
    if (!at.defined()) return;
    const For* loop = at.as<For>();
    if (loop) loops.push_back(loop);
    if (const Stage* stage = at.as<Stage>()) out.push_back({loops, stage});
    map_children(
        at,
        [&](const Stmt& c) {
          visit(c);
          return c;
        },
        [](const Expr& e) { return e; });
    if (loop) loops.pop_back();
  };
  visit(s);
  return out;
}

}  // namespace tenon
