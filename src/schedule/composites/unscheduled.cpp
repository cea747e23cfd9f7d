#include "schedule/composites/unscheduled.h"

#include <tenon/ir/ops.h>

#include <algorithm>
#include <set>

namespace tenon {

std::optional<ConstantNest> constant_nest(const StagePath& path) {
  const Stage& s = *path.stage;
  if (path.loops.size() != s.axes.size()) return std::nullopt;
  ConstantNest nest;
  for (size_t n = 0; n < s.axes.size(); ++n) {
    const auto extent = as_int(s.axes[n].axis.extent);
    if (!extent || *extent == 0) return std::nullopt;
    nest.vars.push_back(s.axes[n].axis.var);
    nest.loops.push_back({path.loops[n]->var.name(), *extent});
  }
  return nest;
}

const Expr& without_casts(const Expr& e) {
  const Expr* inner = &e;
  while (const Cast* c = inner->as<Cast>()) inner = &c->value;
  return *inner;
}

bool is_constant(const Program& program, const std::string& buffer) {
  return std::any_of(program.params.begin(), program.params.end(), [&](const Param& p) {
    return p.buffer->name == buffer && p.role == ParamRole::constant;
  });
}

int64_t bytes_of(const BufferNode& b) {
  int64_t bytes = byte_size(b.dtype);
  for (const Expr& extent : b.shape) bytes *= as_int(extent).value_or(0);
  return bytes;
}

int64_t step_along(const Expr& e, const Var& v) {
  if (const VarRef* r = e.as<VarRef>()) return r->var.same_as(v) ? 1 : 0;
  const Binary* b = e.as<Binary>();
  if (!b) return 0;
  const bool first = uses_var(b->a, v), second = uses_var(b->b, v);
  if (first == second) return 0;
  const int64_t inner = step_along(first ? b->a : b->b, v);
  if (b->op == BinaryOp::add) return inner;
  if (b->op == BinaryOp::sub) return first ? inner : 0;
  const auto factor = b->op == BinaryOp::mul ? as_int(first ? b->b : b->a) : std::nullopt;
  return factor ? inner * *factor : 0;
}

ReductionCount count_reductions(const Program& program) {
  ReductionCount r;
  std::set<const BufferNode*> reduced;
  for (const StagePath& path : stage_paths(program.body)) {
    bool reads = false;
    for (const Expr& value : path.stage->values)
      walk(value, [&](const Expr& e) {
        if (auto* l = e.as<Load>()) reads = reads || reduced.count(l->buffer.get()) > 0;
        return true;
      });
    if (path.stage->combiner) {
      ++r.count;
      r.chained = r.chained || reads;
    }
    if (path.stage->combiner || reads)
      for (const Buffer& b : path.stage->outputs) reduced.insert(b.get());
  }
  return r;
}

bool keeps_order(const Program& program) {
  for (const StagePath& path : stage_paths(program.body)) {
    if (path.stage->combiner && path.stage->init.empty()) return true;
    for (const AxisBinding& b : path.stage->axes)
      if (b.kind == AxisKind::sequential) return true;
  }
  return false;
}

int64_t registers_free(const Target& target) {
  return target.vector_registers - (target.vector_registers > 16 ? 2 : 1);
}

}  // namespace tenon
