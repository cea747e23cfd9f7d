#include "ir/verify_expr.h"

#include <fmt/format.h>
#include <tenon/ir/intrinsic.h>
#include <tenon/ir/visit.h>

#include <algorithm>
#include <type_traits>

#include "ir/op_classes.h"

namespace tenon {
namespace {

std::string type_text(Type t) {
  return t.lanes == 1 ? std::string(name(t.dtype)) : fmt::format("{}x{}", name(t.dtype), t.lanes);
}

bool is_logical(BinaryOp op) { return op == BinaryOp::logical_and || op == BinaryOp::logical_or; }
bool is_comparison(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::ge; }
bool is_bitwise(BinaryOp op) { return op >= BinaryOp::bit_and; }

/// The rules of one node. Each broken rule is a line "EXPR: rule (values)".
class NodeRules {
 public:
  NodeRules(const Expr& e, Form form, const std::function<void(const std::string&)>& report)
      : e_(e), form_(form), report_(report) {}

  void check() {
    if (form_ == Form::LoopTree) need(e_.lanes() == 1, "a loop tree has no vectors");
    std::visit([&](const auto& node) { rule(node, e_.type()); }, e_.node().v);
  }

 private:
  /// `words` is text or, where it takes work to write, a function that gives it.
  template <class Words>
  void need(bool holds, const Words& words) {
    if (holds) return;
    std::string what;
    if constexpr (std::is_invocable_v<Words>)
      what = words();
    else
      what = words;
    report_(fmt::format("{}: {} (type {})", print(e_), what, type_text(e_.type())));
  }
  void need_flat(std::string_view what) {
    need(form_ == Form::Flat, [&] { return fmt::format("{} is for flat code only", what); });
  }
  void need_type(const Expr& part, Type wanted, std::string_view role) {
    need(part.type() == wanted, [&] {
      return fmt::format("{} has type {} and must have {}", role, type_text(part.type()),
                         type_text(wanted));
    });
  }

  void rule(const IntImm& n, Type t) {
    need(!is_float(t.dtype) && t.lanes == 1, "an integer literal of another type");
    need(wrap_int(n.value, t.dtype) == n.value, "a literal outside its type");
  }
  void rule(const FloatImm&, Type t) {
    need(is_float(t.dtype) && t.lanes == 1, "a float literal of another type");
  }
  void rule(const VarRef& n, Type t) {
    need(n.var.type() == t,
         [&] { return fmt::format("the variable has type {}", type_text(n.var.type())); });
  }
  void rule(const Binary& n, Type t) {
    need_type(n.b, n.a.type(), "the right operand");
    DType d = n.a.dtype();
    Type result = n.a.type();
    if (is_comparison(n.op) || is_logical(n.op)) result.dtype = boolean;
    need(t == result, [&] { return fmt::format("{} gives {}", name(n.op), type_text(result)); });
    if (n.op == BinaryOp::div) need(is_float(d), "div is for floats");
    if (divides_integers(n.op))
      need(is_int(d), [&] { return fmt::format("{} is for integers", name(n.op)); });
    if (is_logical(n.op))
      need(is_bool(d), [&] { return fmt::format("{} is for bools", name(n.op)); });
    if (is_bitwise(n.op))
      need(!is_float(d), [&] { return fmt::format("{} is for integers", name(n.op)); });
  }
  void rule(const Unary& n, Type t) {
    DType d = n.a.dtype();
    Type result = n.op == UnaryOp::is_nan ? Type{boolean, n.a.lanes()} : n.a.type();
    need(t == result, [&] { return fmt::format("{} gives {}", name(n.op), type_text(result)); });
    if (n.op == UnaryOp::logical_not) need(is_bool(d), "logical_not is for bools");
    if (n.op == UnaryOp::bit_not) need(!is_float(d), "bit_not is for integers");
    if (n.op >= UnaryOp::sqrt)
      need(is_float(d), [&] { return fmt::format("{} is for floats", name(n.op)); });
  }
  void rule(const Select& n, Type t) {
    need(is_bool(n.condition.dtype()), "the condition is not a bool");
    need(n.condition.lanes() == 1 || n.condition.lanes() == t.lanes,
         "the condition's lanes differ");
    need_type(n.yes, t, "the first value");
    need_type(n.no, t, "the second value");
  }
  void rule(const Cast& n, Type t) { need(n.value.lanes() == t.lanes, "a cast keeps the lanes"); }
  void rule(const Bitcast& n, Type t) {
    need(n.value.lanes() == t.lanes, "a bitcast keeps the lanes");
    need(byte_size(n.value.dtype()) == byte_size(t.dtype), "a bitcast keeps the size");
  }
  void rule(const Load& n, Type t) {
    need(n.buffer->dtype == t.dtype,
         [&] { return fmt::format("the buffer holds {}", name(n.buffer->dtype)); });
    need(n.indices.size() == n.buffer->shape.size(), [&] {
      return fmt::format("{} indices for rank {}", n.indices.size(), n.buffer->shape.size());
    });
    for (const Expr& index : n.indices) need_type(index, {i64, t.lanes}, "an index");
    if (!n.mask.defined()) return;
    need_flat("a mask");
    need_type(n.mask, {boolean, t.lanes}, "the mask");
  }
  void rule(const Call& n, Type t) {
    need(is_float(t.dtype), "mathematical functions are for floats");
    need(n.args.size() == (n.fn == MathFn::pow || n.fn == MathFn::ldexp ? 2u : 1u),
         "the number of arguments is off");
    for (const Expr& a : n.args) need_type(a, t, "an argument");
  }
  void rule(const Ramp& n, Type t) {
    need_flat("ramp");
    need(n.lanes == t.lanes && n.lanes > 1, "the lanes are off");
    need_type(n.base, t.element(), "the base");
    need_type(n.stride, t.element(), "the stride");
  }
  void rule(const Broadcast& n, Type t) {
    need_flat("broadcast");
    need(n.lanes == t.lanes && n.lanes > 1, "the lanes are off");
    need_type(n.value, t.element(), "the value");
  }
  void rule(const Reduce&, Type) {
    need(false, "a nested reduction is notation: it needs a stage of its own");
  }
  void rule(const Let& n, Type t) {
    need_type(n.value, n.var.type(), "the value of the let");
    need_type(n.body, t, "the body of the let");
  }
  void rule(const VectorReduce& n, Type t) {
    need_flat("a horizontal reduction");
    need(n.op == BinaryOp::add || n.op == BinaryOp::mul || n.op == BinaryOp::min ||
             n.op == BinaryOp::max || is_logical(n.op),
         [&] { return fmt::format("{} is no horizontal reduction", name(n.op)); });
    need_type(n.value.type().lanes == 1 ? e_ : n.value, t.with_lanes(n.value.lanes()), "the value");
    need(t.lanes == 1, "the result is a scalar");
  }
  void rule(const Shuffle& n, Type t) {
    need_flat("shuffle");
    need(static_cast<int>(n.lanes.size()) == t.lanes, "the lanes are off");
    need(n.value.dtype() == t.dtype, "shuffle keeps the element type");
    for (int lane : n.lanes) {
      need(lane >= 0 && lane < n.value.lanes(),
           [&] { return fmt::format("there is no lane {}", lane); });
    }
  }
  void rule(const IntrinsicCall& n, Type t) {
    need_flat("an intrinsic");
    const IntrinsicParts parts = parts_of(*n.intrinsic);
    const size_t first = parts.stage->combiner ? 1 : 0;
    need(t.dtype == parts.output->dtype,
         [&] { return fmt::format("it gives {}", name(parts.output->dtype)); });
    need(n.args.size() == parts.inputs.size() + first, "the number of arguments is off");
    if (n.args.size() != parts.inputs.size() + first) return;
    if (first) need_type(n.args[0], t, "the old value");
    for (size_t k = 0; k < parts.inputs.size(); ++k)
      need_type(n.args[first + k],
                {parts.inputs[k]->dtype, t.lanes * static_cast<int>(parts.group)}, "an operand");
  }

  const Expr& e_;
  Form form_;
  const std::function<void(const std::string&)>& report_;
};

}  // namespace

void verify_expr(const Expr& e, Form form, const std::function<void(const std::string&)>& report) {
  walk(e, [&](const Expr& part) {
    NodeRules(part, form, report).check();
    return true;
  });
}

}  // namespace tenon
