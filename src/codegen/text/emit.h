#pragma once
#include <tenon/ir/intrinsic.h>
#include <tenon/ir/visit.h>

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "codegen/text/helpers.h"
#include "codegen/text/index_width.h"
#include "codegen/text/names.h"

namespace tenon {

/// Where a buffer's elements are.
struct TextBuffer {
  std::string name;
  bool registers = false;  // one variable an element: NAME_0, NAME_1, ...
};
using TextBuffers = std::unordered_map<Buffer, TextBuffer, BufferHash>;

/// Writes statements of one kernel. A vector is one expression a lane; what is used more than once
/// becomes a constant of its own.
class TextEmitter {
 public:
  TextEmitter(const Dialect& dialect, Helpers& helpers, Names& names, TextBuffers buffers)
      : d_(dialect), h_(helpers), names_(names), buffers_(std::move(buffers)) {}

  void stmt(const Stmt& s);
  void line(const std::string& text);
  /// `const TYPE NAME = (TYPE)text;` for the variable of a block or thread loop.
  void define(const Var& v, const std::string& text, int64_t extent);
  /// Declares a buffer that a thread has for itself (a private array, or registers).
  void declare_private(const Buffer& b);
  void add_buffer(const Buffer& b, TextBuffer where) { buffers_[b] = std::move(where); }

  const std::string& text() const { return text_; }

 private:
  using Lanes = std::vector<std::string>;

  void node(const For& n);
  void node(const Store& n);
  void node(const Seq& n);
  void node(const If& n);
  void node(const Allocate& n);
  void node(const Evaluate& n);
  void node(const LetStmt& n);
  void node(const Barrier& n);
  void node(const PrefetchLine&) {}  // a device hides the way to memory behind other threads
  void node(const Stage& n);
  void unrolled(const For& n);
  void store_lane(const Store& n, const std::string& index, const std::string& value,
                  const std::string& mask);
  void store_atomic(const Store& n);

  Lanes emit(const Expr& e);
  std::string scalar(const Expr& e) { return emit(e)[0]; }
  /// Of an index, a bound or a condition: i64 in it does not overflow, and is an int where that is
  /// proved to be enough.
  Lanes emit_index(const Expr& e);
  /// Of a mask or any other condition, whose i64 may overflow unless proved otherwise.
  Lanes emit_mask(const Expr& e);
  Lanes narrow_or_as_written(const Expr& e);
  /// The type that an expression of type `t` is written in here.
  DType written(DType t) const { return narrow_ && t == i64 ? i32 : t; }
  void bind(const Var& v, const std::string& name, const std::optional<IndexRange>& range);
  Lanes node(const IntImm& n, const Expr& e);
  Lanes node(const FloatImm& n, const Expr& e);
  Lanes node(const VarRef& n, const Expr& e);
  Lanes node(const Binary& n, const Expr& e);
  Lanes node(const Unary& n, const Expr& e);
  Lanes node(const Select& n, const Expr& e);
  Lanes node(const Cast& n, const Expr& e);
  Lanes node(const Bitcast& n, const Expr& e);
  Lanes node(const Load& n, const Expr& e);
  Lanes node(const Call& n, const Expr& e);
  Lanes node(const Ramp& n, const Expr& e);
  Lanes node(const Broadcast& n, const Expr& e);
  Lanes node(const Reduce& n, const Expr& e);
  Lanes node(const Let& n, const Expr& e);
  Lanes node(const VectorReduce& n, const Expr& e);
  Lanes node(const Shuffle& n, const Expr& e);
  Lanes node(const IntrinsicCall& n, const Expr& e);

  /// Starts a statement: what is used several times in these expressions gets a name.
  void begin(const std::vector<Expr>& roots);
  void count(const Expr& e);
  std::string keep(DType t, const std::string& text);
  std::string element(const Buffer& b, const std::string& index) const;
  const TextBuffer& where(const Buffer& b) const;

  const Dialect& d_;
  Helpers& h_;
  Names& names_;
  TextBuffers buffers_;
  std::unordered_map<Var, Lanes, VarHash, VarEqual> vars_;
  std::unordered_set<Var, VarHash, VarEqual> narrow_vars_;  // i64 variables that are ints
  IndexWidth width_;
  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_map<const ExprNode*, Lanes> memo_[2];  // [1]: where narrow_
  std::vector<Expr> alive_;  // nodes made here, so that no address is used twice in a statement
  const Store* atomic_ = nullptr;  // the update at hand: loads of its element read `current_`
  std::string current_;
  bool index_ = false;   // no i64 overflows
  bool narrow_ = false;  // all i64 fit 32 bits; index_ is set
  std::string text_;
  int depth_ = 1;
};

/// The value of an index without variables; InternalError for others.
int64_t constant_index(const Expr& e);

}  // namespace tenon
