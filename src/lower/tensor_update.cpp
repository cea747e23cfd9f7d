#include "lower/tensor_update.h"

#include <tenon/ir/intrinsic.h>
#include <tenon/support/error.h>

#include "arith/formula_match.h"
#include "lower/lane_plan.h"

namespace tenon {
namespace {

using Kind = TensorUpdate::Kind;

/// The nest taken apart: for r in first..first+count: if condition: store.
struct Nest {
  Var group;  // undefined: the loop is gone, since it had one iteration
  int64_t first = 0, count = 1;
  Expr condition;
  const Store* store = nullptr;
};

std::optional<Nest> peel(const Stmt& s) {
  Nest nest;
  const Stmt* at = &s;
  if (const For* loop = at->as<For>()) {
    const auto first = as_int(loop->min), count = as_int(loop->extent);
    if (!first || !count || makes_lanes(loop->mark)) return std::nullopt;
    nest = {loop->var, *first, *count, {}, nullptr};
    at = &loop->body;
    if (const If* branch = at->as<If>(); branch && !branch->else_case.defined()) {
      nest.condition = branch->condition;
      at = &branch->then_case;
    }
  }
  nest.store = at->as<Store>();
  if (!nest.store || nest.store->mask.defined() || nest.store->atomic) return std::nullopt;
  return nest;
}

/// What is combined with the old value; undefined when the store is no such update.
Expr updated_with(const Store& store, const IntrinsicParts& parts) {
  if (!parts.stage->combiner) return store.value;
  const Binary* n = store.value.as<Binary>();
  if (!n || n->op != combiner_op(*parts.stage->combiner)) return {};
  const Expr old = load(store.buffer, store.indices);
  if (structural_equal(n->a, old)) return n->b;
  return structural_equal(n->b, old) ? n->a : Expr();
}

class TensorBuilder {
 public:
  TensorBuilder(const Nest& nest, const LaneContext& c, const MakeLaneExpr& lane_expr,
                Simplifier& simplifier, const Target& target)
      : nest_(nest),
        c_(c),
        lane_expr_(lane_expr),
        simplifier_(simplifier),
        target_(target),
        parts_(parts_of(*c.intrinsic)) {}

  TensorUpdate build() {
    const Expr value = updated_with(*nest_.store, parts_);
    if (!value.defined()) return no("its body does not update an element as the formula does");
    if (nest_.first < 0 || nest_.first + nest_.count > parts_.group)
      return no(fmt::format("loop \"{}\" runs to {}; the formula combines {} elements",
                            nest_.group.name(), nest_.first + nest_.count, parts_.group));
    const FormulaMatch match = match_formula(parts_, value);
    if (!match.difference.empty()) return no(match.difference);
    const auto out = form_of(nest_.store->indices[0]);
    if (!out || out->lane_stride != 1 || (nest_.group.defined() && out->group_stride != 0))
      return no("its lanes do not write neighbouring elements");
    if (!sort_conditions()) return {Kind::plain};
    if (parts_.group > 1 && group_mask_.defined() && !zeros_are_neutral(*c_.intrinsic))
      return {Kind::plain};
    return assemble(match);
  }

 private:
  static TensorUpdate no(std::string why) { return {Kind::none, std::move(why)}; }

  std::optional<ElementForm> form_of(const Expr& index) {
    auto form = element_form(simplifier_.simplify(index), c_.lane, nest_.group, simplifier_);
    // Of a loop of one iteration any stride is right: the other elements are masked.
    if (form && !nest_.group.defined()) form->group_stride = 1;
    return form;
  }

  /// Conditions of all lanes, of each lane and of each element of a group; false for one of lane
  /// and element together.
  bool sort_conditions() {
    const Expr elements =
        parts_.group > 1 ? ramp(int_imm(0), int_imm(1), static_cast<int>(parts_.group)) : Expr();
    if (elements.defined() && nest_.first > 0) group_mask_ = elements >= int_imm(nest_.first);
    if (elements.defined() && nest_.first + nest_.count < parts_.group)
      group_mask_ = both_lanes(group_mask_, elements < int_imm(nest_.first + nest_.count));
    if (!nest_.condition.defined()) return true;
    for (const Expr& part : conjuncts(nest_.condition)) {
      const bool by_lane = uses_var(part, c_.lane), by_element = uses_var(part, nest_.group);
      if (by_lane && by_element) return false;
      if (by_element && parts_.group > 1) {
        LaneContext across = c_;
        across.lane = nest_.group;
        across.lanes = static_cast<int>(parts_.group);
        across.tail = across.guard = {};
        const Expr mask = lane_expr_(across)(part);
        group_mask_ = both_lanes(group_mask_, to_lanes(mask, across.lanes));
      } else {
        const Expr converted = lane_expr_(c_)(part);
        Expr& into = converted.lanes() > 1 ? lane_mask_ : uniform_;
        into = both_lanes(into, converted);
      }
    }
    return true;
  }

  TensorUpdate assemble(const FormulaMatch& match) {
    LaneContext inner = c_;
    inner.guard = both_lanes(c_.guard, lane_mask_);
    inner.intrinsic = nullptr;
    std::vector<Expr> args;
    if (parts_.stage->combiner)
      args.push_back(lane_expr_(inner)(load(nest_.store->buffer, nest_.store->indices)));
    for (size_t k = 0; k < match.loads.size(); ++k) {
      const Load& n = *match.loads[k].as<Load>();
      const auto form = form_of(n.indices[0]);
      const OperandForm kind = form ? operand_form(*form, parts_.group) : OperandForm::scattered;
      if (kind == OperandForm::scattered || n.mask.defined())
        return no(
            fmt::format("operand {} of the formula is {}[{}], whose elements are no "
                        "neighbours in memory",
                        parts_.inputs[k]->name, n.buffer->name, print(n.indices[0])));
      args.push_back(operand(n, *form, kind, inner));
    }
    TensorUpdate out{Kind::found};
    out.variable = Var(c_.intrinsic->name, nest_.store->value.type());
    out.store = *nest_.store;
    out.store.value = out.variable;
    out.value = value_of(std::move(args));
    out.uniform = uniform_;
    out.mask = lane_mask_;
    return out;
  }

  Expr operand(const Load& n, const ElementForm& form, OperandForm kind, const LaneContext& inner) {
    const int group = static_cast<int>(parts_.group), all = c_.lanes * group;
    LaneExpr lanes = lane_expr_(inner);
    const Expr base = lanes.index(to_expr(form.base)), one = int_imm(1);
    const Expr on = both_lanes(inner.tail, inner.guard);
    if (kind == OperandForm::contiguous) {
      const Expr mask = both_lanes(spread(on), repeated(group_mask_));
      return load(n.buffer, {ramp(base, one, all)}, mask);
    }
    const Expr any = inner.guard.defined() ? any_lane(on) : Expr();
    if (kind == OperandForm::repeated) {
      const Expr mask = both_lanes(any.defined() ? to_lanes(any, group) : any, group_mask_);
      return repeated(load(n.buffer, {ramp(base, one, group)}, mask));
    }
    const Expr value = to_lanes(load(n.buffer, {base}, any), all);
    if (!group_mask_.defined()) return value;
    return select(repeated(group_mask_), value, to_lanes(zero(value.dtype()), all));
  }

  /// A condition of each lane for all elements of the lane's group.
  Expr spread(const Expr& mask) const {
    if (!mask.defined()) return mask;
    std::vector<int> from;
    for (int e = 0; e < c_.lanes * parts_.group; ++e)
      from.push_back(e / static_cast<int>(parts_.group));
    const Expr whole = to_lanes(mask, c_.lanes);
    return parts_.group == 1 ? whole : shuffle(whole, std::move(from));
  }
  /// Elements of one group for each lane.
  Expr repeated(const Expr& e) const {
    if (!e.defined()) return e;
    std::vector<int> from;
    for (int n = 0; n < c_.lanes * parts_.group; ++n)
      from.push_back(n % static_cast<int>(parts_.group));
    return shuffle(e, std::move(from));
  }

  Expr value_of(std::vector<Expr> args) const {
    const auto& known = c_.intrinsic->implementations;
    for (size_t k = 0; k < known.size(); ++k)
      if (known[k].lanes == c_.lanes && runs_on(known[k], target_))
        return intrinsic_call(c_.intrinsic, static_cast<int>(k), std::move(args));
    return expand_intrinsic(*c_.intrinsic, args);
  }

  const Nest& nest_;
  const LaneContext& c_;
  const MakeLaneExpr& lane_expr_;
  Simplifier& simplifier_;
  const Target& target_;
  IntrinsicParts parts_;
  Expr uniform_, lane_mask_, group_mask_;  // the last over one group
};

}  // namespace

TensorUpdate find_tensor_update(const Stmt& s, const LaneContext& c, const MakeLaneExpr& lane_expr,
                                Simplifier& simplifier, const Target& target) {
  const auto nest = peel(s);
  if (!nest) return {};
  return TensorBuilder(*nest, c, lane_expr, simplifier, target).build();
}

}  // namespace tenon
