#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>

#include <bit>

namespace tenon {
namespace {

bool equal_lists(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  for (size_t k = 0; k < a.size(); ++k) {
    if (!structural_equal(a[k], b[k])) return false;
  }
  return true;
}

bool equal_axes(const std::vector<Axis>& a, const std::vector<Axis>& b) {
  if (a.size() != b.size()) return false;
  for (size_t k = 0; k < a.size(); ++k) {
    if (!a[k].var.same_as(b[k].var) || !structural_equal(a[k].extent, b[k].extent)) return false;
  }
  return true;
}

// Compares two nodes of the same alternative.
struct SameKind {
  const ExprNode& other;

  template <class T>
  const T& twin(const T&) const {
    return std::get<T>(other.v);
  }
  bool operator()(const IntImm& n) const { return n.value == twin(n).value; }
  bool operator()(const FloatImm& n) const {
    return std::bit_cast<uint64_t>(n.value) == std::bit_cast<uint64_t>(twin(n).value);
  }
  bool operator()(const VarRef& n) const { return n.var.same_as(twin(n).var); }
  bool operator()(const Binary& n) const {
    return n.op == twin(n).op && structural_equal(n.a, twin(n).a) &&
           structural_equal(n.b, twin(n).b);
  }
  bool operator()(const Unary& n) const {
    return n.op == twin(n).op && structural_equal(n.a, twin(n).a);
  }
  bool operator()(const Select& n) const {
    return structural_equal(n.condition, twin(n).condition) &&
           structural_equal(n.yes, twin(n).yes) && structural_equal(n.no, twin(n).no);
  }
  bool operator()(const Cast& n) const { return structural_equal(n.value, twin(n).value); }
  bool operator()(const Bitcast& n) const { return structural_equal(n.value, twin(n).value); }
  bool operator()(const Load& n) const {
    return n.buffer.same_as(twin(n).buffer) && equal_lists(n.indices, twin(n).indices) &&
           structural_equal(n.mask, twin(n).mask);
  }
  bool operator()(const Call& n) const {
    return n.fn == twin(n).fn && equal_lists(n.args, twin(n).args);
  }
  bool operator()(const Ramp& n) const {
    return structural_equal(n.base, twin(n).base) && structural_equal(n.stride, twin(n).stride);
  }
  bool operator()(const Broadcast& n) const { return structural_equal(n.value, twin(n).value); }
  bool operator()(const Reduce& n) const {
    return n.combiner == twin(n).combiner && n.element == twin(n).element &&
           equal_lists(n.sources, twin(n).sources) && equal_axes(n.axes, twin(n).axes) &&
           equal_lists(n.init, twin(n).init) && structural_equal(n.condition, twin(n).condition);
  }
  bool operator()(const Let& n) const {
    return n.var.same_as(twin(n).var) && structural_equal(n.value, twin(n).value) &&
           structural_equal(n.body, twin(n).body);
  }
  bool operator()(const VectorReduce& n) const {
    return n.op == twin(n).op && structural_equal(n.value, twin(n).value);
  }
  bool operator()(const Shuffle& n) const {
    return n.lanes == twin(n).lanes && structural_equal(n.value, twin(n).value);
  }
  bool operator()(const IntrinsicCall& n) const {
    return n.intrinsic == twin(n).intrinsic && n.implementation == twin(n).implementation &&
           equal_lists(n.args, twin(n).args);
  }
};

}  // namespace

bool structural_equal(const Expr& a, const Expr& b) {
  if (a.same_as(b)) return true;
  if (!a.defined() || !b.defined()) return false;
  if (a.type() != b.type() || a.node().v.index() != b.node().v.index()) return false;
  return std::visit(SameKind{b.node()}, a.node().v);
}

}  // namespace tenon
