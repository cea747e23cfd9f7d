#pragma once
#include <tenon/ir/expr.h>

#include <map>

namespace tenon {

struct StmtNode;

/// A shared handle on an immutable statement; default-constructed it is the empty statement.
class Stmt {
 public:
  Stmt() = default;
  explicit Stmt(std::shared_ptr<const StmtNode> node) : node_(std::move(node)) {}
  bool defined() const { return node_ != nullptr; }
  const StmtNode& node() const;
  const StmtNode* get() const { return node_.get(); }
  bool same_as(const Stmt& other) const { return node_ == other.node_; }
  template <class T>
  const T* as() const;

 private:
  std::shared_ptr<const StmtNode> node_;
};

/// Marks say how lowering runs a loop; in a loop tree they change no meaning. tensorize: the loops
/// inside and the stage are the formula of For::intrinsic, whose lanes this loop runs over. From
/// block_x on the iterations are blocks of a GPU's grid, or threads of one block.
enum class LoopMark : uint8_t {
  serial,
  parallel,
  vectorize,
  unroll,
  tensorize,
  block_x,
  block_y,
  block_z,
  thread_x,
  thread_y,
  thread_z
};

/// Whether iterations of the loop become lanes of vectors.
inline bool makes_lanes(LoopMark mark) {
  return mark == LoopMark::vectorize || mark == LoopMark::tensorize;
}

/// for var in [min, min+extent): body. In a loop tree min is 0.
struct For {
  Var var;
  Expr min, extent;
  AxisKind kind = AxisKind::spatial;
  LoopMark mark = LoopMark::serial;
  std::map<std::string, int64_t> notes;  // further marks: ir/notes.h
  Stmt body;
  std::shared_ptr<const Intrinsic> intrinsic;  // of a loop marked tensorize, else null
};

/// Flat code and init nests: buffer[indices] = value. Lanes whose mask is off are not written.
struct Store {
  Buffer buffer;
  std::vector<Expr> indices;
  Expr value;
  Expr mask;
  bool atomic = false;
};
struct Seq {
  std::vector<Stmt> stmts;
};
struct If {
  Expr condition;
  Stmt then_case, else_case;
};
/// `buffer` exists, with undefined contents, while body runs; each entry is a new buffer.
struct Allocate {
  Buffer buffer;
  Stmt body;
};
struct Evaluate {
  Expr value;
};
struct LetStmt {
  Var var;
  Expr value;
  Stmt body;
};
struct Barrier {};
/// Flat code: the element's cache line will be wanted. It does nothing else, wherever it points.
struct PrefetchLine {
  Buffer buffer;
  std::vector<Expr> indices;
};

/// Where an axis of a stage stands at this point of the loop tree: a quasi-affine form of loop
/// variables.
struct AxisBinding {
  Axis axis;
  AxisKind kind = AxisKind::spatial;
  Expr value;
};

/// A named computation at a leaf of the loop tree. Its indices and values speak of its own axes
/// only; `axes` binds each to the loops around it, so loop transformations change bindings and
/// guards, never the body.
///   map:        outputs[n][indices] = values[n]  (a scan also reads itself, a step back)
///   reduction:  outputs[:][indices] = combiner(outputs[:][indices], values[:])
/// The spatial guard protects init and update, the reduce guard only the update (undefined = true).
/// A reduction with `init` starts every element: as its own nest directly above the outermost loop
/// that binds one of its reduce axes (at the leaf when none does), so an empty domain still writes.
/// Without `init` another stage has started the elements; a scatter: its indices use reduce axes.
struct Stage {
  std::string name;
  std::vector<AxisBinding> axes;  // spatial and sequential ones in index order, then reduce ones
  Expr spatial_guard, reduce_guard;
  std::vector<Buffer> outputs;               // same shape each
  std::vector<Expr> indices;                 // over the axes' variables; without reduce ones
  std::vector<Expr> values;                  // one per output
  std::shared_ptr<const Combiner> combiner;  // null: map
  std::vector<Expr> init;  // one per output, over the spatial axes' variables; or empty
};

struct StmtNode {
  std::variant<For, Store, Seq, If, Allocate, Evaluate, LetStmt, Barrier, PrefetchLine, Stage> v;
};

template <class T>
const T* Stmt::as() const {
  return node_ ? std::get_if<T>(&node_->v) : nullptr;
}

template <class T>
Stmt make_stmt(T alternative) {
  return Stmt(std::allocate_shared<StmtNode>(NodeAllocator<StmtNode>(), std::move(alternative)));
}

/// Sequence without undefined or nested parts; one part stands for itself.
Stmt seq(std::vector<Stmt> stmts);

}  // namespace tenon
