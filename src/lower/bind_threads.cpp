#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <array>

#include "arith/ownership.h"
#include "lower/passes.h"
#include "lower/util.h"

namespace tenon {
namespace {

constexpr size_t kAxes = 3;

size_t axis_of(const For& loop) {
  return static_cast<size_t>(loop.mark) - static_cast<size_t>(LoopMark::thread_x);
}

bool has_thread_loop(const Stmt& s) {
  bool found = false;
  walk(
      s,
      [&](const Stmt& x) {
        const For* n = x.as<For>();
        found = found || (n && is_thread(n->mark));
        return !found;
      },
      nullptr);
  return found;
}

/// The statements, maybe none.
Stmt in_order(std::vector<Stmt> parts) {
  Stmt out = seq(std::move(parts));
  return out.defined() ? out : make_stmt(Seq{});
}

struct Access {
  Buffer buffer;
  ThreadAccess at;
  bool write = false;
  bool stale = false;  // of an earlier iteration of a loop around
  std::array<bool, kAxes> axes{};
};

/// One nest at the root as code that all threads of a block run: thread loops outermost, each leaf
/// guarded where threads are spare, and barriers in between.
class Kernel {
 public:
  Kernel(std::string where, const Stmt& nest) : where_(std::move(where)) {
    walk(
        nest,
        [&](const Stmt& x) {
          const For* n = x.as<For>();
          if (n && is_thread(n->mark))
            extent_[axis_of(*n)] = std::max(extent_[axis_of(*n)], as_int(n->extent).value_or(1));
          if (n && !is_thread(n->mark)) ranges_[n->var] = range_of(*n);
          return true;
        },
        nullptr);
    for (size_t a = 0; a < kAxes; ++a) {
      thread_[a] = Var(fmt::format("thread_{}", "xyz"[a]));
      ranges_[thread_[a]] = Interval::extent(extent_[a]);
    }
    math_ = Simplifier(ranges_);
  }

  Stmt nest(const Stmt& s) {
    const For* n = s.as<For>();
    if (n && is_block(n->mark)) {
      block_vars_.push_back(n->var);
      For copy = *n;
      copy.body = nest(n->body);
      return make_stmt(std::move(copy));
    }
    if (!has_thread_loop(s) && block_vars_.empty()) return s;
    Stmt body = flow(s, {});
    for (size_t a = 0; a < kAxes; ++a) {
      if (extent_[a] < 2) continue;
      For loop{thread_[a], int_imm(0), int_imm(extent_[a]), AxisKind::spatial, LoopMark::serial,
               {},         body};
      loop.mark = static_cast<LoopMark>(static_cast<size_t>(LoopMark::thread_x) + a);
      body = make_stmt(std::move(loop));
    }
    for (size_t k = hoisted_.size(); k-- > 0;) body = make_stmt(Allocate{hoisted_[k], body});
    return body;
  }

 private:
  /// What holds on the way to a statement: the thread axes it is under, and which threads run it.
  struct Way {
    std::array<bool, kAxes> axes{};
    std::vector<Expr> guards;
    VarMap threads;  // thread loops' variables -> the axes'
  };

  static Interval range_of(const For& n) {
    const auto low = as_int(n.min), extent = as_int(n.extent);
    if (!low || !extent || *extent < 1) return Interval::all();
    return {*low, *low + *extent - 1};
  }

  Stmt flow(const Stmt& s, const Way& way) {
    if (const Seq* n = s.as<Seq>()) {
      std::vector<Stmt> parts;
      for (const Stmt& part : n->stmts) parts.push_back(flow(part, way));
      return in_order(std::move(parts));
    }
    if (!has_thread_loop(s)) return leaf(s, way);
    if (const For* n = s.as<For>())
      return is_thread(n->mark) ? thread_loop(*n, way) : serial_loop(*n, way);
    if (const Allocate* n = s.as<Allocate>()) {
      const bool own = n->buffer->scope == Scope::local || n->buffer->scope == Scope::reg;
      if (own) return make_stmt(Allocate{n->buffer, own_memory(n->buffer, n->body, way)});
      hoist(n->buffer);
      return flow(n->body, way);
    }
    throw InternalError("bind_threads: a branch or let stands round thread loops\n" + print(s));
  }

  Stmt own_memory(const Buffer& b, const Stmt& body, const Way& way) {
    own_.push_back(b);
    return flow(body, way);
  }

  /// One for the block: it lives round the thread loops.
  void hoist(const Buffer& b) {
    if (!const_shape(b->shape))
      throw UserError(fmt::format(
          "lower error in {}: buffer {} is allocated in a kernel and needs a constant size\n  try: "
          "allocate it outside the kernel, or split the symbolic loop by a constant",
          where_, b->name));
    hoisted_.push_back(b);
  }

  Stmt thread_loop(const For& n, Way way) {
    const size_t a = axis_of(n);
    if (as_int(n.extent).value_or(1) < 1) return make_stmt(Seq{});
    way.axes[a] = true;
    way.threads[n.var] = extent_[a] > 1 ? Expr(thread_[a]) : int_imm(0);
    if (as_int(n.extent).value_or(0) < extent_[a])
      way.guards.push_back(Expr(thread_[a]) < n.extent);
    return flow(n.body, way);
  }

  /// All threads of the block run it, so barriers may stand inside. What its end leaves meets what
  /// its start does in the next iteration.
  Stmt serial_loop(const For& n, const Way& way) {
    For copy = n;
    copy.min = substitute(n.min, way.threads);
    copy.extent = substitute(n.extent, way.threads);
    for (const Var& t : thread_)
      if (uses_var(copy.extent, t) || uses_var(copy.min, t))
        throw UserError(fmt::format(
            "lower error in {}: loop \"{}\" round thread loops runs a different number of times in "
            "each thread, and a barrier inside would not be reached by all\n  try: bind the loops "
            "inside it differently",
            where_, n.var.name()));
    const std::vector<Access> before = pending_;
    around_.push_back(n.var);
    copy.body = flow(n.body, way);
    for (Access& a : pending_) a.stale = true;
    copy.body = again(copy.body);
    around_.pop_back();
    for (Access& a : pending_) a.stale = true;
    if (as_int(n.extent).value_or(0) < 1)
      pending_.insert(pending_.end(), before.begin(), before.end());
    return make_stmt(std::move(copy));
  }

  /// The leaf (no Seq) under its guards; a barrier first where it needs one.
  Stmt leaf(const Stmt& s, const Way& way) {
    std::vector<Expr> guards = way.guards;
    for (size_t a = 0; a < kAxes; ++a)
      if (!way.axes[a] && extent_[a] > 1) guards.push_back(Expr(thread_[a]) == int_imm(0));
    Stmt body = substitute(s, way.threads);
    if (const Expr guard = conjunction(guards); guard.defined())
      body = make_stmt(If{guard, body, {}});
    leaves_.emplace_back(body, accesses_of(body, way));
    return with_barrier(body, leaves_.back().second);
  }

  Stmt with_barrier(const Stmt& body, const std::vector<Access>& all) {
    bool needed = false;
    for (const Access& now : all)
      for (const Access& before : pending_) needed = needed || meet(before, now);
    if (needed) pending_.clear();
    pending_.insert(pending_.end(), all.begin(), all.end());
    return needed ? seq({make_stmt(Barrier{}), body}) : body;
  }

  /// The barriers that the second iteration of a loop needs as well.
  Stmt again(const Stmt& s) {
    for (const auto& [leaf, accesses] : leaves_)
      if (leaf.same_as(s)) return with_barrier(s, accesses);
    if (s.as<Barrier>()) {
      pending_.clear();
      return s;
    }
    if (const For* n = s.as<For>()) {
      For copy = *n;
      copy.body = again(n->body);
      for (Access& a : pending_) a.stale = true;
      return make_stmt(std::move(copy));
    }
    if (const Seq* n = s.as<Seq>()) {
      std::vector<Stmt> parts;
      for (const Stmt& part : n->stmts) parts.push_back(again(part));
      return in_order(std::move(parts));
    }
    if (const Allocate* n = s.as<Allocate>()) return make_stmt(Allocate{n->buffer, again(n->body)});
    throw InternalError("bind_threads: a statement that is neither a leaf nor round one\n" +
                        print(s));
  }

  std::vector<Access> accesses_of(const Stmt& s, const Way& way) {
    std::vector<Buffer> own = own_;
    walk(
        s,
        [&](const Stmt& x) {
          if (const Allocate* n = x.as<Allocate>()) own.push_back(n->buffer);
          if (const For* n = x.as<For>()) math_.set_range(n->var, range_of(*n));
          return true;
        },
        nullptr);
    std::vector<Access> out;
    const auto note = [&](const Buffer& b, const std::vector<Expr>& at, bool write) {
      if (std::find(own.begin(), own.end(), b) != own.end()) return;
      Access a{b, {at}, write, false, {}};
      for (size_t k = 0; k < kAxes; ++k) a.axes[k] = way.axes[k] && extent_[k] > 1;
      out.push_back(std::move(a));
    };
    walk(
        s,
        [&](const Stmt& x) {
          if (const Store* n = x.as<Store>()) note(n->buffer, n->indices, true);
          return true;
        },
        [&](const Expr& e) {
          if (const Load* n = e.as<Load>()) note(n->buffer, n->indices, false);
          return true;
        });
    return out;
  }

  /// May two threads meet on an element, one of them writing?
  bool meet(const Access& before, const Access& now) {
    if (!(before.buffer == now.buffer) || (!before.write && !now.write)) return false;
    if (before.axes != now.axes) return true;
    std::vector<Var> threads, fixed = block_vars_;
    for (size_t a = 0; a < kAxes; ++a)
      if (now.axes[a]) threads.push_back(thread_[a]);
    if (!before.stale) fixed.insert(fixed.end(), around_.begin(), around_.end());
    return !same_thread_only(before.at, now.at, threads, fixed, math_);
  }

  std::string where_;
  std::array<int64_t, kAxes> extent_{1, 1, 1};
  std::array<Var, kAxes> thread_;
  VarRanges ranges_;
  Simplifier math_;
  std::vector<Var> block_vars_, around_;
  std::vector<Buffer> hoisted_, own_;
  std::vector<std::pair<Stmt, std::vector<Access>>> leaves_;
  std::vector<Access> pending_;  // since the last barrier
};

Stmt root(const std::string& where, const Stmt& s) {
  if (const Allocate* n = s.as<Allocate>())
    return make_stmt(Allocate{n->buffer, root(where, n->body)});
  if (const Seq* n = s.as<Seq>()) {
    std::vector<Stmt> parts;
    for (const Stmt& part : n->stmts) parts.push_back(root(where, part));
    return seq(std::move(parts));
  }
  return Kernel(where, s).nest(s);
}

}  // namespace

Program bind_threads(const Program& program) {
  Program out = program;
  if (program.body.defined()) out.body = root(program.name, program.body);
  return out;
}

}  // namespace tenon
