#include <tenon/schedule/work.h>

#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/schedule/roles.h>

#include <algorithm>

#include "schedule/tree.h"

namespace tenon {
namespace {

constexpr double kCacheBytes = 24;  // a cycle, from the second cache
constexpr double kFunctionOps = 12, kDivisionOps = 4;
constexpr double kTupleCycles = 3;  // a point of a reduction of tuples, which no vector does

/// What one point of a stage computes and touches.
struct PointWork {
  double ops = 0;
  bool gathers = false;
  std::vector<const BufferNode*> buffers;

  void touch(const Buffer& b) {
    if (b->scope != Scope::reg &&
        std::find(buffers.begin(), buffers.end(), b.get()) == buffers.end())
      buffers.push_back(b.get());
  }
};

double ops_of(const Expr& e) {
  if (e.as<Call>()) return kFunctionOps;
  if (const Binary* b = e.as<Binary>()) return b->op == BinaryOp::div ? kDivisionOps : 1;
  return e.as<Unary>() || e.as<Select>() || e.as<Cast>() ? 1 : 0;
}

/// Whether neighbours along v are no neighbours in memory.
bool is_gathered(const Load& l, const Var& v) {
  for (size_t d = 0; d + 1 < l.indices.size(); ++d)
    if (uses_var(l.indices[d], v)) return true;
  return false;
}

PointWork point_work(const Stage& s) {
  PointWork work;
  for (const Expr& value : s.values)
    walk(value, [&](const Expr& e) {
      work.ops += ops_of(e);
      const Load* l = e.as<Load>();
      if (!l) return true;
      work.touch(l->buffer);
      work.gathers = work.gathers ||
                     (!s.combiner && !s.axes.empty() && is_gathered(*l, s.axes.back().axis.var));
      return false;
    });
  for (const Buffer& b : s.outputs) work.touch(b);
  const bool product = s.values.size() == 1 && s.values[0].as<Binary>() &&
                       s.values[0].as<Binary>()->op == BinaryOp::mul;
  if (s.combiner && !product) work.ops += 1;  // else one multiply-add
  return work;
}

/// Bytes of a buffer that so many points can touch.
double bytes_touched(const BufferNode& b, double points) {
  double elements = 1;
  for (const Expr& extent : b.shape) {
    const auto n = as_int(extent);
    elements *= n ? static_cast<double>(*n) : points;
  }
  return std::min(elements, points) * byte_size(b.dtype);
}

double stage_cycles(const Stage& s, double points, const Target& target) {
  const PointWork work = point_work(s);
  double bytes = 0;
  for (const BufferNode* b : work.buffers) bytes += bytes_touched(*b, points);
  const double lanes = std::max<double>(1, target.lanes(s.outputs[0]->dtype));
  double each = work.ops / (2 * lanes);
  if (work.gathers) each = std::max(each, 1.0);
  if (s.values.size() > 1) each = kTupleCycles;
  return std::max(points * each, bytes / kCacheBytes);
}

}  // namespace

double nest_cycles(const Program& program, const std::string& stage, const Target& target) {
  const StagePath path = find_stage(program, stage);
  double cycles = 0;
  for (const StagePath& p : stage_paths(program.body)) {
    const bool together =
        !path.loops.empty() && !p.loops.empty() && p.loops[0]->var.same_as(path.loops[0]->var);
    if (p.stage->name != stage && !together) continue;
    const auto points = static_cast<double>(stage_points(program, p.stage->name));
    if (points == 0) return 0;
    cycles += stage_cycles(*p.stage, points, target);
  }
  return cycles;
}

bool worth_threads(const Program& program, const std::string& stage, int64_t pieces,
                   const Target& target) {
  if (target.cores < 2 || pieces < 2) return false;
  const int64_t rounds = (pieces + target.cores - 1) / target.cores;
  const double share = static_cast<double>(rounds) / static_cast<double>(pieces);
  return nest_cycles(program, stage, target) * (1 - share) > kForkCycles;
}

}  // namespace tenon
