#pragma once
#include <tenon/ir/expr.h>

#include <array>
#include <vector>

namespace tenon {

/// Loops round one stage that a draft looks at; those of one iteration do not count.
constexpr size_t kMaxDraftLoops = 32;

/// What an index does in a nest of loops, the outermost being loop 0. A division or remainder makes
/// it an estimate: (j//16) moves by 1/16 a step of j.
struct IndexForm {
  double constant = 0;
  bool data = false;  ///< depends on what a load gives: it may be anywhere
  /// How far it moves when one loop goes on by one.
  std::array<float, kMaxDraftLoops> step{};
  /// span[d]: its greatest minus its least value while the loops from d on run and those outside
  /// stand still. span[number of loops] is 0.
  std::array<float, kMaxDraftLoops + 1> span{};
};

/// The extents of the loops round a stage.
struct FormLoops {
  std::vector<const VarNode*> vars;
  std::vector<double> extents;
};

/// A variable with a form: an axis of the stage.
struct BoundForm {
  const VarNode* var = nullptr;
  IndexForm form;
};

/// The form of an index over loops and bound variables; other variables stand still.
///   i.o*6 + i.i + 2 in i.o 0..43, k 0..8, i.i 0..6   ->   constant 2, step 6 0 1, span 257 5 5 0
IndexForm form_of(const Expr& index, const FormLoops& loops, const std::vector<BoundForm>& bound);

/// floor(form / divisor) and what remains; divisor >= 1.
IndexForm divide(IndexForm form, double divisor, size_t loops);
IndexForm remainder(IndexForm form, double divisor, size_t loops);

}  // namespace tenon
