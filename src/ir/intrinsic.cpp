#include <tenon/ir/intrinsic.h>
#include <tenon/ir/ops.h>
#include <tenon/ir/visit.h>
#include <tenon/support/error.h>
#include <tenon/support/text.h>

#include <algorithm>

#include "ir/op_classes.h"

namespace tenon {
namespace {

constexpr int kMaxLanes = 64;
constexpr int64_t kMaxGroup = 64;

[[noreturn]] void refuse(const Intrinsic& intrinsic, const std::string& rule) {
  throw UserError(
      fmt::format("intrinsic \"{}\": {}\n  try: a formula like C[i] += f(A[i, r], B[i, "
                  "r]) with one axis of lanes and at most one reduction axis",
                  intrinsic.name, rule));
}

/// The only stage under its own plain loops.
const Stage& only_stage(const Intrinsic& intrinsic) {
  const std::vector<StagePath> paths = stage_paths(intrinsic.formula.body);
  if (paths.size() != 1)
    refuse(intrinsic, fmt::format("its formula has {} stages and needs one", paths.size()));
  const Stage& stage = *paths[0].stage;
  const auto is_plain = [](const For* l) { return l->mark == LoopMark::serial; };
  if (stage.spatial_guard.defined() || stage.reduce_guard.defined() ||
      paths[0].loops.size() != stage.axes.size() ||
      !std::all_of(paths[0].loops.begin(), paths[0].loops.end(), is_plain))
    refuse(intrinsic, "its formula has been scheduled");
  return stage;
}

void check_axes(const Intrinsic& intrinsic, const Stage& stage, IntrinsicParts& parts) {
  const size_t reduces = stage.combiner ? 1 : 0;
  if (stage.outputs.size() != 1) refuse(intrinsic, "its formula needs one output");
  if (stage.axes.size() != 1 + reduces || stage.axes[0].kind != AxisKind::spatial)
    refuse(intrinsic, fmt::format("its formula has {} axes", stage.axes.size()));
  if (!reduces) return;
  const auto extent = as_int(stage.axes[1].axis.extent);
  if (stage.axes[1].kind != AxisKind::reduce || !extent || *extent < 1 || *extent > kMaxGroup)
    refuse(intrinsic,
           fmt::format("its reduction axis needs a constant extent of at most {}", kMaxGroup));
  if (!combiner_op(*stage.combiner))
    refuse(intrinsic,
           fmt::format("its combiner \"{}\" is none that is built in", stage.combiner->name));
  parts.group = *extent;
}

/// The extents of a product of tiles.
void read_tile(const Intrinsic& intrinsic, const Stage& stage, IntrinsicParts& parts) {
  int64_t* sizes[] = {&parts.rows, &parts.lanes, &parts.steps, &parts.group};
  for (size_t n = 0; n < 4; ++n) {
    const auto extent = as_int(stage.axes[n].axis.extent);
    const AxisKind kind = n < 2 ? AxisKind::spatial : AxisKind::reduce;
    if (stage.axes[n].kind != kind || !extent || *extent < 1 || *extent > kMaxGroup)
      refuse(intrinsic, fmt::format("the axes of a product of tiles are rows, lanes, steps and "
                                    "elements of a lane, each a constant of at most {}",
                                    kMaxGroup));
    *sizes[n] = *extent;
  }
}

bool indexed_by(const std::vector<Expr>& indices, const Stage& stage,
                const std::vector<size_t>& axes) {
  if (indices.size() != axes.size()) return false;
  for (size_t d = 0; d < axes.size(); ++d) {
    const VarRef* ref = indices[d].as<VarRef>();
    if (!ref || !ref->var.same_as(stage.axes[axes[d]].axis.var)) return false;
  }
  return true;
}

/// C[i, j] += f(A[i, k, r], B[j, k, r])
void check_tile_body(const Intrinsic& intrinsic, const Stage& stage, const IntrinsicParts& parts) {
  bool fine = indexed_by(stage.indices, stage, {0, 1}) && parts.inputs.size() == 2 &&
              stage.outputs.size() == 1 && stage.combiner && combiner_op(*stage.combiner);
  walk(stage.values[0], [&](const Expr& e) {
    const Load* n = e.as<Load>();
    if (!n) return true;
    const size_t first = fine && n->buffer == parts.inputs[0] ? 0 : 1;
    fine = fine && indexed_by(n->indices, stage, {first, 2, 3});
    return false;
  });
  if (!fine) refuse(intrinsic, "a product of tiles is C[i, j] += f(A[i, k, r], B[j, k, r])");
}

bool indexed_by_all_axes(const std::vector<Expr>& indices, const Stage& stage, size_t axes) {
  if (indices.size() != axes) return false;
  for (size_t d = 0; d < axes; ++d) {
    const VarRef* ref = indices[d].as<VarRef>();
    if (!ref || !ref->var.same_as(stage.axes[d].axis.var)) return false;
  }
  return true;
}

void check_body(const Intrinsic& intrinsic, const Stage& stage, const IntrinsicParts& parts) {
  bool fine = indexed_by_all_axes(stage.indices, stage, 1);
  std::vector<Buffer> read;
  std::function<void(const Expr&)> check = [&](const Expr& e) {
    const Load* n = e.as<Load>();
    if (n) read.push_back(n->buffer);
    fine = fine && !e.as<VarRef>() &&
           (!n || indexed_by_all_axes(n->indices, stage, stage.axes.size()));
    if (n || !fine) return;
    map_children(e, [&](const Expr& part) {
      check(part);
      return part;
    });
  };
  check(stage.values[0]);
  for (const Buffer& b : parts.inputs)
    fine = fine && std::find(read.begin(), read.end(), b) != read.end();
  if (!fine)
    refuse(intrinsic,
           "each tensor of its formula must be indexed by all axes, the lanes first, and nothing "
           "else may depend on them");
}

/// Lanes that are off read 0: they must not divide by it.
void check_divisors(const Intrinsic& intrinsic, const Stage& stage) {
  walk(stage.values[0], [&](const Expr& e) {
    const Binary* n = e.as<Binary>();
    if (n && divides_integers(n->op) && !as_int(n->b))
      refuse(intrinsic, fmt::format("its formula divides integers by {}, which is 0 in lanes that "
                                    "are off; only constant divisors are possible",
                                    print(n->b)));
    return true;
  });
}

void check_implementation(const Intrinsic& intrinsic, const IntrinsicParts& parts,
                          const IntrinsicImplementation& code) {
  if (code.lanes < 2 || code.lanes > kMaxLanes || (code.lanes & (code.lanes - 1)) != 0)
    refuse(intrinsic, fmt::format("{} runs on {} lanes; a power of two up to {} is needed",
                                  code.llvm, code.lanes, kMaxLanes));
  std::vector<std::string> known;
  for (const Buffer& b : parts.inputs) known.push_back(b->name);
  for (const std::string& name : known)
    if (std::count(code.operands.begin(), code.operands.end(), name) != 1)
      refuse(intrinsic, fmt::format("{} needs operand \"{}\" once", code.llvm, name));
  if (parts.stage->combiner) known.push_back(parts.output->name);
  for (const std::string& name : code.operands)
    if (std::find(known.begin(), known.end(), name) == known.end())
      refuse(intrinsic, fmt::format("{} has operand \"{}\"; the formula has {}", code.llvm, name,
                                    join(known)));
  if (code.operands.size() > known.size())
    refuse(intrinsic, fmt::format("{} has an operand twice", code.llvm));
}

/// Element r of each lane's group.
Expr elements(const Expr& arg, int lanes, int64_t group, int64_t r) {
  if (group == 1) return arg;
  const Shuffle* inner = arg.as<Shuffle>();
  std::vector<int> picked;
  for (int l = 0; l < lanes; ++l) {
    const auto at = static_cast<size_t>(l * group + r);
    picked.push_back(inner ? inner->lanes[at] : static_cast<int>(at));
  }
  return shuffle(inner ? inner->value : arg, std::move(picked));
}

}  // namespace

IntrinsicParts parts_of(const Intrinsic& intrinsic) {
  IntrinsicParts parts;
  parts.stage = &only_stage(intrinsic);
  for (const Param& p : intrinsic.formula.params)
    (p.role == ParamRole::output ? parts.output : parts.inputs.emplace_back()) = p.buffer;
  if (parts.stage->axes.size() == 4) {
    read_tile(intrinsic, *parts.stage, parts);
    check_tile_body(intrinsic, *parts.stage, parts);
  } else {
    check_axes(intrinsic, *parts.stage, parts);
    check_body(intrinsic, *parts.stage, parts);
  }
  check_divisors(intrinsic, *parts.stage);
  for (const IntrinsicImplementation& code : intrinsic.implementations)
    check_implementation(intrinsic, parts, code);
  return parts;
}

bool zeros_are_neutral(const Intrinsic& intrinsic) {
  const Stage& stage = *parts_of(intrinsic).stage;
  if (!stage.combiner) return false;
  const Expr value =
      rewrite(stage.values[0], [](const Expr& e) { return e.as<Load>() ? zero(e.dtype()) : e; });
  const Expr& neutral = stage.combiner->identity[0];
  if (is_float(neutral.dtype())) {
    const auto a = as_float(value), b = as_float(neutral);
    return a && b && *a == *b;
  }
  const auto a = as_int(value), b = as_int(neutral);
  return a && b && *a == *b;
}

Expr intrinsic_call(std::shared_ptr<const Intrinsic> intrinsic, int implementation,
                    std::vector<Expr> args) {
  const int lanes = intrinsic->implementations.at(static_cast<size_t>(implementation)).lanes;
  const DType t = parts_of(*intrinsic).output->dtype;
  return make_expr({t, lanes},
                   IntrinsicCall{std::move(intrinsic), implementation, std::move(args)});
}

Expr expand_intrinsic(const Intrinsic& intrinsic, const std::vector<Expr>& args) {
  const IntrinsicParts parts = parts_of(intrinsic);
  TENON_CHECK(!parts.is_tile(), "{} is a product of tiles and no vector", intrinsic.name);
  const Stage& stage = *parts.stage;
  const size_t first = stage.combiner ? 1 : 0;
  TENON_CHECK(args.size() == parts.inputs.size() + first, "intrinsic {} has {} arguments",
              intrinsic.name, args.size());
  const int lanes = static_cast<int>(args.back().lanes() / parts.group);
  Expr result = first ? args[0] : Expr();
  for (int64_t r = 0; r < parts.group; ++r) {
    Expr value = rewrite(stage.values[0], [&](const Expr& e) {
      const Load* n = e.as<Load>();
      if (!n) return e;
      const auto k = static_cast<size_t>(
          std::find(parts.inputs.begin(), parts.inputs.end(), n->buffer) - parts.inputs.begin());
      return elements(args[first + k], lanes, parts.group, r);
    });
    if (value.lanes() == 1) value = broadcast(value, lanes);
    result = first ? combine(*stage.combiner, {result}, {value})[0] : value;
  }
  return result;
}

Expr expand_intrinsic(const IntrinsicCall& call) {
  return expand_intrinsic(*call.intrinsic, call.args);
}

IntrinsicRef::IntrinsicRef(Intrinsic intrinsic)
    : intrinsic_(std::make_shared<const Intrinsic>(std::move(intrinsic))) {
  parts_of(*intrinsic_);
}

bool IntrinsicRef::operator==(const IntrinsicRef& other) const {
  if (intrinsic_ == other.intrinsic_) return true;
  return intrinsic_ && other.intrinsic_ && to_json(*intrinsic_) == to_json(*other.intrinsic_);
}

}  // namespace tenon
