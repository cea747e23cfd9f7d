#include "schedule/plain_writes.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace tenon {
namespace {

/// The loops of an index and what each is multiplied with.
class LoopSum {
 public:
  static constexpr size_t kMost = 12;
  struct Term {
    const VarNode* loop = nullptr;
    int64_t coefficient = 0;
  };
  const Term* begin() const { return terms_.data(); }
  const Term* end() const { return terms_.data() + count_; }

  /// Adds factor * e, with the stage's axes replaced by their bindings; false for anything else
  /// than sums of variables times constants.
  bool add(const Expr& e, int64_t factor, const Stage& stage) {
    if (e.type() != Type{i64, 1}) return false;
    if (const IntImm* n = e.as<IntImm>()) return scaled(factor, n->value).has_value();
    if (const VarRef* ref = e.as<VarRef>()) {
      for (const AxisBinding& b : stage.axes)
        if (b.axis.var.same_as(ref->var)) return add(b.value, factor, stage);
      return add_term(ref->var.get(), factor);
    }
    const Binary* n = e.as<Binary>();
    if (!n) return false;
    if (n->op == BinaryOp::add) return add(n->a, factor, stage) && add(n->b, factor, stage);
    if (n->op != BinaryOp::mul) return false;
    const IntImm* constant = n->b.as<IntImm>();
    const std::optional<int64_t> product =
        constant ? scaled(factor, constant->value) : std::nullopt;
    return product && add(n->a, *product, stage);
  }

 private:
  static std::optional<int64_t> scaled(int64_t a, int64_t b) {
    int64_t out;
    return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
  }

  bool add_term(const VarNode* loop, int64_t coefficient) {
    for (size_t n = 0; n < count_; ++n)
      if (terms_[n].loop == loop)
        return !__builtin_add_overflow(terms_[n].coefficient, coefficient, &terms_[n].coefficient);
    if (count_ == terms_.size()) return false;
    terms_[count_++] = {loop, coefficient};
    return true;
  }

  std::array<Term, kMost> terms_;
  size_t count_ = 0;
};

class PlainWrites {
 public:
  PlainWrites(const StagePath& path, size_t first, size_t last, Accumulation accumulation)
      : loops_(path.loops), accumulation_(accumulation) {
    loops_.resize(last + 1);
    for (size_t n = first; n <= last; ++n)
      if (extent_of(*loops_[n]).value_or(2) > 1) tested_.push_back(n);
  }

  bool lie_apart() { return tested_.empty() || (visit(loops_.back()->body) && unread()); }

 private:
  bool visit(const Stmt& s) {
    if (!s.defined()) return true;
    if (const For* loop = s.as<For>()) {
      loops_.push_back(loop);
      const bool plain = visit(loop->body);
      loops_.pop_back();
      return plain;
    }
    if (const Allocate* a = s.as<Allocate>()) {
      private_.push_back(a->buffer.get());
      return visit(a->body);
    }
    if (const Seq* parts = s.as<Seq>())
      return std::all_of(parts->stmts.begin(), parts->stmts.end(),
                         [&](const Stmt& part) { return visit(part); });
    const Stage* stage = s.as<Stage>();
    return stage && visit_stage(*stage);
  }

  bool visit_stage(const Stage& stage) {
    stages_.push_back(&stage);
    bool writes = false;
    for (const Buffer& b : stage.outputs) {
      if (holds(private_, b)) continue;
      if (holds(written_, b)) return false;
      written_.push_back(b.get());
      writes = true;
    }
    if (!writes) return true;
    std::vector<LoopSum> sums;  // of the dimensions that are such
    for (const Expr& index : stage.indices)
      if (LoopSum sum; sum.add(index, 1, stage)) sums.push_back(sum);
    return std::all_of(tested_.begin(), tested_.end(), [&](size_t n) {
      return accumulates(stage, n) ||
             std::any_of(sums.begin(), sums.end(),
                         [&](const LoopSum& sum) { return tells_apart(sum, n); });
    });
  }

  bool accumulates(const Stage& stage, size_t n) const {
    return accumulation_ == Accumulation::allowed && binds_reduce(stage, loops_[n]->var);
  }

  /// Whether equal values of the sum have equal iterations of loop n, those outside being fixed.
  bool tells_apart(const LoopSum& sum, size_t n) const {
    struct Digit {
      int64_t coefficient, most;
    };
    std::array<Digit, LoopSum::kMost> digits;
    size_t count = 0;
    bool speaks_of_loop = false;
    for (const LoopSum::Term& t : sum) {
      size_t at = 0;
      while (at < loops_.size() && loops_[at]->var.get() != t.loop) ++at;
      const std::optional<int64_t> extent =
          at < loops_.size() ? extent_of(*loops_[at]) : std::nullopt;
      if (!extent || t.coefficient == INT64_MIN) return false;
      if (at < n || *extent <= 1 || t.coefficient == 0) continue;
      speaks_of_loop = speaks_of_loop || at == n;
      digits[count++] = {std::abs(t.coefficient), *extent - 1};
    }
    std::sort(digits.begin(), digits.begin() + count,
              [](const Digit& a, const Digit& b) { return a.coefficient < b.coefficient; });
    int64_t reached = 0;
    for (size_t d = 0; d < count; ++d) {
      int64_t step;
      if (digits[d].coefficient <= reached ||
          __builtin_mul_overflow(digits[d].coefficient, digits[d].most, &step) ||
          __builtin_add_overflow(reached, step, &reached))
        return false;
    }
    return speaks_of_loop;
  }

  /// Whether no stage reads what is written, but for a sum that reads itself.
  bool unread() const {
    if (written_.empty()) return true;
    return std::all_of(stages_.begin(), stages_.end(), [&](const Stage* stage) {
      const bool sums = std::all_of(tested_.begin(), tested_.end(),
                                    [&](size_t n) { return accumulates(*stage, n); });
      bool found = false;
      const auto look = [&](const Expr& e) {
        const Load* l = e.as<Load>();
        found = found || (l && holds(written_, l->buffer) && !(sums && writes(*stage, l->buffer)));
        return !found;
      };
      for (const auto* exprs : {&stage->indices, &stage->values, &stage->init})
        for (const Expr& e : *exprs) walk(e, look);
      return !found;
    });
  }

  static bool holds(const std::vector<const BufferNode*>& buffers, const Buffer& b) {
    return std::find(buffers.begin(), buffers.end(), b.get()) != buffers.end();
  }

  std::vector<const For*> loops_;  // from the outermost down to where visit() is
  const Accumulation accumulation_;
  std::vector<size_t> tested_;  // places of the loops that have iterations to tell apart
  std::vector<const Stage*> stages_;
  std::vector<const BufferNode*> private_, written_;
};

}  // namespace

bool writes_lie_apart(const StagePath& path, size_t first, size_t last, Accumulation accumulation) {
  return PlainWrites(path, first, last, accumulation).lie_apart();
}

}  // namespace tenon
