#include "autotvm/model/forms.h"

#include <tenon/ir/ops.h>

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

class IndexFormBuilder {
 public:
  IndexFormBuilder(const FormLoops& loops, const std::vector<BoundForm>& bound)
      : loops_(loops), bound_(bound), n_(loops.vars.size()) {}

  IndexForm of(const Expr& e) {
    if (const IntImm* imm = e.as<IntImm>()) {
      IndexForm f;
      f.constant = static_cast<double>(imm->value);
      return f;
    }
    if (const VarRef* v = e.as<VarRef>()) return of_var(v->var.get());
    if (const Binary* b = e.as<Binary>()) return of_binary(*b);
    if (const Select* s = e.as<Select>()) return widest(of(s->yes), of(s->no));
    if (const Cast* c = e.as<Cast>()) return of(c->value);
    return anywhere();
  }

 private:
  static IndexForm anywhere() {
    IndexForm f;
    f.data = true;
    return f;
  }

  IndexForm of_var(const VarNode* var) {
    for (const BoundForm& b : bound_)
      if (b.var == var) return b.form;
    IndexForm f;
    for (size_t l = 0; l < n_; ++l) {
      if (loops_.vars[l] != var) continue;
      f.step[l] = 1;
      std::fill(f.span.begin(), f.span.begin() + static_cast<std::ptrdiff_t>(l) + 1,
                static_cast<float>(loops_.extents[l] - 1));
    }
    return f;
  }

  IndexForm of_binary(const Binary& b) {
    switch (b.op) {
      case BinaryOp::add:
        return sum(of(b.a), of(b.b), 1);
      case BinaryOp::sub:
        return sum(of(b.a), of(b.b), -1);
      case BinaryOp::mul:
        if (const auto c = as_int(b.b)) return sum(IndexForm(), of(b.a), static_cast<double>(*c));
        if (const auto c = as_int(b.a)) return sum(IndexForm(), of(b.b), static_cast<double>(*c));
        return anywhere();
      case BinaryOp::floor_div:
        if (const auto c = as_int(b.b); c && *c > 0)
          return divide(of(b.a), static_cast<double>(*c), n_);
        return anywhere();
      case BinaryOp::floor_mod:
        if (const auto c = as_int(b.b); c && *c > 0)
          return remainder(of(b.a), static_cast<double>(*c), n_);
        return anywhere();
      case BinaryOp::min:
      case BinaryOp::max:
        return widest(of(b.a), of(b.b));
      default:
        return anywhere();
    }
  }

  IndexForm sum(IndexForm a, const IndexForm& b, double factor) const {
    a.constant += factor * b.constant;
    a.data = a.data || b.data;
    for (size_t l = 0; l < n_; ++l) {
      a.step[l] += static_cast<float>(factor) * b.step[l];
      a.span[l] += static_cast<float>(std::abs(factor)) * b.span[l];
    }
    return a;
  }

  /// One of the two, by a condition.
  IndexForm widest(IndexForm a, const IndexForm& b) const {
    a.data = a.data || b.data;
    for (size_t l = 0; l < n_; ++l) {
      if (std::abs(b.step[l]) > std::abs(a.step[l])) a.step[l] = b.step[l];
      a.span[l] = std::max(a.span[l], b.span[l]);
    }
    return a;
  }

  const FormLoops& loops_;
  const std::vector<BoundForm>& bound_;
  size_t n_;
};

}  // namespace

IndexForm divide(IndexForm f, double divisor, size_t loops) {
  if (divisor == 1) return f;
  const auto by = static_cast<float>(divisor);
  f.constant = std::floor(f.constant / divisor);
  for (size_t l = 0; l < loops; ++l) {
    f.step[l] /= by;
    f.span[l] = std::floor(f.span[l] / by);
  }
  return f;
}

IndexForm remainder(IndexForm f, double divisor, size_t loops) {
  const auto by = static_cast<float>(divisor);
  f.constant -= std::floor(f.constant / divisor) * divisor;
  for (size_t l = 0; l < loops; ++l) {
    f.step[l] = std::fmod(f.step[l], by);
    f.span[l] = std::min(f.span[l], by - 1);
  }
  return f;
}

IndexForm form_of(const Expr& index, const FormLoops& loops, const std::vector<BoundForm>& bound) {
  return IndexFormBuilder(loops, bound).of(index);
}

}  // namespace tenon
