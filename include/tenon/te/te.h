#pragma once
#include <tenon/ir/ops.h>
#include <tenon/ir/program.h>

#include <functional>

namespace tenon {

/// The part of a formula that says where the parts of a scatter go; its values are then over
/// `sources`.
struct ScatterInto {
  std::vector<Axis> sources;
  std::vector<Expr> start;    // per element, over the axes of the result
  std::vector<Expr> indices;  // per dimension of the result, over the sources
  std::shared_ptr<const Combiner> combiner;
};

/// How a tensor is computed: for every point of `axes`, element e is values[e] (one per output of a
/// tuple). A value may hold Reduce nodes anywhere. With the role input or constant nothing is
/// computed: the contents come from outside, and axes and values are empty.
struct Formula {
  std::string name;
  ParamRole role = ParamRole::output;
  std::vector<Axis> axes;
  std::vector<Expr> values;
  std::optional<ScatterInto> scatter;
  /// A scan: the place of its axis among `axes`, and the buffers by which the values read what the
  /// formula itself gave one step before.
  std::optional<size_t> along;
  std::vector<Buffer> previous;
  std::vector<std::weak_ptr<const BufferNode>>
      outputs;  // the buffers of the tuple, as far as they still live
};

/// A finished tensor: an input, a constant, or the result of compute(). A cheap handle.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Buffer buffer, ParamRole role) : buffer_(std::move(buffer)), role_(role) {}

  bool defined() const { return buffer_.defined(); }
  const std::string& name() const { return buffer_->name; }
  DType dtype() const { return buffer_->dtype; }
  int rank() const { return static_cast<int>(buffer_->shape.size()); }
  const std::vector<Expr>& shape() const { return buffer_->shape; }
  /// Extent of dimension d as a constant; UserError when it is symbolic.
  int64_t extent(int d) const;
  std::vector<int64_t> extents() const;
  const Buffer& buffer() const { return buffer_; }
  ParamRole role() const { return role_; }

  /// One element; as many integer indices as the rank (UserError says both numbers).
  Expr at(std::vector<Expr> indices) const;
  template <class... Is>
  Expr operator()(Is... indices) const {
    return at({Expr(indices)...});
  }

 private:
  Buffer buffer_;
  ParamRole role_ = ParamRole::output;
};

/// A symbolic extent: a dimension that is known at the call only, within a declared range. One
/// kernel serves all its values. It may stand in extents (alone or as n - 2, 2*n + 1, ...) and in
/// values. UserError for: no name, a range that is empty, negative or above 2^40.
Var symbol(std::string name, SymbolRange range = {});

/// The shape of a tensor: numbers, symbols and expressions of symbols.
struct Extents {
  Extents() = default;
  Extents(std::initializer_list<Expr> extents) : list(extents) {}
  Extents(const std::vector<int64_t>& extents) : list(extents.begin(), extents.end()) {}
  Extents(std::vector<Expr> extents) : list(std::move(extents)) {}
  std::vector<Expr> list;
};

/// UserError for an extent that is negative, no i64, or speaks of anything but symbols.
Tensor input(std::string name, DType dtype, Extents shape);
/// An input whose contents the task knows ahead of time (weights): a schedule may have it packed at
/// load.
Tensor constant(std::string name, DType dtype, Extents shape);

/// name[axes] = value. The axes' kind becomes spatial. UserError for: an axis twice, a variable
/// that is neither an axis nor bound by a Reduce, an index count that is off, a void value.
Tensor compute(std::string name, std::vector<Axis> axes, Expr value);
/// One tensor per value, named name.v0, name.v1, ..., all over the same axes. When each value e is
/// element e of one tuple reduction they share its stage.
std::vector<Tensor> compute_tuple(std::string name, std::vector<Axis> axes,
                                  std::vector<Expr> values);

/// What a reduction starts from, and which of its points count.
struct ReduceOptions {
  /// One value per element of the tuple, over the axes of the result; a literal takes the
  /// combiner's type. Empty, or an undefined element: the identity.
  std::vector<Expr> start = {};
  /// A bool over all axes in force; points where it is false read nothing and change nothing.
  Expr condition = {};
};

/// Reductions over one or more axes. UserError for: no axis, an axis twice, a start that speaks of
/// the axes or has another type than what is combined.
Expr sum(Expr source, std::vector<Axis> axes, const ReduceOptions& options = {});
Expr prod(Expr source, std::vector<Axis> axes, const ReduceOptions& options = {});
Expr reduce_max(Expr source, std::vector<Axis> axes, const ReduceOptions& options = {});
Expr reduce_min(Expr source, std::vector<Axis> axes, const ReduceOptions& options = {});
Expr any(Expr source, std::vector<Axis> axes, const ReduceOptions& options = {});
Expr all(Expr source, std::vector<Axis> axes, const ReduceOptions& options = {});
/// The pair {best value, its i64 index along `axis`}; ties go to the lowest index, or to the
/// highest with `last`. A NaN counts as better than every number.
std::vector<Expr> arg_max(Expr source, Axis axis, bool last = false,
                          const ReduceOptions& options = {});
std::vector<Expr> arg_min(Expr source, Axis axis, bool last = false,
                          const ReduceOptions& options = {});
inline Expr sum(Expr source, Axis axis) {
  return sum(std::move(source), std::vector<Axis>{std::move(axis)});
}

/// Whether partial results may be joined in any order and grouping. With `no` a reduction is the
/// left fold over its points, the last axis fastest, from the start: steps that would change that
/// order are refused.
enum class Commutes : uint8_t { no, yes };

using JoinFn = std::function<Expr(Expr lhs, Expr rhs)>;
using JoinTupleFn =
    std::function<std::vector<Expr>(const std::vector<Expr>& lhs, const std::vector<Expr>& rhs)>;

/// A combiner of one's own: `join` gives lhs joined with rhs, `identity` is a literal of the
/// element type with join(identity, x) = x. For tuples one literal per element.
///   combiner("gcd_like", int_imm(0, i32), [](Expr a, Expr b) { return ...; }, Commutes::yes)
/// UserError for: a result of another type or number, a variable or tensor from outside, an
/// identity that is no literal; with Commutes::yes also for an identity that changes what it is
/// joined with and for an order or (of integers) a grouping that matters, as far as trying shows
/// it.
std::shared_ptr<const Combiner> combiner(std::string name, Expr identity, const JoinFn& join,
                                         Commutes commutes);
std::shared_ptr<const Combiner> tuple_combiner(std::string name, std::vector<Expr> identity,
                                               const JoinTupleFn& join, Commutes commutes);

/// A reduction by any combiner; for tuples one expression per element, all of one reduction. A
/// condition needs join(x, identity) = x.
Expr reduce(std::shared_ptr<const Combiner> combiner, Expr source, std::vector<Axis> axes,
            const ReduceOptions& options = {});
std::vector<Expr> reduce_tuple(std::shared_ptr<const Combiner> combiner, std::vector<Expr> sources,
                               std::vector<Axis> axes, const ReduceOptions& options = {});

/// Scatter: name[axes] begins as `start` (over the axes: a number, or a tensor's elements), and
/// then every point of `sources`, the last one fastest, joins one element with its value:
///   name[indices] = join(name[indices], value)
/// The indices, one integer per axis, are over the sources and may read tensors; a point with an
/// index outside is dropped. Without a combiner the values are added. A source that alone is an
/// index is as free as any axis; the others follow the rules of reduced axes.
///   histogram: scatter("H", {b}, 0, {i}, {x(i)}, 1)
Tensor scatter(std::string name, std::vector<Axis> axes, Expr start, std::vector<Axis> sources,
               std::vector<Expr> indices, Expr value,
               std::shared_ptr<const Combiner> combiner = nullptr);
std::vector<Tensor> scatter_tuple(std::string name, std::vector<Axis> axes, std::vector<Expr> start,
                                  std::vector<Axis> sources, std::vector<Expr> indices,
                                  std::vector<Expr> values,
                                  std::shared_ptr<const Combiner> combiner);

/// Scan: along one of its axes an element is made from the one before,
///   name[.., 0, ..] = first,  name[.., t, ..] = step(name[.., t - 1, ..])
/// step may speak of all axes and tensors. The axis always runs in order.
///   running sum: scan("S", {i, t}, t, x(i, t), [&](Expr before) { return before + x(i, t); })
Tensor scan(std::string name, std::vector<Axis> axes, const Axis& along, Expr first,
            const std::function<Expr(Expr before)>& step);
/// Several states that step together.
std::vector<Tensor> scan_tuple(
    std::string name, std::vector<Axis> axes, const Axis& along, std::vector<Expr> first,
    const std::function<std::vector<Expr>(const std::vector<Expr>& before)>& step);

/// The *unscheduled* loop tree: every tensor the outputs need, each once, producers first, each
/// stage under its own serial loops (spatial in axis order, then reduce). A Reduce inside a larger
/// expression becomes a stage of its own named NAME.r0, r1, ... over those axes of its surroundings
/// that it uses; on one side of a select it combines only the points where that side is taken.
/// Tensors that are not outputs are allocated around all. Parameters: inputs in order of first use,
/// then outputs. A name used before gets a number ("relu.2"). The program's buffers are its own:
/// they have the tensors' names and no origin. UserError for: no output, an output twice, an output
/// that is an input.
Program make_program(std::string name, const std::vector<Tensor>& outputs);

/// The same unscheduled program with neighbouring dimensions joined wherever every stage runs
/// through them together:
///   for n, c, h, w: y[n,c,h,w] = max(x[n,c,h,w] + b[c,0,0], 0)   ->   for n, c, h_w: ...
///   x[n,c,h_w] + b[c,0,0]
/// A parameter keeps its bytes and may have fewer dimensions, so callers pass the same memory.
/// Extents that are not constants stay apart.
Program merge_dimensions(const Program& program);

}  // namespace tenon
