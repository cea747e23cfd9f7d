#pragma once
#include <tenon/ir/program.h>

#include <functional>
#include <unordered_map>

namespace tenon {

/// std::visit with a list of lambdas, one per alternative.
template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
overloaded(Fs...) -> overloaded<Fs...>;

using ExprFn = std::function<Expr(const Expr&)>;
using StmtFn = std::function<Stmt(const Stmt&)>;

/// The only two functions that know the children of each kind. An unchanged node comes back as the
/// same pointer. Reduce: sources, init, condition (not the axes' extents). Stage: bindings, guards,
/// indices, values, init.
Expr map_children(const Expr& e, const ExprFn& f);
Stmt map_children(const Stmt& s, const StmtFn& fs, const ExprFn& fe);

/// Bottom-up: children first, then `f` on the rebuilt node. Shared nodes are rewritten once.
Expr rewrite(const Expr& e, const ExprFn& f);
/// Bottom-up over statements and all expressions in them; either function may be null.
Stmt rewrite(const Stmt& s, const StmtFn& fs, const ExprFn& fe);

/// Pre-order over each distinct node once; `f` returning false stops the descent below a node.
void walk(const Expr& e, const std::function<bool(const Expr&)>& f);
void walk(const Stmt& s, const std::function<bool(const Stmt&)>& fs,
          const std::function<bool(const Expr&)>& fe);

struct VarHash {
  size_t operator()(const Var& v) const { return std::hash<const void*>()(v.get()); }
};
struct BufferHash {
  size_t operator()(const Buffer& b) const { return std::hash<const void*>()(b.get()); }
};
struct VarEqual {
  bool operator()(const Var& a, const Var& b) const { return a.same_as(b); }
};
/// For look-ups only: iterate over something ordered instead.
using VarMap = std::unordered_map<Var, Expr, VarHash, VarEqual>;
using BufferMap = std::unordered_map<Buffer, Buffer, BufferHash>;

/// Free variables are replaced; a Let or loop variable of that identity never is (identities are
/// unique).
Expr substitute(const Expr& e, const VarMap& values);
Stmt substitute(const Stmt& s, const VarMap& values);
/// Every Load, Store, Allocate and Stage output on a buffer of the map speaks of the new one.
Stmt replace_buffers(const Stmt& s, const BufferMap& buffers);
Expr replace_buffers(const Expr& e, const BufferMap& buffers);

/// In order of first appearance, each once.
std::vector<Var> free_vars(const Expr& e);
bool uses_var(const Expr& e, const Var& v);
bool uses_var(const Stmt& s, const Var& v);

/// Same structure, same variables and buffers (by identity).
bool structural_equal(const Expr& a, const Expr& b);

/// Loops from the outside in, then the stage at the end of the path.
struct StagePath {
  std::vector<const For*> loops;
  const Stage* stage = nullptr;
};
/// Every stage of a loop tree in program order with the loops around it. Pointers live as long as
/// `s`.
std::vector<StagePath> stage_paths(const Stmt& s);

}  // namespace tenon
