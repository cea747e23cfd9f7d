#include "codegen/llvm/plan.h"

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace tenon {
namespace {

constexpr int64_t kAlign = 64;

Expr larger(const Expr& a, const Expr& b) {
  if (!a.defined() || structural_equal(a, b)) return b;
  const auto x = as_int(a), y = as_int(b);
  if (x && y) return *x < *y ? b : a;
  if (x == 0) return b;
  return y == 0 ? a : max(a, b);
}

/// The first aligned place at or after `bytes`.
Expr aligned(const Expr& bytes) {
  if (const auto value = as_int(bytes)) return int_imm((*value + kAlign - 1) / kAlign * kAlign);
  return floor_div(bytes + int_imm(kAlign - 1), int_imm(kAlign)) * int_imm(kAlign);
}

Expr sum_of(const Expr& a, const Expr& b) { return is_const(a, 0) ? b : a + b; }

Expr bytes_of(const BufferNode& b) {
  Expr out = int_imm(byte_size(b.dtype));
  for (const Expr& extent : b.shape) out = is_const(out, 1) ? extent : out * extent;
  return out;
}

/// Stack-like: an Allocate stands behind those around it, siblings start at the same place. A
/// subtree that stands twice in the program keeps the higher of its two places.
class WorkspacePlanner {
 public:
  WorkspacePlanner(CodePlan& plan, bool reuse) : plan_(plan), reuse_(reuse) {}

  void visit(const Stmt& s, const Expr& offset, bool parallel) {
    if (!s.defined()) return;
    std::visit(overloaded{[&](const For& n) {
                            const bool enters = n.mark == LoopMark::parallel && !parallel;
                            visit(n.body, enters ? int_imm(0) : offset, parallel || enters);
                          },
                          [&](const Seq& n) {
                            for (const Stmt& part : n.stmts) visit(part, offset, parallel);
                          },
                          [&](const If& n) {
                            visit(n.then_case, offset, parallel);
                            visit(n.else_case, offset, parallel);
                          },
                          [&](const Allocate& n) { allocate(n, offset, parallel); },
                          [&](const LetStmt& n) { visit(n.body, offset, parallel); },
                          [](const Store&) {}, [](const Evaluate&) {}, [](const Barrier&) {},
                          [](const PrefetchLine&) {}, [](const Stage&) {}},
               s.node().v);
  }

 private:
  void allocate(const Allocate& n, const Expr& offset, bool parallel) {
    const BufferNode& b = *n.buffer;
    if (in_registers(b)) return visit(n.body, offset, parallel);
    WorkspaceSlot& slot = plan_.slots[&b];
    Expr& total = parallel ? plan_.bytes_per_worker : plan_.shared_bytes;
    slot.offset = larger(slot.offset, reuse_ ? offset : total);
    slot.bytes = bytes_of(b);
    slot.per_worker = parallel;
    slot.around.insert(around_.begin(), around_.end());
    const Expr end = aligned(sum_of(slot.offset, slot.bytes));
    total = larger(total, end);
    around_.push_back(&b);
    visit(n.body, end, parallel);
    around_.pop_back();
  }

  CodePlan& plan_;
  const bool reuse_;
  std::vector<const BufferNode*> around_;
};

/// Variables that reach the index of a register buffer, through lets too, and the lanes used on
/// each buffer.
class RegisterUses {
 public:
  RegisterUses(const Stmt& body, CodePlan& plan) : plan_(plan) {
    collect_lets(body);
    walk(
        body,
        [&](const Stmt& s) {
          if (const Store* n = s.as<Store>()) note(*n->buffer, n->indices[0], n->value.lanes());
          return true;
        },
        [&](const Expr& e) {
          if (const Load* n = e.as<Load>()) note(*n->buffer, n->indices[0], e.lanes());
          return true;
        });
  }

  bool contains(const Var& v) const { return vars_.count(v.get()) > 0; }

 private:
  void collect_lets(const Stmt& body) {
    walk(
        body,
        [&](const Stmt& s) {
          if (const LetStmt* n = s.as<LetStmt>()) lets_[n->var.get()] = n->value;
          return true;
        },
        [&](const Expr& e) {
          if (const Let* n = e.as<Let>()) lets_[n->var.get()] = n->value;
          return true;
        });
  }

  void note(const BufferNode& b, const Expr& index, int lanes) {
    if (!in_registers(b)) return;
    int& width = plan_.register_lanes[&b];
    width = width == 0 ? lanes : std::gcd(width, lanes);
    add_vars(index);
  }

  void add_vars(const Expr& e) {
    for (const Var& v : free_vars(e)) {
      if (!vars_.insert(v.get()).second) continue;
      if (auto let = lets_.find(v.get()); let != lets_.end()) add_vars(let->second);
    }
  }

  CodePlan& plan_;
  std::unordered_map<const VarNode*, Expr> lets_;
  std::unordered_set<const VarNode*> vars_;
};

/// About how many machine instructions an expression becomes; scalar index arithmetic mostly folds
/// away, and of a select whose condition is `settled` one side is left.
int64_t instructions(const Expr& e, const std::function<bool(const Expr&)>& settled) {
  int64_t count = 0;
  walk(e, [&](const Expr& n) {
    if (const Select* s = n.as<Select>(); s && settled(s->condition)) {
      count += std::max(instructions(s->yes, settled), instructions(s->no, settled));
      return false;
    }
    const bool index = n.lanes() == 1 && n.dtype() == DType::i64;
    if (const Load* l = n.as<Load>()) {
      count += in_registers(*l->buffer) ? 0 : 1;
      return l->mask.defined();
    }
    if (const Call* c = n.as<Call>())
      count += c->fn == MathFn::ldexp ? 1 : 12 * n.lanes();
    else if (n.as<Binary>() || n.as<Select>() || n.as<Unary>() || n.as<Cast>())
      count += index ? 0 : 1;
    else if (n.as<Broadcast>() || n.as<Shuffle>() || n.as<IntrinsicCall>())
      count += 1;
    else if (n.as<VectorReduce>())
      count += 8;
    return true;
  });
  return count;
}

/// Chooses the loops that codegen expands, from the inside out.
class UnrollPlanner {
 public:
  UnrollPlanner(const Stmt& body, CodePlan& plan, const RegisterUses& uses, bool optional)
      : plan_(plan), uses_(uses), optional_(optional) {
    walk(
        body,
        [&](const Stmt& s) {
          const For* n = s.as<For>();
          if (n && optional && n->mark == LoopMark::unroll) expanded_.insert(n->var.get());
          return true;
        },
        [](const Expr&) { return false; });
  }

  /// Instructions of `s`; nothing when a loop that must be expanded is too large.
  int64_t cost(const Stmt& s) {
    if (!s.defined()) return 0;
    if (auto known = costs_.find(s.get()); known != costs_.end()) return known->second;
    const int64_t result = std::visit(
        overloaded{
            [&](const For& n) { return loop_cost(n); },
            [&](const Seq& n) {
              int64_t sum = 0;
              for (const Stmt& part : n.stmts) sum += cost(part);
              return sum;
            },
            [&](const If& n) {
              return 2 + count(n.condition) + cost(n.then_case) + cost(n.else_case);
            },
            [&](const Allocate& n) { return cost(n.body); },
            [&](const LetStmt& n) { return count(n.value) + cost(n.body); },
            [&](const Store& n) { return count(n.value) + (in_registers(*n.buffer) ? 0 : 1); },
            [&](const Evaluate& n) { return count(n.value); },
            [](const Barrier&) { return int64_t{0}; },
            [](const PrefetchLine&) { return int64_t{1}; },
            [](const Stage&) { return int64_t{0}; }},
        s.node().v);
    costs_[s.get()] = result;
    return result;
  }

  const std::string& failure() const { return failure_; }

 private:
  int64_t count(const Expr& e) {
    return instructions(e, [&](const Expr& condition) { return is_settled(condition); });
  }

  /// Speaks of the loops that are to be expanded alone: known in each copy.
  bool is_settled(const Expr& condition) {
    const std::vector<Var> vars = free_vars(condition);
    bool loads = false;
    walk(condition, [&](const Expr& n) {
      loads = loads || n.as<Load>();
      return !loads;
    });
    return !loads && std::all_of(vars.begin(), vars.end(), [&](const Var& v) {
      return uses_.contains(v) || expanded_.count(v.get()) > 0;
    });
  }

  int64_t loop_cost(const For& n) {
    const int64_t body = std::max<int64_t>(1, cost(n.body));
    const bool needed = uses_.contains(n.var);
    const auto extent = as_int(n.extent);
    const bool wanted = optional_ && n.mark == LoopMark::unroll;
    if (!needed && !(wanted && extent)) return body + 3;
    if (!extent) {
      throw UserError(fmt::format(
          "code generation: loop \"{}\" indexes a register buffer, so it must be unrolled, but its "
          "extent {} is "
          "not a constant\n  try: put the buffer in global scope, or split the loop by a constant",
          n.var.name(), print(n.extent)));
    }
    const bool fits =
        *extent <= kMaxUnrolledIterations && *extent * body <= kMaxUnrolledInstructions;
    if (!fits && !needed) return body + 3;
    if (!fits && failure_.empty()) {
      failure_ = fmt::format(
          "code generation: loop \"{}\" indexes a register buffer, so it must be unrolled: {} "
          "iterations of about "
          "{} instructions; at most {} iterations and {} instructions are expanded\n  try: a "
          "smaller register tile, "
          "or global scope for the buffer",
          n.var.name(), *extent, body, kMaxUnrolledIterations, kMaxUnrolledInstructions);
    }
    plan_.unrolled.insert(&n);
    return *extent * body;
  }

  CodePlan& plan_;
  const RegisterUses& uses_;
  const bool optional_;
  std::unordered_set<const VarNode*> expanded_;  // loops marked unroll, where such are expanded
  std::unordered_map<const StmtNode*, int64_t> costs_;
  std::string failure_;
};

void plan_unrolling(const Stmt& body, const RegisterUses& uses, CodePlan& plan) {
  for (bool optional : {true, false}) {
    plan.unrolled.clear();
    UnrollPlanner planner(body, plan, uses, optional);
    planner.cost(body);
    if (planner.failure().empty()) return;
    if (!optional) throw UserError(planner.failure());
  }
}

}  // namespace

bool CodePlan::symbolic_workspace() const {
  return !as_int(shared_bytes) || !as_int(bytes_per_worker);
}

bool CodePlan::may_overlap(const BufferNode* a, const BufferNode* b) const {
  const auto x = slots.find(a), y = slots.find(b);
  if (x == slots.end() || y == slots.end()) return false;
  const WorkspaceSlot &s = x->second, &t = y->second;
  if (s.per_worker != t.per_worker || s.around.count(b) || t.around.count(a)) return false;
  const auto s_at = as_int(s.offset), s_bytes = as_int(s.bytes);
  const auto t_at = as_int(t.offset), t_bytes = as_int(t.bytes);
  const bool s_first = s_at && s_bytes && t_at && *s_at + *s_bytes <= *t_at;
  const bool t_first = t_at && t_bytes && s_at && *t_at + *t_bytes <= *s_at;
  return !s_first && !t_first;
}

CodePlan plan_code(const Program& flat, bool reuse_workspace) {
  CodePlan plan;
  plan.shared_bytes = plan.bytes_per_worker = int_imm(0);
  plan.dims = flat.symbols;
  WorkspacePlanner(plan, reuse_workspace).visit(flat.body, int_imm(0), false);
  const RegisterUses uses(flat.body, plan);
  plan_unrolling(flat.body, uses, plan);
  return plan;
}

}  // namespace tenon
