#include "random_formula.h"

#include <numeric>

namespace tenon {
namespace {

template <class T>
const T& weighted(const std::vector<T>& all, Choices& choices) {
  const int total =
      std::accumulate(all.begin(), all.end(), 0, [](int n, const T& t) { return n + t.weight; });
  int64_t left = choices.below(total);
  for (const T& t : all)
    if ((left -= t.weight) < 0) return t;
  return all.back();
}

}  // namespace

std::vector<Axis> axes_of(const std::vector<int64_t>& shape) {
  static const char* const kNames[] = {"i", "j", "h", "w"};
  std::vector<Axis> out;
  for (size_t d = 0; d < shape.size(); ++d) out.emplace_back(kNames[d], shape[d]);
  return out;
}

int64_t FormulaDraw::size() {
  return choices.one_of(std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17});
}

int64_t FormulaDraw::small() { return choices.between(1, 5); }

Expr FormulaDraw::number(int64_t value) const {
  return imm(static_cast<double>(has_negative() ? value : std::abs(value)), type);
}

Expr FormulaDraw::mix(const Expr& a, const Expr& b) {
  switch (choices.below(6)) {
    case 0:
      return a + b;
    case 1:
      return a * number(choices.between(-3, 3)) - b;
    case 2:
      return max(a, b);
    case 3:
      return min(a, number(5)) + b;
    case 4:
      return a - b + number(choices.between(-9, 9));
    default:  // not continuous: only where nothing is rounded
      return exact ? select(a > b, a, b * number(2)) : a * b;
  }
}

Expr FormulaDraw::reduction(const Expr& value, const std::vector<Axis>& axes,
                            const ReduceOptions& options) {
  switch (choices.below(4)) {
    case 0:
      return sum(value, axes, options);
    case 1:
      return reduce_max(value, axes, options);
    case 2:
      return reduce_min(value, axes, options);
    default:  // exact floats would grow beyond what their bits hold
      return is_float(type) && exact ? sum(value, axes, options) : prod(value, axes, options);
  }
}

Tensor FormulaDraw::map_of(const std::string& name, const Tensor& t) {
  const std::vector<Axis> axes = axes_of(t.extents());
  const std::vector<Expr> at(axes.begin(), axes.end());
  if (axes.empty() || choices.chance(0.4)) return compute(name, axes, mix(t.at(at), t.at(at)));
  const size_t d = static_cast<size_t>(choices.below(static_cast<int64_t>(axes.size())));
  const Tensor v = input("v_" + name, t.dtype(), {t.extent(static_cast<int>(d))});
  return compute(name, axes, mix(t.at(at), v(at[d])));
}

DType random_type(Choices& choices) {
  struct Weighted {
    DType type;
    int weight;
  };
  static const std::vector<Weighted> kTypes = {{i32, 50}, {f32, 22}, {i64, 4}, {f64, 5},
                                               {i8, 5},   {u8, 5},   {i16, 3}, {u16, 1},
                                               {u32, 1},  {u64, 1},  {f16, 2}, {bf16, 1}};
  return weighted(kTypes, choices).type;
}

const std::vector<FormulaKind>& formula_kinds() {
  static const std::vector<FormulaKind> kKinds = [] {
    std::vector<FormulaKind> all = map_formulas();
    for (const FormulaKind& kind : reduction_formulas()) all.push_back(kind);
    return all;
  }();
  return kKinds;
}

RandomFormula random_formula(Choices& choices) {
  const FormulaKind& kind = weighted(formula_kinds(), choices);
  FormulaDraw draw{choices};
  draw.type = random_type(choices);
  const bool coarse = draw.type == f16 || draw.type == bf16;
  draw.exact = !is_float(draw.type) || (!coarse && !choices.chance(0.5));
  const std::vector<Tensor> outputs = kind.make(draw);
  return {kind.name, make_program(kind.name, outputs), draw.index_limit, draw.exact};
}

RandomFormula random_formula(Rng& rng) {
  Choices choices(rng.next());
  return random_formula(choices);
}

}  // namespace tenon
