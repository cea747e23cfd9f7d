#include <cmath>

#include "graph/onnx/rules.h"

namespace tenon {

namespace {

/// Arithmetic on canonical values, so that a rule below reads like its formula.
struct Term {
  Resolver* r;
  ValueId id;
};

Term term(Resolver& r, ValueId id) { return {&r, id}; }
Term number(const Term& like, double value) {
  return {like.r, like.r->scalar_like(like.id, value)};
}
Term apply(const char* op, const Term& a) { return {a.r, a.r->emit(op, {a.id})}; }
Term apply(const char* op, const Term& a, const Term& b) {
  return {a.r, a.r->emit(op, {a.id, b.id})};
}
Term operator+(const Term& a, const Term& b) { return apply("Add", a, b); }
Term operator-(const Term& a, const Term& b) { return apply("Sub", a, b); }
Term operator*(const Term& a, const Term& b) { return apply("Mul", a, b); }
Term operator/(const Term& a, const Term& b) { return apply("Div", a, b); }
Term operator+(const Term& a, double b) { return a + number(a, b); }
Term operator-(const Term& a, double b) { return a - number(a, b); }
Term operator*(const Term& a, double b) { return a * number(a, b); }
Term operator/(const Term& a, double b) { return a / number(a, b); }
Term operator<(const Term& a, double b) { return apply("Less", a, number(a, b)); }
Term operator>(const Term& a, double b) { return apply("Greater", a, number(a, b)); }
Term max(const Term& a, double b) { return apply("Max", a, number(a, b)); }
Term min(const Term& a, double b) { return apply("Min", a, number(a, b)); }
Term where(const Term& c, const Term& yes, const Term& no) {
  return {c.r, c.r->emit("Where", {c.id, yes.id, no.id})};
}

Term x_of(Resolver& r) { return term(r, r.input(0)); }
void give(Resolver& r, const Term& y) { r.result(0, y.id); }

Term hard_sigmoid(const Term& x, double alpha, double beta) {
  return min(max(x * alpha + beta, 0), 1);
}

/// log(1 + exp(x)) without overflow: max(x, 0) + log(1 + exp(-|x|))
Term softplus(const Term& x) {
  return max(x, 0) + apply("Log", apply("Exp", apply("Neg", apply("Abs", x))) + 1);
}

}  // namespace

void resolve_relu(Resolver& r) { give(r, max(x_of(r), 0)); }

void resolve_leaky_relu(Resolver& r) {
  const Term x = x_of(r);
  give(r, where(x < 0, x * r.node().real("alpha"), x));
}

/// The slope broadcasts to x; ahead of opset 7 a vector means one number per channel.
void resolve_prelu(Resolver& r) {
  const Term x = x_of(r);
  ValueId slope = r.input(1);
  const std::vector<int64_t> shape = r.shape(slope);
  if (r.opset() < 7 && shape.size() == 1 && r.rank(x.id) > 2) {
    std::vector<int64_t> per_channel(static_cast<size_t>(r.rank(x.id)) - 1, 1);
    per_channel[0] = shape[0];
    slope = r.reshape(slope, per_channel);
  }
  give(r, where(x < 0, x * term(r, slope), x));
}

void resolve_thresholded_relu(Resolver& r) {
  const Term x = x_of(r);
  give(r, where(x > r.node().real("alpha"), x, number(x, 0)));
}

void resolve_elu(Resolver& r) {
  const Term x = x_of(r);
  give(r, where(x < 0, (apply("Exp", x) - 1) * r.node().real("alpha"), x));
}

void resolve_selu(Resolver& r) {
  const Term x = x_of(r);
  const Term low = (apply("Exp", x) - 1) * r.node().real("alpha");
  give(r, where(x > 0, x, low) * r.node().real("gamma"));
}

void resolve_celu(Resolver& r) {
  const Term x = x_of(r);
  const double alpha = r.node().real("alpha");
  give(r, max(x, 0) + min((apply("Exp", x / alpha) - 1) * alpha, 0));
}

void resolve_hard_sigmoid(Resolver& r) {
  give(r, hard_sigmoid(x_of(r), r.node().real("alpha"), r.node().real("beta")));
}

void resolve_hard_swish(Resolver& r) { give(r, x_of(r) * hard_sigmoid(x_of(r), 1.0 / 6, 0.5)); }

void resolve_swish(Resolver& r) {
  const Term x = x_of(r);
  give(r, x * apply("Sigmoid", x * r.node().real("alpha")));
}

void resolve_gelu(Resolver& r) {
  const Term x = x_of(r);
  const std::string& approximate = r.node().text("approximate");
  if (approximate != "none" && approximate != "tanh")
    r.fail("approximate is \"" + approximate + "\", it must be none or tanh");
  const Term inner =
      approximate == "none"
          ? apply("Erf", x * std::sqrt(0.5))
          : apply("Tanh", (x + x * x * x * 0.044715) * std::sqrt(2 / std::acos(-1.0)));
  give(r, x * 0.5 * (inner + 1));
}

void resolve_mish(Resolver& r) { give(r, x_of(r) * apply("Tanh", softplus(x_of(r)))); }

void resolve_softplus(Resolver& r) { give(r, softplus(x_of(r))); }

void resolve_softsign(Resolver& r) { give(r, x_of(r) / (apply("Abs", x_of(r)) + 1)); }

void resolve_shrink(Resolver& r) {
  const Term x = x_of(r);
  const double bias = r.node().real("bias"), limit = r.node().real("lambd");
  give(r, where(x < -limit, x + bias, where(x > limit, x - bias, number(x, 0))));
}

}  // namespace tenon
