#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <unordered_set>

namespace tenon {
namespace {

// The only functions that know the children of each kind: f(slot) for each Expr and each list of
// Expr of a node, in order. N is the alternative, const or not; what f may do follows from that.
template <class N, class F>
void each_child(N& node, F&& f) {
  using T = std::remove_const_t<N>;
  constexpr auto is = []<class K>(std::type_identity<K>) { return std::is_same_v<T, K>; };
  if constexpr (is(std::type_identity<Binary>())) {
    f(node.a), f(node.b);
  } else if constexpr (is(std::type_identity<Unary>())) {
    f(node.a);
  } else if constexpr (is(std::type_identity<Select>())) {
    f(node.condition), f(node.yes), f(node.no);
  } else if constexpr (is(std::type_identity<Cast>()) || is(std::type_identity<Bitcast>()) ||
                       is(std::type_identity<Broadcast>()) ||
                       is(std::type_identity<VectorReduce>()) ||
                       is(std::type_identity<Shuffle>())) {
    f(node.value);
  } else if constexpr (is(std::type_identity<Load>())) {
    f(node.indices), f(node.mask);
  } else if constexpr (is(std::type_identity<Call>()) || is(std::type_identity<IntrinsicCall>())) {
    f(node.args);
  } else if constexpr (is(std::type_identity<Ramp>())) {
    f(node.base), f(node.stride);
  } else if constexpr (is(std::type_identity<Reduce>())) {
    f(node.sources), f(node.init), f(node.condition);
  } else if constexpr (is(std::type_identity<Let>())) {
    f(node.value), f(node.body);
  } else {
    static_assert(is(std::type_identity<IntImm>()) || is(std::type_identity<FloatImm>()) ||
                  is(std::type_identity<VarRef>()));
  }
}

// The same for statements; slots are Expr, Stmt and lists of them.
template <class N, class F>
void each_part(N& node, F&& f) {
  using T = std::remove_const_t<N>;
  constexpr auto is = []<class K>(std::type_identity<K>) { return std::is_same_v<T, K>; };
  if constexpr (is(std::type_identity<For>())) {
    f(node.min), f(node.extent), f(node.body);
  } else if constexpr (is(std::type_identity<Store>())) {
    f(node.indices), f(node.value), f(node.mask);
  } else if constexpr (is(std::type_identity<Seq>())) {
    f(node.stmts);
  } else if constexpr (is(std::type_identity<If>())) {
    f(node.condition), f(node.then_case), f(node.else_case);
  } else if constexpr (is(std::type_identity<Allocate>())) {
    f(node.body);
  } else if constexpr (is(std::type_identity<Evaluate>())) {
    f(node.value);
  } else if constexpr (is(std::type_identity<LetStmt>())) {
    f(node.value), f(node.body);
  } else if constexpr (is(std::type_identity<PrefetchLine>())) {
    f(node.indices);
  } else if constexpr (is(std::type_identity<Stage>())) {
    for (auto& axis : node.axes) f(axis.value);
    f(node.spatial_guard), f(node.reduce_guard), f(node.indices), f(node.values), f(node.init);
  } else {
    static_assert(is(std::type_identity<Barrier>()));
  }
}

// Mapped children in order, on the stack where they are few: most nodes come back unchanged.
template <class T>
class Mapped {
 public:
  Mapped() = default;
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { std::destroy_n(few(), std::min(count_, kInline)); }

  void push(T value) {
    if (count_ < kInline)
      std::construct_at(few() + count_, std::move(value));
    else
      more_.push_back(std::move(value));
    ++count_;
  }
  T& next() {
    T& out = taken_ < kInline ? few()[taken_] : more_[taken_ - kInline];
    ++taken_;
    return out;
  }

 private:
  static constexpr size_t kInline = 6;
  T* few() { return reinterpret_cast<T*>(space_); }

  alignas(T) std::byte space_[kInline * sizeof(T)];
  std::vector<T> more_;
  size_t count_ = 0, taken_ = 0;
};

// First f on every child, then, only if one changed, a copy of the node with the new ones. Children
// without a function stay.
struct Mapper {
  const StmtFn* fs = nullptr;
  const ExprFn* fe = nullptr;
  bool changed = false;
  Mapped<Expr> exprs;
  Mapped<Stmt> stmts;

  Mapper(const StmtFn* on_stmt, const ExprFn* on_expr) : fs(on_stmt), fe(on_expr) {}
  void operator()(const Expr& e) {
    if (fe) take(e, fe, exprs);
  }
  void operator()(const Stmt& s) { take(s, fs, stmts); }
  template <class T>
  void operator()(const std::vector<T>& all) {
    for (const T& part : all) (*this)(part);
  }
  template <class T, class F>
  void take(const T& child, const F* f, Mapped<T>& into) {
    if (!child.defined()) return;
    T mapped = (*f)(child);
    changed |= !mapped.same_as(child);
    into.push(std::move(mapped));
  }
};

// Puts the mapped children into a copy, in the same order.
struct Replacer {
  Mapper& from;
  void operator()(Expr& e) {
    if (from.fe && e.defined()) e = std::move(from.exprs.next());
  }
  void operator()(Stmt& s) {
    if (s.defined()) s = std::move(from.stmts.next());
  }
  template <class T>
  void operator()(std::vector<T>& all) {
    for (T& part : all) (*this)(part);
  }
};

// Lanes may change under a vectorising rewrite, so the types of the plain operators are recomputed.
Expr rebuilt(const Expr& e, auto node) { return make_expr(e.type(), std::move(node)); }
Expr rebuilt(const Expr&, Binary n) { return binary(n.op, n.a, n.b); }
Expr rebuilt(const Expr&, Unary n) { return unary(n.op, n.a); }
Expr rebuilt(const Expr&, Select n) { return select(n.condition, n.yes, n.no); }
Expr rebuilt(const Expr& e, Cast n) { return cast(e.dtype(), n.value); }
Expr rebuilt(const Expr& e, Bitcast n) { return bitcast(e.dtype(), n.value); }
Expr rebuilt(const Expr&, Load n) { return load(n.buffer, std::move(n.indices), n.mask); }
Expr rebuilt(const Expr&, Call n) { return call(n.fn, std::move(n.args)); }
Expr rebuilt(const Expr&, Let n) {
  const Type type = n.body.type();
  return make_expr(type, std::move(n));
}

Stmt rebuilt(auto node) { return make_stmt(std::move(node)); }
Stmt rebuilt(Seq n) { return seq(std::move(n.stmts)); }

}  // namespace

Expr map_children(const Expr& e, const ExprFn& f) {
  return std::visit(
      [&](const auto& n) {
        Mapper mapper{nullptr, &f};
        each_child(n, mapper);
        if (!mapper.changed) return e;
        auto copy = n;
        each_child(copy, Replacer{mapper});
        return rebuilt(e, std::move(copy));
      },
      e.node().v);
}

Stmt map_children(const Stmt& s, const StmtFn& fs, const ExprFn& fe) {
  return std::visit(
      [&](const auto& n) {
        Mapper mapper{&fs, fe ? &fe : nullptr};
        each_part(n, mapper);
        if (!mapper.changed) return s;
        auto copy = n;
        each_part(copy, Replacer{mapper});
        return rebuilt(std::move(copy));
      },
      s.node().v);
}

namespace {

struct NodeKey {
  const ExprNode* key = nullptr;
};
struct NodeEntry {
  const ExprNode* key = nullptr;
  Expr value{};
};

// A table by address of a node, for look-ups only: open addressing, on the stack while it is small.
template <class Entry, size_t kSmall>
class NodeTable {
 public:
  // The place of `key`, and whether it is new.
  std::pair<Entry*, bool> insert(const ExprNode* key) {
    if ((count_ + 1) * 2 > capacity_) grow();
    Entry& entry = find(entries(), capacity_, key);
    const bool fresh = entry.key == nullptr;
    if (fresh) {
      entry.key = key;
      ++count_;
    }
    return {&entry, fresh};
  }
  Entry* find(const ExprNode* key) {
    Entry& entry = find(entries(), capacity_, key);
    return entry.key ? &entry : nullptr;
  }

 private:
  static Entry& find(Entry* table, size_t capacity, const ExprNode* key) {
    // Nodes are at least 16 bytes apart; the multiplication spreads what is left.
    size_t at = (reinterpret_cast<uintptr_t>(key) >> 4) * 0x9E3779B97F4A7C15ull >> 32;
    for (at &= capacity - 1; table[at].key && table[at].key != key;
         at = (at + 1) & (capacity - 1)) {
    }
    return table[at];
  }
  Entry* entries() { return capacity_ == kSmall ? small_.data() : large_.data(); }
  void grow() {
    std::vector<Entry> bigger(capacity_ * 4);
    for (size_t k = 0; k < capacity_; ++k) {
      Entry& old = entries()[k];
      if (old.key) find(bigger.data(), bigger.size(), old.key) = std::move(old);
    }
    capacity_ = bigger.size();
    large_ = std::move(bigger);
  }

  std::array<Entry, kSmall> small_;
  std::vector<Entry> large_;
  size_t capacity_ = kSmall, count_ = 0;
};

bool is_leaf(const Expr& e) { return e.as<IntImm>() || e.as<VarRef>(); }

// Memoises by node so that shared subtrees are rewritten once and stay shared.
class Rewriter {
 public:
  Rewriter(const StmtFn& fs, const ExprFn& fe)
      : fs_(fs),
        fe_(fe),
        on_expr_(fe ? ExprFn([this](const Expr& e) { return (*this)(e); }) : ExprFn()),
        on_stmt_([this](const Stmt& s) { return (*this)(s); }) {}

  Expr operator()(const Expr& e) {
    if (is_leaf(e)) return fe_(e);
    if (const NodeEntry* known = exprs_.find(e.get())) return known->value;
    Expr r = fe_(map_children(e, on_expr_));
    exprs_.insert(e.get()).first->value = r;
    return r;
  }
  Stmt operator()(const Stmt& s) {
    Stmt r = map_children(s, on_stmt_, on_expr_);
    return r.defined() && fs_ ? fs_(r) : r;
  }

 private:
  const StmtFn& fs_;
  const ExprFn& fe_;
  const ExprFn on_expr_;
  const StmtFn on_stmt_;
  NodeTable<NodeEntry, 16> exprs_;
};

// fs and fe: functions of a node, or null.
template <class FS, class FE>
class Walker {
 public:
  Walker(const FS& fs, const FE& fe) : fs_(fs), fe_(fe) {}

  void operator()(const Expr& e) {
    if constexpr (!std::is_same_v<FE, std::nullptr_t>) {
      if (!e.defined() || !seen_.insert(e.get()).second || !fe_(e)) return;
      if (!is_leaf(e)) std::visit([this](const auto& n) { each_child(n, *this); }, e.node().v);
    }
  }
  void operator()(const Stmt& s) {
    if (!s.defined()) return;
    if constexpr (!std::is_same_v<FS, std::nullptr_t>)
      if (!fs_(s)) return;
    std::visit([this](const auto& n) { each_part(n, *this); }, s.node().v);
  }
  template <class T>
  void operator()(const std::vector<T>& all) {
    for (const T& part : all) (*this)(part);
  }

 private:
  const FS& fs_;
  const FE& fe_;
  NodeTable<NodeKey, 64> seen_;
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
  if (!e.defined()) return;
  if (is_leaf(e))
    f(e);
  else
    Walker(nullptr, f)(e);
}

void walk(const Stmt& s, const std::function<bool(const Stmt&)>& fs,
          const std::function<bool(const Expr&)>& fe) {
  if (fs && fe)
    Walker(fs, fe)(s);
  else if (fs)
    Walker(fs, nullptr)(s);
  else if (fe)
    Walker(nullptr, fe)(s);
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

Expr substitute(const Expr& e, const VarMap& values) {
  if (!e.defined() || e.as<IntImm>()) return e;
  const ExprFn replace = replace_vars(values);
  return e.as<VarRef>() ? replace(e) : rewrite(e, replace);
}
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
  if (const VarRef* n = e.as<VarRef>()) return n->var.same_as(v);
  if (!e.defined() || is_leaf(e)) return false;
  bool found = false;
  Walker(nullptr, [&](const Expr& x) {
    if (const VarRef* n = x.as<VarRef>()) found |= n->var.same_as(v);
    return !found;
  })(e);
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

namespace {

// The statements alone: stages are leaves.
// Only what can hold a stage is looked into: no expression.
struct StageFinder {
  std::vector<StagePath> found;
  std::vector<const For*> loops;

  void operator()(const Stmt& s) {
    if (!s.defined()) return;
    if (const Stage* stage = s.as<Stage>()) {
      found.push_back({loops, stage});
    } else if (const For* loop = s.as<For>()) {
      loops.push_back(loop);
      (*this)(loop->body);
      loops.pop_back();
    } else {
      std::visit([this](const auto& n) { each_part(n, *this); }, s.node().v);
    }
  }
  void operator()(const std::vector<Stmt>& all) {
    for (const Stmt& part : all) (*this)(part);
  }
  void operator()(const Expr&) {}
  void operator()(const std::vector<Expr>&) {}
};

}  // namespace

std::vector<StagePath> stage_paths(const Stmt& s) {
  StageFinder finder;
  finder.found.reserve(8);
  finder.loops.reserve(16);
  finder(s);
  return std::move(finder.found);
}

}  // namespace tenon
