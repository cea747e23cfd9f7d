#include "arith/formula_match.h"

#include <fmt/format.h>
#include <tenon/ir/visit.h>

#include <algorithm>

namespace tenon {
namespace {

bool commutes(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::max:
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::bit_and:
    case BinaryOp::bit_or:
    case BinaryOp::bit_xor:
      return true;
    default:
      return false;
  }
}

std::vector<Expr> children(const Expr& e) {
  std::vector<Expr> out;
  map_children(e, [&](const Expr& part) {
    out.push_back(part);
    return part;
  });
  return out;
}

/// Whether two nodes of one kind differ in nothing but their operands.
bool same_operation(const Expr& a, const Expr& b) {
  if (a.node().v.index() != b.node().v.index() || a.type() != b.type()) return false;
  if (const Binary* n = a.as<Binary>()) return n->op == b.as<Binary>()->op;
  if (const Unary* n = a.as<Unary>()) return n->op == b.as<Unary>()->op;
  if (const Call* n = a.as<Call>()) return n->fn == b.as<Call>()->fn;
  if (a.as<Select>() || a.as<Cast>() || a.as<Bitcast>()) return true;
  return structural_equal(a, b);
}

class Matcher {
 public:
  explicit Matcher(const IntrinsicParts& parts) : inputs_(parts.inputs) {
    out_.loads.resize(inputs_.size());
  }

  FormulaMatch run(const Expr& pattern, const Expr& value) {
    if (match(pattern, value)) out_.difference.clear();
    return std::move(out_);
  }

 private:
  bool differs(const std::string& why) {
    if (out_.difference.empty()) out_.difference = why;
    return false;
  }

  bool match(const Expr& pattern, const Expr& value) {
    if (const Load* n = pattern.as<Load>()) return bind(*n, value);
    if (!same_operation(pattern, value))
      return differs(fmt::format("the formula has {} ({}) where the stage has {} ({})",
                                 print(pattern), name(pattern.dtype()), print(value),
                                 name(value.dtype())));
    const std::vector<Expr> a = children(pattern), b = children(value);
    const std::vector<Expr> before = out_.loads;
    if (match_all(a, b)) return true;
    const Binary* n = pattern.as<Binary>();
    if (!n || !commutes(n->op)) return false;
    out_.loads = before;
    return match_all(a, {b[1], b[0]});
  }

  bool match_all(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    if (a.size() != b.size()) return false;
    for (size_t k = 0; k < a.size(); ++k)
      if (!match(a[k], b[k])) return false;
    return true;
  }

  bool bind(const Load& input, const Expr& value) {
    const auto k = static_cast<size_t>(std::find(inputs_.begin(), inputs_.end(), input.buffer) -
                                       inputs_.begin());
    if (!value.as<Load>())
      return differs(fmt::format("the formula reads {} where the stage has {}", input.buffer->name,
                                 print(value)));
    if (value.dtype() != input.buffer->dtype)
      return differs(fmt::format("operand {} of the formula is {}; the stage reads {}, which is {}",
                                 input.buffer->name, name(input.buffer->dtype), print(value),
                                 name(value.dtype())));
    Expr& bound = out_.loads[k];
    if (bound.defined() && !structural_equal(bound, value))
      return differs(fmt::format("operand {} of the formula is both {} and {} in the stage",
                                 input.buffer->name, print(bound), print(value)));
    bound = value;
    return true;
  }

  const std::vector<Buffer>& inputs_;
  FormulaMatch out_;
};

}  // namespace

FormulaMatch match_formula(const IntrinsicParts& parts, const Expr& value) {
  const Expr& formula = parts.stage->values[0];
  FormulaMatch plain = Matcher(parts).run(formula, value);
  if (plain.difference.empty()) return plain;
  FormulaMatch simple = Matcher(parts).run(simplify(formula), simplify(value));
  for (const Expr& e : simple.loads)
    if (!e.defined()) return plain;  // simplified away: the operand would be unknown
  return simple;
}

std::optional<ElementForm> element_form(const Expr& index, const Var& lane, const Var& group,
                                        Simplifier& simplifier) {
  ElementForm out{simplifier.affine(index)};
  const auto take = [&](const Var& v, int64_t& stride) {
    if (!v.defined()) return;
    stride = out.base.coefficient(v);
    out.base.add(v, -stride);
  };
  take(lane, out.lane_stride);
  take(group, out.group_stride);
  if (out.base.overflow) return std::nullopt;
  for (const Affine::Term& t : out.base.terms)
    if ((lane.defined() && uses_var(t.atom, lane)) || (group.defined() && uses_var(t.atom, group)))
      return std::nullopt;
  return out;
}

OperandForm operand_form(const ElementForm& form, int64_t group) {
  const bool joined = group == 1 || form.group_stride == 1;
  if (form.lane_stride == group && joined) return OperandForm::contiguous;
  if (form.lane_stride == 0 && group > 1 && form.group_stride == 1) return OperandForm::repeated;
  if (form.lane_stride == 0 && (group == 1 || form.group_stride == 0)) return OperandForm::scalar;
  return OperandForm::scattered;
}

}  // namespace tenon
